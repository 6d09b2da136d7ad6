"""The fast backends of linear chains, one after the other."""

from __future__ import annotations

import shutil

import pytest

from structdist import ops
from structdist.ops.native import library


@pytest.fixture(params=["native", "rescaled"])
def kernels(request):
    """The backend under test, behind the door."""
    if request.param == "native" and library.unavailable is not None:
        assert not any(map(shutil.which, ("c++", "g++"))), "a compiler, but no compiled kernels"
        pytest.skip(library.unavailable)
    with ops.use_backend(request.param):
        yield request.param
