"""What damage does to the files of a run: it is named, never used, and nothing good is lost."""

from __future__ import annotations

import errno
import os
import shutil
import zipfile
from functools import partial

import pytest
import torch

from models.commands import main
from models.errors import RunError
from models.runs import checkpoint_path, load_checkpoint, read_config
from models.training.fit import fit
from models.training.run_files import AtomicCheckpoints
from tests.models.tiny_runs import restaurants, train
from tests.models.training.conftest import outcome
from tests.models.training.killing import Killed

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of two epochs, never touched."""
    return train(tmp_path_factory.mktemp("runs") / "whole", task="text")


@pytest.fixture
def run(whole, tmp_path):
    """A copy of it, to be spoilt."""
    return shutil.copytree(whole, tmp_path / "run")


def error_of(capsys, *arguments) -> str:
    """The one line that a command ends with."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    assert stopped.value.code == 2
    line = capsys.readouterr().err
    assert line.startswith("error: ")
    assert line.count("\n") == 1
    return line


def test_no_changed_byte_goes_unnoticed(tmp_path):
    """A bit of every third byte of a checkpoint: it is refused, or reads as it was written."""
    path, saved = tmp_path / "a.ckpt", {"weights": torch.arange(4.0), "words": ["a", "b"]}
    AtomicCheckpoints().save_checkpoint(saved, path)
    good, refused = path.read_bytes(), 0
    for place in range(0, len(good), 3):
        changed = good[place] ^ 1 << place % 8
        path.write_bytes(good[:place] + bytes([changed]) + good[place + 1 :])
        try:
            found = load_checkpoint(path)
        except RunError:
            refused += 1
        else:
            assert torch.equal(found["weights"], saved["weights"])
            assert found["words"] == saved["words"]
    assert refused > len(good) // 12  # much of so small a file is padding


def flipped(data: bytes) -> bytes:
    """One bit in the middle, inside a tensor."""
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 1]) + data[middle + 1 :]


DAMAGE = {
    "cut": lambda data: data[: len(data) // 2],
    "empty": lambda _: b"",
    "flipped": flipped,
    "text": lambda _: b"<html>Please log in</html>",
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_damaged_checkpoint_is_named(run, damage, capsys):
    path = checkpoint_path(run, "best")
    path.write_bytes(damage(path.read_bytes()))
    assert f"{path} is damaged, or no checkpoint" in error_of(capsys, "evaluate", run)


class Malicious:
    def __init__(self, target):
        self.target = target

    def __reduce__(self):
        return os.mkdir, (str(self.target),)


def test_code_in_a_checkpoint_is_not_run(run, tmp_path, capsys):
    torch.save({"state_dict": Malicious(tmp_path / "made")}, checkpoint_path(run, "best"))
    assert "best.ckpt holds more than numbers and text" in error_of(capsys, "evaluate", run)
    assert not (tmp_path / "made").exists()


def test_a_small_checkpoint_of_large_parts(run, capsys):
    """A few kilobytes that would fill the memory."""
    path = checkpoint_path(run, "best")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(1 << 20))
    assert f"{path} is damaged, or no checkpoint (parts larger" in error_of(capsys, "evaluate", run)


def test_a_tensor_is_no_checkpoint(run, capsys):
    torch.save(torch.zeros(3), checkpoint_path(run, "best"))
    assert "holds no state, but Tensor" in error_of(capsys, "evaluate", run)


@pytest.mark.parametrize("content", [{}, {"structdist_run": 3}, {"structdist_run": {"config": 3}}])
def test_a_checkpoint_of_something_else(run, content, capsys):
    torch.save(content, checkpoint_path(run, "best"))
    assert "best.ckpt was written by an unnamed version" in error_of(capsys, "evaluate", run)


@pytest.mark.parametrize("damage", [*DAMAGE.values(), None], ids=[*DAMAGE, "missing"])
def test_resuming_falls_back_to_the_previous_checkpoint(run, whole, damage, capsys):
    """And comes to the same end, to the bit; what was damaged is put aside, not lost."""
    last = checkpoint_path(run, "last")
    data = damage(last.read_bytes()) if damage else None
    last.unlink()
    if data is not None:
        last.write_bytes(data)
    main(["train", "--resume", "--run", str(run)])
    told = capsys.readouterr().err
    assert str(last) in told
    assert f"going on from {checkpoint_path(run, 'previous')}" in told
    assert outcome(run) == outcome(whole)
    aside = last.with_suffix(".damaged")
    assert aside.exists() == (data is not None)
    assert data is None or aside.read_bytes() == data


def test_without_a_whole_checkpoint_nothing_is_touched(run, capsys):
    for name in ("last", "previous"):
        checkpoint_path(run, name).write_bytes(b"")
    before = sorted(path.name for path in (run / "checkpoints").iterdir())
    assert "previous.ckpt is damaged" in error_of(capsys, "train", "--resume", "--run", run)
    assert sorted(path.name for path in (run / "checkpoints").iterdir()) == before


def test_a_full_disk_while_saving(whole, tmp_path, monkeypatch):
    """The run goes on from the save before, to where it would have come."""
    run, corpus, config = tmp_path / "run", restaurants(), read_config(whole)
    saves, sync = [], os.fsync

    def sync_until_full(number):
        saves.append(number)
        if len(saves) == 7:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(number)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", sync_until_full)
        with pytest.raises(RunError, match=r"ckpt: cannot be written: No space.*`python -m models"):
            fit(config, corpus, run)
    fit(config, corpus, run, resume=True)
    assert outcome(run) == outcome(whole)


CONFIGS = {
    "a sentence": "holds no settings of a run: there are no settings",
    "a: [": "holds no settings of a run: while parsing",
    "[" * 1000: "holds no settings of a run",
}


@pytest.mark.parametrize(("text", "message"), CONFIGS.items(), ids=["text", "open", "deep"])
def test_malformed_settings(run, text, message, capsys):
    (run / "config.yaml").write_text(text)
    line = error_of(capsys, "train", "--resume", "--run", run)
    assert f"{run / 'config.yaml'} {message}" in line
    assert "put it right, or delete it" in line


def test_unknown_settings(run, capsys):
    with (run / "config.yaml").open("a") as file:
        file.write("wings: 2\n")
    assert "wings" in error_of(capsys, "train", "--resume", "--run", run)


def test_edited_settings(run, capsys):
    path = run / "config.yaml"
    path.write_text(path.read_text().replace("hidden_size: 8", "hidden_size: 9"))
    line = error_of(capsys, "train", "--resume", "--run", run)
    assert f"other settings, see model.hidden_size; give them as they were, or put {path} " in line


def test_missing_settings_are_those_of_the_checkpoint(run, capsys):
    before = (run / "config.yaml").read_text()
    (run / "config.yaml").unlink()
    main(["train", "--resume", "--run", str(run)])
    assert f"{run / 'config.yaml'} is missing" in capsys.readouterr().out
    assert (run / "config.yaml").read_text() == before


LOGS = {
    "": "line 1: the columns are []",
    "step,epoch\n1,2\n": "line 1: the columns are",
    "step,epoch,metric,value\n1,0,dev/ppl,2.0\n1,0,dev/ppl\n": "line 3: 3 columns, not 4",
    "step,epoch,metric,value\nx,0,dev/ppl,2.0\n": "line 2: invalid literal for int",
    "step,epoch,metric,value\n1,0,dev/ppl,x\n": "line 2: could not convert string to float",
}


@pytest.mark.parametrize(("text", "message"), LOGS.items())
@pytest.mark.parametrize("command", [("train", "--resume", "--run"), ("report",)])
def test_a_malformed_log(run, command, text, message, capsys):
    (run / "metrics.csv").write_text(text)
    assert f"{run / 'metrics.csv'}, {message}" in error_of(capsys, *command, run)


def test_a_missing_log(run, capsys):
    (run / "metrics.csv").unlink()
    line = error_of(capsys, "train", "--resume", "--run", run)
    assert f"{run / 'metrics.csv'} is missing: put it back, or start it anew" in line
    (run / "metrics.csv").write_text("step,epoch,metric,value\n")
    main(["train", "--resume", "--run", str(run)])


def test_a_file_in_place_of_the_folder(whole, tmp_path, capsys):
    (tmp_path / "run").touch()
    new = ["--config", whole / "config.yaml", "--run", tmp_path / "run"]
    assert f"{tmp_path / 'run'}" in error_of(capsys, "train", *new)


def test_a_kill_between_the_two_renames(whole, tmp_path, monkeypatch):
    """The last checkpoint is the previous one already, and the new one has not its name yet."""
    run, corpus, config = tmp_path / "run", restaurants(), read_config(whole)
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", partial(killed, os.replace))
        with pytest.raises(Killed):
            fit(config, corpus, run)
    assert not checkpoint_path(run, "last").exists()
    with pytest.raises(RunError, match="holds a run already"):
        fit(config, corpus, run)
    fit(config, corpus, run, resume=True)
    assert outcome(run) == outcome(whole)


def killed(replace, source, target):
    replace(source, target)
    if target.name == "previous.ckpt":
        raise Killed
