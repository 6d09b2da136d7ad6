"""`python -m tests.fuzz.sanitized`: the fuzzer, on kernels compiled with sanitizers.

What reads or writes beyond its memory, or does what C++ leaves undefined, ends the process with a
report. Arguments are those of `tests.fuzz`. Needs GCC and its sanitizers; exits with 0 where there
are none, and says so.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SANITIZERS = "-fsanitize=address,undefined"
FLAGS = f"{SANITIZERS} -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g1 -O1"


def runtime() -> str | None:
    """The library that has to be loaded before all others, or None where there is none."""
    if shutil.which("g++") is None:
        return None
    asked = ["g++", "-print-file-name=libasan.so"]
    path = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    return path if os.path.isabs(path) else None


def build(folder: Path) -> None:
    """A copy of the library in a folder, with kernels of its own, beside the same tests."""
    leave_out = shutil.ignore_patterns("_kernels.*", "__pycache__")
    shutil.copytree(ROOT / "structdist", folder / "structdist", ignore=leave_out)
    (folder / "tests").symlink_to(ROOT / "tests")
    command = [sys.executable, "setup.py", "-q", "build_ext", "--build-lib", str(folder)]
    command += ["--build-temp", str(folder / "build")]
    flags = {"CXX": "g++", "CXXFLAGS": FLAGS, "STRUCTDIST_KERNELS": "require"}
    subprocess.run(command, cwd=ROOT, env={**os.environ, **flags}, check=True)


def run(folder: Path, preloaded: str, arguments: list[str]) -> int:
    """The fuzzer, from a folder made by `build`."""
    environment = {
        **os.environ,
        "LD_PRELOAD": preloaded,
        "ASAN_OPTIONS": "detect_leaks=0",  # Python and torch keep what they have to the end
        "UBSAN_OPTIONS": "print_stacktrace=1",
        "PYTHONPATH": str(folder),
    }
    command = [sys.executable, "-m", "tests.fuzz", "--backends", "native", "--threads", "2"]
    return subprocess.run(
        [*command, *arguments], cwd=folder, env=environment, check=False
    ).returncode


def main(arguments: list[str]) -> int:
    """Build and run in a folder that is gone afterwards."""
    preloaded = runtime()
    if preloaded is None:
        print("there is no g++ with sanitizers here: the kernels were not run under them")
        return 0
    with tempfile.TemporaryDirectory() as name:
        build(Path(name))
        return run(Path(name), preloaded, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
