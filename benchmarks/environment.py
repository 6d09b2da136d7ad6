"""Where and when a benchmark ran."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from datetime import datetime, timezone
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from models.process import CHOICES
from structdist.ops import backends

ROOT = Path(__file__).parent.parent


def describe(device: torch.device) -> dict[str, object]:
    """Everything a reader needs to judge the numbers; plain values, for JSON."""
    return {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        "revision": git_revision(),
        "device": device_name(device),
        "backend": backend_in_use(device),
        "threads": torch.get_num_threads(),
        "idle_threads": idle_threads(),
        "os": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "packages": {
            name: _version(name)
            for name in ("structdist", "triton", "torch-struct", "genbmm", "pytorch-crf", "jax")
        },
    }


def idle_threads() -> str:
    """How OpenMP's threads were told to wait for work, if they were."""
    return " ".join(f"{name}={os.environ[name]}" for name in CHOICES if name in os.environ)


def device_name(device: torch.device) -> str:
    return torch.cuda.get_device_name(device) if device.type == "cuda" else cpu_name()


def backend_in_use(device: torch.device) -> str:
    """By which backend structdist serves linear chains there, if they are not too large for it."""
    statuses = [status for status in backends(device) if status.structure == "linear chain"]
    return next(status.backend for status in statuses if status.in_use)


def cpu_name() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine()


def git_revision() -> str:
    """Short, with `-dirty` where files differ; `unknown` outside a repository."""
    command = ["git", "--no-optional-locks", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
