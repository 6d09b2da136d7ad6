"""Kernels compile for cards that are not there: nothing spills, and no product is rounded.

Compiling all of them takes longer than all other tests, so what came of it is kept on record,
together with the sources that it came from. Here the record is held against what is launched today
and against some kernels that are compiled anew; with the slow tests, all of them are.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.ops.triton.processes import run

MODULE = "tests.ops.triton.ahead_of_time"
TARGETS = ("sm_80", "sm_90", "gfx942")
MOST_SHARED = 48 * 1024  # bytes that every card has for a program
# Registers of a thread for log Z of each structure, by the number of states. (NVIDIA's cards have
# 255: with 128 states it is spilling alone that could fail there.)
CEILINGS = {
    "filter": {16: 128, 32: 240, 64: 240, 128: 320},
    "segment_filter": {16: 176, 32: 240, 64: 250, 128: 320},
}


def file_of(target: str) -> Path:
    return Path(__file__).parent / f"compiled/{target}.json"


def record_of(target: str) -> dict[str, Any]:
    return json.loads(file_of(target).read_text())


def printed(*arguments: str) -> list[Any]:
    done = run(MODULE, *arguments)
    assert done.returncode == 0, done.stderr[-3000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def today() -> list[Any]:
    """What is launched and, of some kernels, what they take."""
    return printed("sample", "4")


@pytest.mark.parametrize("target", TARGETS)
def test_no_kernel_spills_or_rounds_its_products(target: str):
    for name, taken in record_of(target)["kernels"]:
        assert taken["spilled"] == 0, name
        assert not taken["tf32"], name
        assert taken["shared"] <= MOST_SHARED, name
        file, num_states = name.split(".")[0], int(re.search(r"\bK=(\d+)", name)[1])
        if file in CEILINGS:
            assert taken["registers"] <= CEILINGS[file][num_states], name


@pytest.mark.parametrize("target", TARGETS)
def test_the_record_has_every_kernel_as_it_is_today(target: str, today: list[Any]):
    record, (now, *_) = record_of(target), today
    again = f"compile them again: python -m {MODULE} {target}"
    assert record["sources"] == now["sources"], again
    assert [name for name, _ in record["kernels"]] == now["launched"], again
    assert len(now["launched"]) >= 8 * 45


def test_what_is_compiled_anew_takes_what_the_record_says(today: list[Any]):
    compiled = today[1:]
    assert len(compiled) == 4 * len(TARGETS)
    for line in compiled:
        assert line["taken"] in record_of(line["target"])["kernels"], line


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_every_kernel_compiled_anew_takes_what_the_record_says(target: str, tmp_path: Path):
    assert printed(target, str(tmp_path)) == []
    assert (tmp_path / f"{target}.json").read_text() == file_of(target).read_text()
