"""Libraries that only the metrics need: imported where they are used, so they are optional."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


class MissingLibraryError(ImportError):
    """A library of the extra `metrics` is not installed."""


@contextmanager
def metrics_extra() -> Iterator[None]:
    """Imports in its body that fail say what to install."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingLibraryError(
            f"{error.name} is not installed: pip install 'structdist[metrics]'", name=error.name
        ) from error


TIME_LIMIT = 120.0  # seconds for a program that needs one or two


class JavaUnavailableError(RuntimeError):
    """No Java here, or one that does not do its work; the message says why."""


def find_java() -> str:
    """The program's path."""
    java = shutil.which("java")
    if java is None:
        raise JavaUnavailableError("no java on the PATH")
    return java


def bundled_jar(name: str) -> Path:
    """A Java archive that pycocoevalcap brings along."""
    with metrics_extra():
        import pycocoevalcap
    jar = Path(next(iter(pycocoevalcap.__path__))) / name
    if not jar.is_file():
        raise JavaUnavailableError(f"pycocoevalcap was installed without {jar.name}")
    return jar


def run_java(arguments: Sequence[str], text: str) -> str:
    """What a Java program prints when it is given the text, both in UTF-8."""
    command = [find_java(), "-Dfile.encoding=UTF-8", *arguments]
    try:
        done = subprocess.run(command, input=text.encode(), capture_output=True, timeout=TIME_LIMIT)
    except subprocess.TimeoutExpired as error:
        raise JavaUnavailableError(f"java gave no answer in {TIME_LIMIT:g} s") from error
    except OSError as error:
        raise JavaUnavailableError(f"java does not start: {error.strerror}") from error
    if done.returncode != 0:
        raise JavaUnavailableError(f"java failed: {last_line(done.stderr)}")
    return done.stdout.decode()


def last_line(stderr: bytes) -> str:
    """The line of an error message that says most."""
    lines = stderr.decode(errors="replace").strip().splitlines()
    return lines[-1].strip() if lines else "no message"
