"""`python -m models templates`: what it finds, and what it writes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from models.commands import main
from models.runs import load_run
from models.templates.analysis import analyse
from models.templates.bank import TemplateBank
from models.templates.of_runs import map_templates, run_templates
from models.templates.patterns import parse_pattern
from models.templates.segments import collapse
from tests.models.tiny_runs import STATES, train

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")


def templates(run: Path, *options: object) -> None:
    main(["templates", *(str(option) for option in (run, *options))])


def exit_code(run: Path, *options: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        templates(run, *options)
    return stopped.value.code


def shown(printed: str) -> list[int]:
    """The numbers of the templates, as they were printed."""
    return [int(number) for number in re.findall(r"^@(\d+) ", printed, re.MULTILINE)]


def sentence_of(printed: str, number: int) -> str:
    """Beside the template of that number, with states."""
    until = r"(?=^@|^ *Frequent)"
    found = re.search(rf"^@{number} (?:\(\d+ times\) )?(.*?){until}", printed, re.M | re.S)
    return " ".join(found[1].split())


def words_of(printed: str, number: int) -> tuple[str, ...]:
    return tuple(re.sub(r"/\d+", "", sentence_of(printed, number)).split())


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return train(tmp_path_factory.mktemp("runs") / "run", training={"epochs": 1})


@pytest.fixture(scope="module")
def trained(run):
    return load_run(run, "best")


@pytest.fixture(scope="module")
def bank(trained):
    return run_templates(trained)


def test_the_most_frequent_are_shown_with_their_sentences(run, trained, bank, capsys):
    templates(run)
    printed = capsys.readouterr().out
    assert f"{len(bank)} templates of 50 sentences" in printed
    assert shown(printed) == list(range(10))
    assert words_of(printed, 0) == trained.corpus().splits["train"][bank[0].example].words
    states = re.findall(r"/(\d+)", sentence_of(printed, 0))
    assert states == [str(state) for state in collapse(bank[0].states)]


@pytest.mark.parametrize("limit", [1, 3, 0])
def test_as_many_as_asked(run, bank, limit, capsys):
    templates(run, "--limit", limit)
    assert shown(capsys.readouterr().out) == list(range(limit or len(bank)))


@pytest.mark.parametrize("spelling", ["{}", " {} "])
def test_by_keys(run, bank, spelling, capsys):
    """In any order, with spaces or without."""
    keys = sorted(bank[len(bank) - 1].keys)
    asked = ",".join(spelling.format(key) for key in reversed(keys))
    templates(run, "--keys", asked, "--limit", 0)
    expected = [stored.number for stored in bank if stored.keys == {*keys}]
    assert shown(capsys.readouterr().out) == expected


@pytest.mark.parametrize(
    ("length", "bounds"), [("9", (9, 9)), ("8-12", (8, 12)), (" 8-8 ", (8, 8))]
)
def test_by_length(run, bank, length, bounds, capsys):
    templates(run, "--length", length, "--limit", 0)
    low, high = bounds
    expected = [stored.number for stored in bank if low <= len(stored.states) <= high]
    assert shown(capsys.readouterr().out) == expected


def test_by_pattern(run, bank, capsys):
    templates(run, "--pattern", "2 * !0", "--limit", 0)
    pattern = parse_pattern("2 * !0", STATES)
    expected = [stored.number for stored in bank if pattern(stored.states)]
    assert shown(capsys.readouterr().out) == expected
    assert 0 < len(expected) < len(bank)


def test_by_everything_at_once(run, bank, capsys):
    stored = bank[len(bank) // 2]
    options = ["--keys", ",".join(stored.keys), "--length", len(stored.states)]
    templates(run, *options, "--pattern", " ".join(map(str, stored.states)), "--limit", 0)
    assert stored.number in shown(capsys.readouterr().out)


def test_none_is_like_that(run, capsys):
    templates(run, "--length", 1000)
    assert "none is like that" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--length", "many"], "'many' is no length: write 9, or 8-12"),
        (["--length", "8-"], "'8-' is no length"),
        (["--length", "12-8"], "no length is at least 12 and at most 8"),
        (["--pattern", "3x *"], "'3x' in the pattern '3x *' cannot be read"),
        (["--pattern", "3"], "there is no state 3; possible are states from 0 to 2"),
        (["--pattern", " "], "the pattern of states is empty"),
        (["--limit", "-1"], "limit"),
    ],
)
def test_options_that_make_no_sense(run, options, message, capsys):
    assert exit_code(run, *options) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("asked", ["name,foot", "", "name,,food"])
def test_unknown_keys(run, bank, asked, capsys):
    assert exit_code(run, "--keys", asked) == 2
    known = ", ".join(sorted({key for stored in bank for key in stored.keys}))
    expected = f"unknown keys among {asked}; the tables have: {known}\n"
    assert capsys.readouterr().err.endswith(expected)


def test_frequent_states_in_a_row(run, trained, bank, capsys):
    """The most frequent n-gram of two states or more, with how often it is."""
    templates(run)
    printed = capsys.readouterr().out
    sentences = [example.words for example in trained.corpus().splits["train"]]
    ngrams = analyse(bank.of_sentences(), sentences).ngrams
    best = max((ngram for ngram in ngrams if len(ngram.states) > 1), key=lambda n: n.count)
    row = next(line for line in printed.splitlines() if re.match(r"\W*\d( \d)+ ", line))
    cells = [cell.strip() for cell in re.split(r"[^\x00-\xff]", row)]
    assert cells[1:3] == [" ".join(map(str, best.states)), str(best.count)]


def test_the_analysis_is_that_of_the_training_sentences(run, trained, tmp_path, capsys):
    path = tmp_path / "new" / "analysis.json"
    templates(run, "--json", path)
    assert "analysis: " in capsys.readouterr().out
    found = json.loads(path.read_bytes().decode("utf-8"))
    examples = trained.corpus().splits["train"]
    sentences = [example.words for example in examples]
    best = map_templates(trained, examples)
    assert found == json.loads(json.dumps(analyse(best, sentences).as_json()))
    assert found["num_sentences"] == 50
    assert found["num_templates"] == len(set(map(tuple, best)))
    assert sum(state["share"] for state in found["states"]) == pytest.approx(1)
    runs = sum(len(collapse(states)) for states in best)
    assert sum(n["count"] for n in found["ngrams"] if len(n["states"]) == 1) == runs
    text = [" ".join(words) for words in sentences]
    for ngram in found["ngrams"]:
        assert all(any(s["text"] in line for line in text) for s in ngram["segments"])


def test_a_model_without_templates(tmp_path, capsys):
    run = train(tmp_path / "rnnlm", objective={"estimator": "rnnlm"}, training={"epochs": 1})
    assert exit_code(run) == 2
    assert f"error: {run} is a model without templates\n" in capsys.readouterr().err
    assert not (run / "templates.json.gz").exists()


def test_captions(tmp_path, capsys):
    """They share templates, and have no keys."""
    run = train(tmp_path / "run", "paraphrase", training={"epochs": 1, "learning_rate": 0.1})
    templates(run, "--limit", 0)
    printed, bank = capsys.readouterr().out, TemplateBank.load(run / "templates.json.gz")
    examples = load_run(run, "best").corpus().splits["train"]
    assert f"{len(bank)} templates of {len(examples)} sentences" in printed
    assert [s.example for s in bank] != [s.number for s in bank]
    assert all(words_of(printed, s.number) == examples[s.example].words for s in bank)
    assert exit_code(run, "--keys", "name") == 2
    assert "the tables have: none" in capsys.readouterr().err


def test_a_folder_that_is_no_run(tmp_path, capsys):
    assert exit_code(tmp_path) == 2
    assert "does not exist; train with `python -m models train" in capsys.readouterr().err
