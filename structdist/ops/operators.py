"""Backends of chains as operators, which `torch.compile` and `torch.export` keep in graphs.

Each operator is a function of a backend behind one signature: the tensors of the chain and of its
forward state, further tensors, and which gradients are wanted. `ChainOperators` makes them of any
backend of a `Kind` of chain, linear or semi-Markov, that says, as a `Layout`, which tensors are its
own. The eager path does not go through here: an operator costs more than a small kernel.
Temperatures are always tensors.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from structdist.ops.backend import AnyBackend
from structdist.ops.finite import rounded
from structdist.ops.problem import (
    Best,
    Draw,
    Expected,
    Grads,
    KBest,
    Needs,
    Problem,
    Temperature,
    Values,
)

SIGNATURE = "(Tensor[] chain, Tensor?[] state, Tensor?[] others, bool[] needs) -> Tensor[]"

Tensors = Sequence[Any]  # tensors, or None
Room = tuple[Sequence[int], torch.dtype]  # what to make an empty tensor of

_library = torch.library.Library("structdist", "DEF")


@dataclass(frozen=True)
class Kind:
    """What operators know of a kind of chain, whatever the backend."""

    name: str  # how the names of its operators begin
    problem: Any  # the named tuple that chains are given in
    marginals: tuple[str, ...]  # the operators for those of each kind of part
    plain: AnyBackend  # whose `path_scores`, their adjoint and `k_best` the compiler can follow


@dataclass(frozen=True)
class Layout:
    """The tensors that are a backend's own: their shapes and dtypes, for given chains."""

    version: int  # of all this: graphs outlive the library, in caches and files
    state_type: Any  # the named tuple that is the forward state
    state: Callable[[Any], Sequence[Room]]  # its tensors, in their order
    given: Callable[[Any], Room]  # `Expected.given`
    known: Callable[[Any], Room]  # what `relaxed_viterbi` keeps for its adjoint
    restores_none: bool = False  # where a tensor of the state was None, is it again? see below


class _Call(NamedTuple):
    """What an operator is given."""

    chain: Problem
    state: Any
    others: Tensors
    needs: Needs

    @property
    def dtype(self) -> torch.dtype:
        return self.chain.scores[0].dtype

    @property
    def num_scores(self) -> int:
        return len(self.chain.scores)

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        return self.chain.scores[0].new_empty(shape, dtype=dtype)

    def like(self, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        return self.empty(x.shape, dtype or x.dtype)

    def by_chain(self) -> Tensor:
        return self.empty(self.chain.lengths.shape, torch.float64)

    def path(self, num_samples: Sequence[int] = ()) -> Tensor:
        return self.empty((*num_samples, *self.chain.scores[0].shape[:2]), torch.long)


Outputs = Sequence[Tensor | None]
Run = Callable[[AnyBackend, _Call], Outputs]
Empty = Callable[[Layout, _Call], Outputs]  # like the outputs, for tracing


def _marginals(part: int) -> tuple[Run, Empty]:
    """The operator for those of one kind of part."""
    return (
        lambda b, c: [b.marginals(c.chain, c.state, part)],
        lambda layout, c: [c.empty(c.chain.shape_of_part(part), c.dtype)],
    )


def _empty_grads(layout: Layout, call: _Call) -> Outputs:
    """Gradients of the scores and of the first of the other tensors, where they are wanted."""
    inputs = (*call.chain.scores, *call.others)
    pairs = zip(inputs, call.needs, strict=False)
    return [call.like(x) if need and x is not None else None for x, need in pairs]


def _run_expectation_adjoint(backend: AnyBackend, call: _Call) -> Outputs:
    values, others = call.others[: call.num_scores], call.others[call.num_scores :]
    expected, grad = Expected(*others[:2]), others[2]
    return backend.expectation_adjoint(call.chain, call.state, values, expected, grad, call.needs)


def _empty_draw(layout: Layout, call: _Call) -> Outputs:
    soft = call.like(call.others[0], call.dtype)
    return [soft, call.path(soft.shape[:1])]


def _empty_relaxed_viterbi(layout: Layout, call: _Call) -> Outputs:
    soft = call.empty((1, *call.chain.shape_of_choices), call.dtype)
    return [soft, call.path((1,)), call.empty(*layout.known(call.chain))]


def _run_relaxed_viterbi(backend: AnyBackend, call: _Call) -> Outputs:
    draw, known = backend.relaxed_viterbi(call.chain, call.others[0])
    return [*draw, known]


def _empty_expected(layout: Layout, call: _Call) -> Outputs:
    return [call.by_chain(), call.empty(*layout.given(call.chain))]


OPERATORS: dict[str, tuple[Run, Empty]] = {
    "filter": (
        lambda b, c: b.filter(c.chain)[0],
        lambda layout, c: [c.empty(*room) for room in layout.state(c.chain)],
    ),
    "log_partition": (
        lambda b, c: [b.log_partition(c.chain, c.state, torch.float64)],
        lambda layout, c: [c.by_chain()],
    ),
    "log_partition_adjoint": (
        lambda b, c: b.log_partition_adjoint(c.chain, c.state, c.others[0], c.needs),
        _empty_grads,
    ),
    "entropy": (lambda b, c: b.entropy(c.chain, c.state), _empty_expected),
    "entropy_adjoint": (
        lambda b, c: b.entropy_adjoint(
            c.chain, c.state, Expected(*c.others[:2]), c.others[2], c.needs
        ),
        _empty_grads,
    ),
    "expectation": (lambda b, c: b.expectation(c.chain, c.state, c.others), _empty_expected),
    "expectation_adjoint": (_run_expectation_adjoint, _empty_grads),
    "sample_paths": (
        lambda b, c: [b.sample_paths(c.chain, c.state, c.others[0])],
        lambda layout, c: [c.like(c.others[0], torch.long)],
    ),
    "gumbel_ffbs": (lambda b, c: b.gumbel_ffbs(c.chain, c.state, *c.others), _empty_draw),
    "gumbel_ffbs_adjoint": (
        lambda b, c: b.gumbel_ffbs_adjoint(
            c.chain, c.state, Draw(*c.others[1:3]), c.others[0], c.others[3], c.needs
        ),
        _empty_grads,
    ),
    "viterbi": (
        lambda b, c: b.viterbi(c.chain),
        lambda layout, c: [c.path(), c.by_chain()],
    ),
    "relaxed_viterbi": (_run_relaxed_viterbi, _empty_relaxed_viterbi),
    "relaxed_viterbi_adjoint": (
        lambda b, c: b.relaxed_viterbi_adjoint(
            c.chain, c.others[1], Draw(*c.others[2:4]), c.others[0], c.others[4], c.needs
        ),
        _empty_grads,
    ),
}


class ChainOperators:
    """A backend of one kind of chain, whose functions are operators.

    A graph has all tensors of the state always: in place of None there is one with anything in it.
    If its layout wants None back, a further tensor, `present`, tells where it was. That one is on
    the CPU, so that nothing waits for a device to read it.
    """

    def __init__(self, kind: Kind, backend: AnyBackend, layout: Layout) -> None:
        self.NAME, self._kind, self._backend, self._layout = backend.NAME, kind, backend, layout
        self._state_type = layout.state_type
        if layout.restores_none:
            fields = (*layout.state_type._fields, "present")
            self._state_type = namedtuple("_State", fields)  # type: ignore[misc]
        marginals = {name: _marginals(part) for part, name in enumerate(kind.marginals)}
        self._operators = {
            name: self._define(name, *pair) for name, pair in (OPERATORS | marginals).items()
        }

    @property
    def names(self) -> list[str]:
        """Of all its operators, without backend and version."""
        return list(self._operators)

    def full_name(self, name: str) -> str:
        """With the backend and, where its layout matters, the version of that."""
        version = "" if name == "viterbi" else f"_{self._layout.version}"
        return f"{self._kind.name}_{name}_{self.NAME}{version}"

    def _define(self, name: str, run: Run, empty: Empty) -> Callable[..., list[Tensor]]:
        is_filter, full_name = name == "filter", self.full_name(name)

        def real(chain: Tensors, state: Tensors, others: Tensors, needs: Needs) -> list[Tensor]:
            others = [None if x is None else x.contiguous() for x in others]
            call = _Call(self._kind.problem(*chain), self._eager_state(state), others, needs)
            reason = self._backend.unsupported(call.chain)
            if reason is not None:  # graphs go to devices that they were not made on
                raise RuntimeError(f"this graph was made for the backend {self.NAME!r}: {reason}")
            found = run(self._backend, call)
            found = self._without_none(found, call) if is_filter else found
            return _apart([x.contiguous() for x in found if x is not None])

        def fake(chain: Tensors, state: Tensors, others: Tensors, needs: Needs) -> list[Tensor]:
            call = _Call(self._kind.problem(*chain), None, others, needs)
            found = empty(self._layout, call)
            found = self._without_none(found, call) if is_filter else found
            return [x for x in found if x is not None]

        _library.define(full_name + SIGNATURE, tags=(torch.Tag.flexible_layout,))
        _library.impl(full_name, real, "CompositeExplicitAutograd")
        torch.library.register_fake(f"structdist::{full_name}", fake, lib=_library)
        operator: Callable[..., list[Tensor]] = getattr(torch.ops.structdist, full_name)
        return operator

    def _without_none(self, state: Outputs, call: _Call) -> Outputs:
        rooms = zip(state, self._layout.state(call.chain), strict=True)
        filled = [call.empty(*room) if x is None else x for x, room in rooms]
        if not self._layout.restores_none:
            return filled
        return [*filled, torch.tensor([x is not None for x in state], device="cpu")]

    def _eager_state(self, state: Tensors) -> Any:
        if not state:
            return None  # there is none yet, or none is needed
        if not self._layout.restores_none:
            return self._layout.state_type(*state)
        *tensors, present = state
        pairs = zip(tensors, present.tolist(), strict=True)
        return self._layout.state_type(*(x if there else None for x, there in pairs))

    def _run(
        self, name: str, chain: Any, state: Tensors = (), others: Tensors = (), needs: Needs = ()
    ) -> list[Tensor]:
        return self._operators[name](list(chain), list(state), list(others), list(needs))

    def _adjoint(
        self, name: str, chain: Any, state: Tensors, others: Tensors, needs: Needs
    ) -> Grads:
        """Gradients by input, None where none is wanted; that of the emissions is always found."""
        needs = (True, *needs[1:])
        left = iter(self._run(name, chain, state, others, needs))
        return [next(left) if need else None for need in needs]

    # The functions of a backend --------------------------------------------------------------

    def unsupported(self, chain: Any) -> str | None:
        return self._backend.unsupported(chain)

    def filter(self, chain: Any) -> tuple[Any, None]:
        return self._state_type(*self._run("filter", chain)), None

    def log_partition(self, chain: Any, state: Any, dtype: torch.dtype) -> Tensor:
        return rounded(self._run("log_partition", chain, state)[0], dtype)

    def log_partition_adjoint(self, chain: Any, state: Any, grad: Tensor, needs: Needs) -> Grads:
        return self._adjoint("log_partition_adjoint", chain, state, [grad], needs)

    def marginals(self, chain: Any, state: Any, part: int) -> Tensor:
        return self._run(self._kind.marginals[part], chain, state)[0]

    def entropy(self, chain: Any, state: Any) -> Expected:
        return Expected(*self._run("entropy", chain, state))

    def entropy_adjoint(
        self, chain: Any, state: Any, expected: Expected, grad: Tensor, needs: Needs
    ) -> Grads:
        return self._adjoint("entropy_adjoint", chain, state, [*expected, grad], needs)

    def expectation(self, chain: Any, state: Any, values: Values) -> Expected:
        return Expected(*self._run("expectation", chain, state, values))

    def expectation_adjoint(
        self,
        chain: Any,
        state: Any,
        values: Values,
        expected: Expected,
        grad: Tensor,
        needs: Needs,
    ) -> Grads:
        others = [*values, *expected, grad]
        return self._adjoint("expectation_adjoint", chain, state, others, needs)

    def sample_paths(self, chain: Any, state: Any, uniform: Tensor) -> Tensor:
        return self._run("sample_paths", chain, state, [uniform])[0]

    def gumbel_ffbs(self, chain: Any, state: Any, gumbel: Tensor, temperature: Temperature) -> Draw:
        others = [gumbel, _as_tensor(temperature, gumbel)]
        return Draw(*self._run("gumbel_ffbs", chain, state, others))

    def gumbel_ffbs_adjoint(
        self,
        chain: Any,
        state: Any,
        draw: Draw,
        temperature: Temperature,
        grad: Tensor,
        needs: Needs,
    ) -> Grads:
        others = [_as_tensor(temperature, grad), *draw, grad]
        return self._adjoint("gumbel_ffbs_adjoint", chain, state, others, needs)

    def viterbi(self, chain: Any) -> Best:
        return Best(*self._run("viterbi", chain))

    def relaxed_viterbi(self, chain: Any, temperature: Temperature) -> tuple[Draw, Tensor]:
        others = [_as_tensor(temperature, chain.scores[0])]
        soft, path, known = self._run("relaxed_viterbi", chain, (), others)
        return Draw(soft, path), known

    def relaxed_viterbi_adjoint(
        self,
        chain: Any,
        known: Tensor,
        draw: Draw,
        temperature: Temperature,
        grad: Tensor,
        needs: Needs,
    ) -> Grads:
        others = [_as_tensor(temperature, grad), known, *draw, grad]
        return self._adjoint("relaxed_viterbi_adjoint", chain, (), others, needs)

    # What the compiler can follow as it is ---------------------------------------------------

    def path_scores(self, chain: Any, paths: Tensor) -> Tensor:
        return self._kind.plain.path_scores(chain, paths)

    def path_scores_adjoint(self, chain: Any, paths: Tensor, grad: Tensor, needs: Needs) -> Grads:
        return self._kind.plain.path_scores_adjoint(chain, paths, grad, needs)

    def k_best(self, chain: Any, k: int) -> KBest:
        return self._kind.plain.k_best(chain, k)


def _apart(outputs: list[Tensor]) -> list[Tensor]:
    """The same, each in memory of its own, which is what the compiler takes for granted."""
    places = [x.untyped_storage().data_ptr() for x in outputs]
    return [x.clone() if places[n] in places[:n] else x for n, x in enumerate(outputs)]


def _as_tensor(temperature: Temperature, like: Tensor) -> Tensor:
    if isinstance(temperature, Tensor):
        return temperature
    return like.new_full((), temperature, dtype=torch.float64)
