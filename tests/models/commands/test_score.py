"""`score`: a table, a file, and errors that say where."""

from __future__ import annotations

import gzip
import json
import sys

import pytest

from models.commands.score import score
from models.errors import DataError
from tests.models.metrics.conftest import OUTPUTS, REFERENCES

TABLES = ["name[The Vaults]", "name[Aromi]", "name[Zizzi], familyFriendly[no]"]


@pytest.fixture
def files(tmp_path):
    """Outputs, references (compressed) and tables."""
    outputs, references, tables = (tmp_path / n for n in ("out.txt", "refs.txt.gz", "tables.txt"))
    outputs.write_text("\n".join(OUTPUTS) + "\n")
    blocks = "\n\n".join("\n".join(texts) for texts in REFERENCES)
    references.write_bytes(gzip.compress(blocks.encode()))
    tables.write_text("\n".join(TABLES))
    return outputs, references, tables


def test_e2e(files, tmp_path, capsys):
    outputs, references, tables = files
    score("e2e", outputs, references, tables, tmp_path / "scores.json", java=False)
    printed = capsys.readouterr().out
    for shown in ("3 outputs, 6 references", "BLEU", "0.7524", "unavailable", "slots missing"):
        assert shown in printed
    written = json.loads((tmp_path / "scores.json").read_text())
    assert written["scores"]["BLEU"]["value"] == pytest.approx(0.752394, abs=1e-5)
    assert written["scores"]["BLEU"]["settings"]["tokens"] == "mteval-13a"
    assert written["scores"]["METEOR"] == {
        "value": None,
        "settings": written["scores"]["METEOR"]["settings"],
        "unavailable": "java was switched off",
    }
    assert written["files"]["references"] == str(references)


def test_e2e_without_tables_has_no_slot_errors(files, capsys):
    score("e2e", *files[:2], java=False)
    assert "slot" not in capsys.readouterr().out


def test_paraphrase(files, tmp_path, capsys):
    outputs, references, _ = files
    score("paraphrase", outputs, references, outputs, tmp_path / "scores.json")
    assert "iBLEU" in capsys.readouterr().out
    scores = json.loads((tmp_path / "scores.json").read_text())["scores"]
    assert scores["self-BLEU"]["value"] == pytest.approx(1)


def test_paraphrase_needs_inputs(files):
    with pytest.raises(DataError, match="--inputs: "):
        score("paraphrase", *files[:2])


def test_a_missing_file(files, tmp_path):
    with pytest.raises(DataError, match=r"nowhere\.txt: cannot be read"):
        score("e2e", tmp_path / "nowhere.txt", files[1])


def test_too_few_outputs(files):
    files[0].write_text("One.\nTwo.\n")
    with pytest.raises(DataError, match=r"refs\.txt\.gz, line 6: 3 blocks .* 2 outputs in .*out"):
        score("e2e", *files[:2])


def test_too_many_outputs(files):
    files[0].write_text("One.\n" * 4)
    with pytest.raises(DataError, match=r"out\.txt, line 4: 4 outputs, but 3 blocks"):
        score("e2e", *files[:2])


def test_too_many_inputs(files):
    files[2].write_text("One.\n" * 5)
    with pytest.raises(DataError, match=r"tables\.txt, line 4: 5 inputs, but 3 outputs"):
        score("paraphrase", *files)


def test_an_empty_output(files):
    files[0].write_text("One.\n\nThree.\n")
    with pytest.raises(DataError, match=r"out\.txt, line 2: an empty output"):
        score("e2e", *files[:2])


def test_something_that_is_no_table(files):
    files[2].write_text("name[Aromi]\nAromi\nname[Zizzi]\n")
    with pytest.raises(DataError, match=r"tables\.txt, line 2: "):
        score("e2e", *files)


def test_nowhere_to_write(files, tmp_path):
    with pytest.raises(DataError, match="no such directory"):
        score("e2e", *files[:2], json=tmp_path / "nowhere" / "scores.json")
    with pytest.raises(DataError, match="cannot be written"):
        score("e2e", *files[:2], json=tmp_path, java=False)


def test_java_that_must_be_there(files, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(DataError, match="--java: no java on the PATH"):
        score("e2e", *files[:2], java=True)


def test_a_library_that_is_not_installed(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "sacrebleu.metrics.bleu", None)
    with pytest.raises(DataError, match=r"pip install 'structdist\[metrics\]'"):
        score("e2e", *files[:2], java=False)
