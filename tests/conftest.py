"""Settings that all tests share.

One thread: the tensors here are tiny, and idle threads cost more than they bring. Hypothesis
searches the same examples on each run.
"""

import gc

import pytest
import torch
from hypothesis import settings
from torch.distributions import Distribution

from tests.structures.registry import using

torch.set_num_threads(1)
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=30)
settings.load_profile("fixed")


LONGEST = (
    "tests/ops/triton/test_in_interpreter.py",
    "tests/test_compile.py",
    "tests/models/training/test_resume.py",
    "tests/test_benchmarks.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files begin first, so that no worker is left alone with one at the end."""

    def rank(item: pytest.Item) -> int:
        file = item.nodeid.split("::")[0]
        return LONGEST.index(file) if file in LONGEST else len(LONGEST)

    items.sort(key=rank)


def pytest_collection_finish() -> None:
    """What is there before the first test stays to the end: no collection looks at it again.

    Thousands of tests are a million objects, and to go over them took a quarter of the time.
    """
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def _default_validation():
    """`torch.compile` turns validation off for the rest of the process."""
    before = Distribution._validate_args
    yield
    Distribution.set_default_validate_args(before)


@pytest.fixture
def backend(request):
    """The backend of a structure that does the work; see `tests.structures.registry.over`."""
    with using(*request.param) as name:
        yield name
