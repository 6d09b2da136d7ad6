"""Every structure under test, and how tests are parametrised by what it offers."""

from __future__ import annotations

import inspect
import itertools
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from structdist import ops
from structdist.ops import registry
from structdist.ops.native import library
from structdist.ops.triton import launching
from tests.structures.linear_chain import LinearChains
from tests.structures.semi_markov import SemiMarkovChains
from tests.structures.structure import Structure

TRITON_ALONE = launching.interpreted() or os.environ.get("STRUCTDIST_TEST_DEVICE") == "cuda"

Choice = str | Iterable | Callable[[Structure], Iterable]

STRUCTURES: list[Structure] = [LinearChains(), SemiMarkovChains()]


def over(*, backends: str | None = None, **choices: Choice) -> Callable:
    """Parametrise a test by every structure, and by entries of its collections.

    `over(example="examples", ask="quantities")` gives a test every `example` and every `ask` of
    each structure. What is no name of a collection is a collection itself, or a function that gives
    one for a structure. A test that has an argument `structure` gets that too. With
    `backends="fast"` (or `"all"`, which has the reference too, or `"first"`, the one that is in use
    unless another is forced) a test gets a `backend` as well: one of the structure's, in use while
    the test runs.
    """

    def decorate(test: Callable) -> Callable:
        wanted = [name for name in ("structure",) if name in inspect.signature(test).parameters]
        names = [*wanted, *(["backend"] if backends else []), *choices]
        cases = [
            pytest.param(*(choice for _, choice in case[1 - len(wanted) :]), id=_id(case))
            for structure in STRUCTURES
            for case in itertools.product(*_collections(structure, backends, choices))
        ]
        indirect = ["backend"] if backends else False
        return pytest.mark.parametrize(names, cases, indirect=indirect)(test)

    return decorate


def _collections(
    structure: Structure, backends: str | None, choices: Mapping[str, Choice]
) -> list[list[tuple[str, Any]]]:
    """Named entries: of the structure, of backends if asked for, and of each collection."""
    found = [[(structure.name, structure)]]
    if backends:
        names = backends_of(structure, with_reference=backends == "all")
        names = names[:1] if backends == "first" else names
        found.append([(name, (structure, name)) for name in names])
    return [*found, *(_named(_collection(structure, choice)) for choice in choices.values())]


def _collection(structure: Structure, choice: Choice) -> Iterable:
    if isinstance(choice, str):
        return getattr(structure, choice)
    return choice(structure) if callable(choice) else choice


def _named(collection: Iterable) -> list[tuple[str, Any]]:
    if isinstance(collection, Mapping):
        return list(collection.items())
    return [(str(getattr(x, "name", x)), x) for x in collection]


def _id(case: tuple[tuple[str, Any], ...]) -> str:
    return "-".join(name for name, _ in case)


# Backends ------------------------------------------------------------------------------------


def backends_of(structure: Structure, *, with_reference: bool = False) -> list[str]:
    """The names of the fast backends of a structure, and "reference" if that is wanted.

    Triton is tested in processes of its own: there it is the only one, and elsewhere none.
    """
    names = [status.backend for status in ops.backends() if status.structure == structure.name]
    names = [name for name in names if with_reference or name != registry.REFERENCE]
    return [name for name in names if (name == "triton") == TRITON_ALONE]


@contextmanager
def using(structure: Structure, backend: str) -> Iterator[str]:
    """One backend does the work; the test is skipped, with the reason, where it cannot.

    The compiled kernels may be missing only where there is no compiler.
    """
    if backend == "native" and library.unavailable is not None:
        assert not any(map(shutil.which, ("c++", "g++"))), "a compiler, but no compiled kernels"
    with ops.use_backend(backend):
        try:
            registry.backend_for(next(iter(structure.problems.values())))
        except RuntimeError as error:
            pytest.skip(str(error))
        yield backend
