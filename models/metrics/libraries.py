"""Libraries that only the metrics need: imported where they are used, so they are optional."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TIME_LIMIT = 120.0  # seconds for a Java program that needs one or two


class MissingLibraryError(ImportError):
    """A library of the extra `metrics` is not installed."""


class JavaUnavailableError(RuntimeError):
    """No Java here, or one that does not do its work; the message says why."""


@contextmanager
def metrics_extra() -> Iterator[None]:
    """Imports in its body that fail say what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingLibraryError(
            f"{error.name} is not installed: pip install 'structdist[metrics]'", name=error.name
        ) from error


def run_java(jar: str, *arguments: str, text: str = "", more_time: float = 0.0) -> str:
    """What a Java program prints when it is given the text, both in UTF-8.

    The program is in an archive that pycocoevalcap brings along.
    """
    with metrics_extra():
        import pycocoevalcap
    path = Path(next(iter(pycocoevalcap.__path__)), jar)
    java, limit = shutil.which("java"), TIME_LIMIT + more_time
    if java is None:
        raise JavaUnavailableError("no java on the PATH")
    if not path.is_file():
        raise JavaUnavailableError(f"pycocoevalcap was installed without {path.name}")
    command = [java, "-Xmx2G", "-Dfile.encoding=UTF-8", "-cp", str(path), *arguments]
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=limit)
    except subprocess.TimeoutExpired as error:
        raise JavaUnavailableError(f"java gave no answer in {limit:g} s") from error
    except OSError as error:
        raise JavaUnavailableError(f"java does not start: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip() or "no message"
        raise JavaUnavailableError(f"java failed: {said.splitlines()[-1].strip()}")
    return done.stdout.decode()
