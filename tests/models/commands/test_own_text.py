"""A user's own text, from a file to sentences and a page."""

from __future__ import annotations

import pytest

from models.commands import main
from tests.models.commands.test_commands import SETTINGS

SENTENCES = [
    f"The {a} {b} sat on the {c}."
    for a in ("old", "new")
    for b in ["cat", "dog", "owl"]
    for c in ["mat", "hill"]
]


def run(*arguments) -> None:
    main([str(argument) for argument in arguments])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With a prepared corpus of a few sentences."""
    folder = tmp_path_factory.mktemp("own")
    (folder / "mine.txt").write_text("\n".join(SENTENCES) + "\n")
    run("data", "text", "--from", folder / "mine.txt", "--to", folder / "corpus")
    return folder


@pytest.mark.filterwarnings("ignore:posterior collapse")
@pytest.mark.parametrize("task", ["text", "paraphrase-unpaired"])
def test_it_can_be_learnt(folder, task, capsys):
    data = ["--data.corpus", "text", "--data.directory", folder / "corpus"]
    run("train", *data, *SETTINGS, "--task", task, "--run", folder / task)
    run("evaluate", folder / task, "--samples", 2)
    run("report", folder / task)
    assert "NLL" in capsys.readouterr().out
    assert "sat" in (folder / task / "report.html").read_text()


def test_it_is_shown_and_says_what_is_next(folder, capsys):
    run("data", "text", "--from", folder / "mine.txt", "--to", folder / "again")
    printed = capsys.readouterr().out
    assert "the old cat sat on the mat ." in printed
    assert f"train --data.corpus text --data.directory {folder / 'again'}" in printed


def test_there_is_nothing_to_download(capsys):
    with pytest.raises(SystemExit) as error:
        run("data", "text", "--download")
    assert error.value.code == 2
    assert "give --from FILE" in capsys.readouterr().err
