"""One fixture for the tests that every backend must pass."""

from __future__ import annotations

import pytest

from structdist import ops
from structdist.ops.native import library
from tests.traps.chains import BACKENDS


@pytest.fixture(params=BACKENDS)
def backend(request):
    """The name of the backend that does all the work of a test."""
    if request.param == "native" and library.unavailable is not None:
        pytest.skip(library.unavailable)
    with ops.use_backend(request.param):
        yield request.param
