"""Settings that all tests share.

One thread: the tensors here are tiny, and idle threads cost more than they bring. Hypothesis
searches the same examples on each run.
"""

import pytest
import torch
from hypothesis import settings
from torch.distributions import Distribution

from tests.structures.registry import using

torch.set_num_threads(1)
settings.register_profile("fixed", derandomize=True, deadline=None, max_examples=30)
settings.load_profile("fixed")


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
