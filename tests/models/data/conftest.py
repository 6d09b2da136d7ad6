"""Where the real data is, if it is anywhere: the directory that `STRUCTDIST_DATA` names."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def real_data(folder: str) -> Path:
    root = os.environ.get("STRUCTDIST_DATA")
    if not root or not Path(root, folder).is_dir():
        pytest.skip("STRUCTDIST_DATA does not name a directory with e2e/ and mscoco/")
    return Path(root, folder)


@pytest.fixture(scope="session")
def e2e_directory() -> Path:
    return real_data("e2e")


@pytest.fixture(scope="session")
def coco_directory() -> Path:
    return real_data("mscoco")
