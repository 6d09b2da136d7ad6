"""`python -m models generate`: a line for a line, and errors that name theirs."""

from __future__ import annotations

import os
import sys

import pytest

from tests.models.commands.generating import BAD, TABLES, records, run

pytest_plugins = ["tests.models.commands.generating_fixtures"]


def test_a_line_for_each_table_in_order(generate):
    together = generate(TABLES)
    assert len(together) == len(TABLES)
    assert together == [line for table in TABLES for line in generate([table])]


def test_both_notations_say_the_same(generate):
    same = ['{"name": "The Vaults", "eatType": "pub"}', TABLES[0]]
    first, second = generate(same)
    assert first == second


def test_from_a_file(generate, tmp_path):
    (tmp_path / "tables.txt").write_text("\r\n".join(TABLES), encoding="utf-8")
    assert generate([], "--input", tmp_path / "tables.txt") == generate(TABLES)


def test_nothing_for_nothing(generate):
    assert generate([]) == []


def test_more_lines_than_are_answered_at_a_time(generate, monkeypatch):
    expected = generate(TABLES * 2)
    monkeypatch.setattr("models.commands.generate.CHUNK", 2)
    assert generate(TABLES * 2) == expected


def test_paraphrases(generate, refused):
    assert len(generate(["It is a pub.", '"Go there!"'], name="sentences")) == 2
    printed, complaints = refused(["It is a pub.", "?!"], name="sentences")
    assert printed == []
    assert "standard input, line 2: no word" in complaints


def test_a_bad_line_stops_all(refused):
    printed, complaints = refused([TABLES[0], BAD, TABLES[1]])
    assert printed == []
    assert "error: standard input, line 2: the bracket" in complaints


def test_a_bad_line_of_a_file(refused, tmp_path):
    path = tmp_path / "tables.txt"
    path.write_text(f"{TABLES[0]}\n\n")
    assert f"{path}, line 2: an empty line" in refused([], "--input", path)[1]


def test_keep_going(generate, refused):
    good = generate(TABLES)
    printed, complaints = refused([TABLES[0], BAD, *TABLES[1:]], "--keep-going")
    assert printed == [good[0], "", *good[1:]]
    assert complaints.count("error: ") == 1
    assert "line 2" in complaints


def test_keep_going_in_json(refused):
    bad, good = records(refused([BAD, TABLES[0]], "--keep-going", "--json")[0])
    assert bad["input"] == 1
    assert "line 1" in bad["error"]
    assert good["input"] == 2
    assert "error" not in good


def test_a_line_that_is_no_utf_8(refused):
    printed, complaints = refused(f"{TABLES[0]}\nname[\xff]\n".encode("latin-1"), "--keep-going")
    assert printed[0]
    assert printed[1:] == [""]
    assert "line 2: not UTF-8" in complaints


@pytest.mark.parametrize("name", ["missing.txt", "."])
def test_an_input_that_cannot_be_read(refused, tmp_path, name):
    printed, complaints = refused([], "--input", tmp_path / name)
    assert printed == []
    assert "cannot be read" in complaints


def test_a_key_that_the_model_has_never_seen(refused):
    printed, complaints = refused(["name[Zizzi], planet[Kronos]", BAD], "--keep-going")
    assert len(printed) == 2
    assert "error: standard input, line 1: the model has never seen the key planet" in complaints
    assert "it knows area, customer rating, eatType, " in complaints
    assert printed == ["", ""]


def test_json(generate):
    texts = generate(TABLES)
    found = records(generate(TABLES, "--json"))
    assert [record["text"] for record in found] == texts
    assert [record["input"] for record in found] == [1, 2, 3]
    for record in found:
        assert record["template"] is None
        assert len(record["words"]) == len(record["states"])
        assert record["log_prob"] < 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--template", "0", "--num-templates", "2"], "not both"),
        (["--split", "test"], "--split and --folder"),
        (["--folder", "somewhere"], "--split and --folder"),
        (["--num-templates", "-1"], "num_templates"),
        (["--decoding.beam", "0"], "beam must be at least 1"),
        (["--decoding.method", "guess"], "method"),
    ],
)
def test_options_that_make_no_sense(refused, options, message):
    printed, complaints = refused(TABLES, *options)
    assert printed == []
    assert message in complaints


def test_draws_depend_on_the_seed(generate):
    draws = [generate(TABLES, "--decoding.method", "sample", "--seed", seed) for seed in (1, 1, 2)]
    assert draws[0] == draws[1] != draws[2]


def test_a_run_that_models_sentences_alone(refused):
    assert "--task data2text" in refused(TABLES, name="text")[1]


def test_a_folder_without_a_run(refused):
    assert "does not exist" in refused(TABLES, name="corpus")[1]


@pytest.mark.parametrize(
    ("name", "protocol"), [("tables", "e2e"), ("rnnlm", "e2e"), ("sentences", "paraphrase")]
)
def test_files_for_the_metrics(generate, capsys, tmp_path, name, protocol):
    (printed,) = generate([], "--split", "test", "--folder", tmp_path / "new", name=name)
    assert printed.startswith("4 sentences; next: python -m models score")
    command = printed.split("python -m models ")[1].split()
    run(*command, *(["--java", "false"] if protocol == "e2e" else []))
    assert f"{protocol}: 4 outputs, " in capsys.readouterr().out


def test_a_folder_that_cannot_be_made(refused, tmp_path):
    (tmp_path / "file").write_text("")
    options = ["--split", "test", "--folder", tmp_path / "file"]
    assert "cannot be made" in refused([], *options)[1]


def test_a_reader_that_goes_away(generate, capsys, monkeypatch):
    """As `head -1` does."""
    reads, writes = os.pipe()
    os.close(reads)
    with os.fdopen(writes, "w") as stdout, monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", stdout)
        with pytest.raises(SystemExit) as stopped:
            generate(TABLES)
    assert stopped.value.code == 1
    assert "Traceback" not in capsys.readouterr().err
