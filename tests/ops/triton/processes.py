"""Tests that Triton wants in processes of their own: the interpreter, the compiler, a GPU."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
CONFORMANCE = ("tests/ops/test_kernels.py", "tests/test_every_backend.py")


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Python with a module and its arguments, in the root of the project."""
    clean = {name: x for name, x in os.environ.items() if not name.startswith("PYTEST")}
    clean.pop("TRITON_INTERPRET", None)
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=ROOT,
        env=clean | environment,
        capture_output=True,
        text=True,
    )


def passed_tests(*arguments: str, **environment: str) -> int:
    """How many tests pytest passes; an error with its report if one fails or is skipped."""
    done = run("pytest", "-p", "no:cacheprovider", *arguments, **environment)
    report = done.stdout[-4000:] + done.stderr[-2000:]
    assert done.returncode == 0, report
    summary = done.stdout.strip().splitlines()[-1]
    assert "skipped" not in summary, report
    return int(re.search(r"(\d+) passed", summary)[1])
