"""The fast backends of linear chains, one after the other, for tests of chains alone."""

from __future__ import annotations

import pytest

from tests.structures.linear_chain import LinearChains
from tests.structures.registry import backends_of, using


@pytest.fixture(params=backends_of(LinearChains()))
def kernels(request):
    """The backend under test, behind the door."""
    with using(LinearChains(), request.param) as name:
        yield name
