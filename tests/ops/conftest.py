"""The fast backends, one after the other."""

from __future__ import annotations

import shutil

import pytest

from structdist.ops import autograd, native, rescaled


@pytest.fixture(params=["native", "rescaled"])
def kernels(request, monkeypatch):
    """The backend under test, also behind the door."""
    if request.param == "native" and not native.available():
        assert not any(map(shutil.which, ("c++", "g++"))), "a compiler, but no compiled kernels"
        pytest.skip("there is no compiler, so the kernels were not built")
    module = {"native": native, "rescaled": rescaled}[request.param]
    monkeypatch.setattr(autograd, "kernels_for", lambda chain: module)
    return module
