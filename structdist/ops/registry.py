"""Which backend does the work: one is picked for each problem, and can be forced.

with structdist.ops.use_backend("rescaled"): ...      # or STRUCTDIST_BACKEND=rescaled
structdist.ops.backends()                             # what is in use here, and why
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch

from structdist.ops.backend import AnyBackend, Reference
from structdist.ops.problem import Problem

REFERENCE = "reference"


@dataclass(frozen=True)
class Structure:
    """One kind of problem: its textbook, and its backends in order of preference."""

    name: str
    reference: Reference[Any]
    backends: tuple[AnyBackend, ...]
    operators: dict[str, AnyBackend]  # by name, of the backends that have them


class BackendStatus(NamedTuple):
    """Of one backend of one structure."""

    structure: str  #: "linear chain" or "semi-Markov chain"
    backend: str  #: its name, which `use_backend` takes
    in_use: bool  #: does it do the work?
    reason: str  #: why, or why not


_structures: dict[type[Problem], Structure] = {}
_default = os.environ.get("STRUCTDIST_BACKEND") or None
_forced: ContextVar[str | None] = ContextVar("structdist_backend", default=_default)
_forced_last = _default  # the same for the compiler, which cannot follow a context variable


def register(
    problem: type[Problem],
    name: str,
    reference: Reference[Any],
    *backends: AnyBackend,
    operators: Sequence[AnyBackend] = (),
) -> None:
    """Make a kind of problem known; the first backend that supports one serves it.

    Backends of one name share the work: the first ones serve special problems, the last any.
    `operators` are backends again, under the same names, in a form that the compiler can keep in
    a graph. A backend without them leaves compiled code to the reference.
    """
    by_name = {backend.NAME: backend for backend in operators}
    _structures[problem] = Structure(name, reference, backends, by_name)


def reference_for(problem: Problem) -> Reference[Any]:
    return _structures[type(problem)].reference


def backend_for(problem: Problem) -> AnyBackend | None:
    """The backend that serves a problem; None stands for the reference."""
    backend = _eager_backend_for(problem)
    if backend is not None and torch.compiler.is_compiling():
        return _structures[type(problem)].operators.get(backend.NAME)
    return backend


def _eager_backend_for(problem: Problem) -> AnyBackend | None:
    name, reason = forced_backend(), None
    if name == REFERENCE:
        return None
    for backend in _structures[type(problem)].backends:
        if name is None or name == backend.NAME:
            reason = backend.unsupported(problem)
            if reason is None:
                return backend
    if name is None:
        return None
    _require_known(name)
    if reason is not None:
        raise RuntimeError(f"the backend {name!r} was asked for, but {reason}")
    return None  # a structure without this backend


def forced_backend() -> str | None:
    """The name of the backend that is asked for, if one is."""
    return _forced_last if torch.compiler.is_compiling() else _forced.get()


@contextmanager
def use_backend(name: str) -> Iterator[None]:
    """Within the block this backend does all the work, or says why it cannot.

    "reference" is the textbook, in float64: slow, and differentiable to any order.
    """
    global _forced_last
    _require_known(name)
    before, token = _forced_last, _forced.set(name)
    _forced_last = name
    try:
        yield
    finally:
        _forced.reset(token)
        _forced_last = before


def _require_known(name: str) -> None:
    fast = [backend.NAME for s in _structures.values() for backend in s.backends]
    known = list(dict.fromkeys([*fast, REFERENCE]))
    if name not in known:
        raise ValueError(f"the backend must be one of {', '.join(known)}, got {name!r}")


def backends(
    device: torch.device | str = "cpu", dtype: torch.dtype = torch.float32
) -> list[BackendStatus]:
    """Every backend of every structure, for tensors of a device and dtype: in use or not, and why.

    Large problems may be beyond a backend that serves small ones; this asks for a small one.
    """
    found = []
    for problem_type, structure in _structures.items():
        names = [*dict.fromkeys(backend.NAME for backend in structure.backends), REFERENCE]
        try:
            problem = problem_type.example(torch.device(device), dtype)
        except (AssertionError, RuntimeError, NotImplementedError) as error:
            reason = f"torch has no {device} here: {error}"
            found += [BackendStatus(structure.name, name, False, reason) for name in names]
            continue
        chosen = backend_for(problem)
        why = {REFERENCE: "it is always there, in float64, and comes last"}
        for backend in structure.backends:
            serves = "it could serve, after those before it"
            why[backend.NAME] = backend.unsupported(problem) or serves
        in_use = REFERENCE if chosen is None else chosen.NAME
        why[in_use] = "it was asked for" if forced_backend() else "the first that can serve"
        found += [BackendStatus(structure.name, n, n == in_use, why[n]) for n in names]
    return found
