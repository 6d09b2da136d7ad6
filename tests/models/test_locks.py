"""A folder has one writer; whoever dies lets go of it."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys

import pytest

from models.errors import DataError, RunError
from models.locks import locked

HOLD = """
import sys, time
from pathlib import Path
from models.locks import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""


def test_the_second_process_is_told_of_the_first_until_it_is_killed(tmp_path):
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True
    )
    try:
        assert holder.stdout.readline() == "held\n"
        told = f"{re.escape(str(tmp_path))} is being written to by process {holder.pid}: wait"
        with pytest.raises(RunError, match=told), locked(tmp_path):
            pass
    finally:
        holder.kill()
        holder.communicate()
    with locked(tmp_path):
        assert (tmp_path / ".lock").read_text() == f"{os.getpid()}\n"


def test_one_process_may_hold_it_twice(tmp_path):
    with locked(tmp_path):
        with locked(tmp_path):
            pass
        with pytest.raises(RunError, match=f"process {os.getpid()}"):
            taken_anew(tmp_path)
    taken_anew(tmp_path)


def taken_anew(folder):
    """As another process would, by another description of the same file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.locks.HELD", set())
        with locked(folder):
            pass


def test_a_new_folder_stays_only_if_it_is_used(tmp_path):
    for name in ("used", "unused"):
        with locked(tmp_path / name):
            (tmp_path / "used" / "file").touch()
    assert [path.name for path in tmp_path.iterdir()] == ["used"]


def test_an_error_lets_go(tmp_path):
    with pytest.raises(KeyError), locked(tmp_path):
        raise KeyError
    taken_anew(tmp_path)


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(DataError, match="file: cannot be written to: "), locked(tmp_path / "file"):
        pass


def test_a_folder_without_permission(tmp_path, monkeypatch):
    def refuse(*_):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr("pathlib.Path.open", refuse)
    told = f"{re.escape(str(tmp_path))}: cannot be written to: Permission denied"
    with pytest.raises(DataError, match=told), locked(tmp_path):
        pass
