"""The examples in docstrings run as they stand, and all that users call has one."""

import doctest
import importlib
import inspect
from typing import Any

import pytest

from tests.test_architecture import PUBLIC_MODULES


def public_callables() -> dict[str, Any]:
    """Classes and functions by their public names; not the named tuples that answers come in."""
    found = {}
    for module in map(importlib.import_module, PUBLIC_MODULES):
        for name in module.__all__:
            public = getattr(module, name)
            is_tuple = inspect.isclass(public) and issubclass(public, tuple)
            if inspect.isfunction(public) or (inspect.isclass(public) and not is_tuple):
                found[f"{module.__name__}.{name}"] = public
    return found


PUBLIC = public_callables()


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_run(name: str):
    """Each in a namespace of its own, so that a reader can copy it."""
    found = doctest.DocTestFinder().find(PUBLIC[name], name, globs={})
    assert any(test.examples for test in found), f"{name} has no example"
    runner = doctest.DocTestRunner(verbose=False)
    for test in found:
        runner.run(test)
    assert runner.summarize(verbose=False).failed == 0, "see the output"
