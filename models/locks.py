"""A folder is written to by one process at a time."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from models.errors import RunError
from models.files import telling

FILE = ".lock"  # it stays; what counts is who holds it, and the system lets go of it for the dead
HELD: set[Path] = set()  # by this process

if sys.platform == "win32":
    import msvcrt

    BEYOND = 1 << 30  # the byte that is locked, behind the number, which others must read

    def _take(file: IO[str]) -> None:
        file.seek(BEYOND)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _take(file: IO[str]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder; a `RunError` names the process that holds it already.

    A folder that is not there is made, and taken away again if nothing is put into it.
    """
    path = (folder / FILE).resolve()
    if path in HELD:
        yield
        return
    with telling(folder, "written to"):
        made = not folder.exists()
        folder.mkdir(parents=True, exist_ok=True)
        file = path.open("a+")
    with file:
        try:
            _take(file)
        except (BlockingIOError, PermissionError) as error:
            file.seek(0)
            holder = file.read().strip() or "unknown"
            raise RunError(
                f"{folder} is being written to by process {holder}: wait for it, or stop it"
            ) from error
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        HELD.add(path)
        try:
            yield
        finally:
            HELD.remove(path)
            with suppress(OSError):
                if made and [own.name for own in folder.iterdir()] == [FILE]:
                    path.unlink()
                    folder.rmdir()
