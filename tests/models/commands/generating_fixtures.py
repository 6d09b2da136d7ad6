"""Fixtures of the tests of `python -m models generate`; a test file names them as its plugin."""

from __future__ import annotations

import io
import sys
import warnings

import pytest

from models.data.readers import E2E_FILES
from models.data.tables import format_table
from models.restaurants.corpus import synthetic_corpus
from tests.models.commands.generating import run
from tests.models.commands.test_commands import SETTINGS as SIZES

SENTENCES = {"train": 15, "dev": 5, "test": 4}
SETTINGS = [*SIZES, "--model.word_scores", "true"]  # so templates differ without much training
SHORT = ["--decoding.max_words", "8", "--decoding.beam", "2"]
TASKS = {
    "tables": ["data2text"],
    "sentences": ["paraphrase"],
    "text": ["text"],
    "rnnlm": ["data2text", "--objective.estimator", "rnnlm"],
}


def write_release(folder):
    """Of each table two sentences, so that each is a paraphrase of the other."""
    folder.mkdir()
    for split, examples in synthetic_corpus(*SENTENCES.values()).splits.items():
        pairs = [(format_table(e.table), text) for e in examples for text in (e.text, "Go there!")]
        rows = [f'"{table}","{text}"\n' for table, text in pairs]
        (folder / E2E_FILES[split]).write_text("mr,ref\n" + "".join(rows))


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """With a corpus, and a run of each task."""
    folder = tmp_path_factory.mktemp("work")
    write_release(folder / "release")
    run("data", "e2e", "--from", folder / "release", "--to", folder / "corpus")
    data = ["--data.corpus", "e2e", "--data.directory", folder / "corpus"]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "posterior collapse")
        for name, task in TASKS.items():
            run("train", *data, *SETTINGS, "--run", folder / name, "--task", *task)
    return folder


@pytest.fixture
def generate(runs, monkeypatch, capsys):
    """The lines that are printed for lines of standard input."""

    def generated(lines, *options, name="tables") -> list[str]:
        content = lines if isinstance(lines, bytes) else "".join(f"{x}\n" for x in lines).encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        capsys.readouterr()
        run("generate", runs / name, *SHORT, *options)
        return capsys.readouterr().out.splitlines()

    return generated


@pytest.fixture
def refused(generate, capsys):
    """What is printed, to either side, by a command that ends with exit code 2."""

    def stopped(*arguments, **options) -> tuple[list[str], str]:
        with pytest.raises(SystemExit) as error:
            generate(*arguments, **options)
        assert error.value.code == 2
        printed, complaints = capsys.readouterr()
        return printed.splitlines(), complaints

    return stopped
