"""A small corpus, the real one if `STRUCTDIST_DATA` names it, and Java of several kinds."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from models.metrics.text_files import read_references, read_texts

OUTPUTS = [
    "The Vaults is a cheap pub near Café Adriatic.",
    "Aromi serves Italian food. It's in the city centre!",
    "Zizzi, rated 3 out of 5, isn't family-friendly.",
]
REFERENCES = [
    [
        "Near Café Adriatic is The Vaults, a pub that is cheap.",
        "The Vaults is a cheap pub close to Café Adriatic.",
    ],
    ["Aromi serves Italian food in the city centre."],
    [
        "Zizzi is not family-friendly, and is rated 3 out of 5.",
        "Zizzi has a rating of 3 out of 5; children aren't welcome.",
        "Zizzi, rated 3 out of 5, isn't family-friendly.",
    ],
]


@pytest.fixture(scope="session")
def outputs_directory() -> Path:
    root = os.environ.get("STRUCTDIST_DATA")
    if not root:
        pytest.skip("STRUCTDIST_DATA does not name a directory with e2e-outputs/")
    return Path(root, "e2e-outputs")


@pytest.fixture(scope="session")
def tgen(outputs_directory: Path) -> list[str]:
    return read_texts(outputs_directory / "tgen.txt", "output")


@pytest.fixture(scope="session")
def official_references(outputs_directory: Path) -> list[list[str]]:
    return [i.texts for i in read_references(outputs_directory / "testset_refs.txt.gz")]


@pytest.fixture
def java() -> None:
    if shutil.which("java") is None:
        pytest.skip("there is no java here")


@pytest.fixture
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Puts a shell script in Java's place."""

    def install(script: str) -> None:
        program = tmp_path / "java"
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")

    return install
