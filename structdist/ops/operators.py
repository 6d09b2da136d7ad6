"""Backends of linear chains as operators, which `torch.compile` and `torch.export` keep in graphs.

Each operator is a function of a backend behind one signature: the tensors of the chain and of its
forward state, further tensors, and which gradients are wanted. `ChainOperators` makes them of any
backend that says, as a `Layout`, which tensors are its own. The eager path does not go through
here: an operator costs more than a small kernel. Temperatures are always tensors.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from structdist.ops.backend import Backend
from structdist.ops.chain import Chain
from structdist.ops.finite import rounded
from structdist.ops.problem import Best, Draw, Expected, Grads, KBest, Needs, Temperature, Values
from structdist.ops.reference import k_best
from structdist.ops.scoring import path_scores, path_scores_adjoint

SIGNATURE = "(Tensor[] chain, Tensor?[] state, Tensor?[] others, bool[] needs) -> Tensor[]"

Tensors = Sequence[Any]  # tensors, or None
Room = tuple[Sequence[int], torch.dtype]  # what to make an empty tensor of

_library = torch.library.Library("structdist", "DEF")


@dataclass(frozen=True)
class Layout:
    """The tensors that are a backend's own: their shapes and dtypes, for given chains."""

    version: int  # of all this: graphs outlive the library, in caches and files
    state_type: Any  # the named tuple that is the forward state
    state: Callable[[Chain], Sequence[Room]]  # its tensors, in their order
    given: Callable[[Chain], Room]  # `Expected.given`
    known: Callable[[Chain], Room]  # what `relaxed_viterbi` keeps for its adjoint
    restores_none: bool = False  # where a tensor of the state was None, is it again? see below


class _Call(NamedTuple):
    """What an operator is given."""

    chain: Chain
    state: Any
    others: Tensors
    needs: Needs

    def empty(self, shape: Sequence[int], dtype: torch.dtype) -> Tensor:
        return self.chain.emissions.new_empty(shape, dtype=dtype)

    def like(self, x: Tensor, dtype: torch.dtype | None = None) -> Tensor:
        return self.empty(x.shape, dtype or x.dtype)

    def by_chain(self) -> Tensor:
        return self.empty(self.chain.emissions.shape[:1], torch.float64)


Outputs = Sequence[Tensor | None]
Run = Callable[[Backend[Chain, Any], _Call], Outputs]
Empty = Callable[[Layout, _Call], Outputs]  # like the outputs, for tracing


def _empty_edges(layout: Layout, call: _Call) -> Outputs:
    num_chains, num_steps, num_states = call.chain.emissions.shape
    shape = num_chains, num_steps - 1, num_states, num_states
    return [call.empty(shape, call.chain.emissions.dtype)]


def _empty_grads(num_others: int) -> Empty:
    """Gradients of the scores and of the first of the other tensors, where they are wanted."""

    def empty(layout: Layout, call: _Call) -> Outputs:
        inputs = (*call.chain.scores, *call.others[:num_others])
        pairs = zip(inputs, call.needs, strict=True)
        return [call.like(x) if need and x is not None else None for x, need in pairs]

    return empty


def _empty_draw(layout: Layout, call: _Call) -> Outputs:
    soft = call.like(call.others[0], call.chain.emissions.dtype)
    return [soft, call.empty(soft.shape[:3], torch.long)]


def _empty_relaxed_viterbi(layout: Layout, call: _Call) -> Outputs:
    emissions = call.chain.emissions
    soft, path = call.like(emissions[None]), call.empty((1, *emissions.shape[:2]), torch.long)
    return [soft, path, call.empty(*layout.known(call.chain))]


def _run_relaxed_viterbi(backend: Backend[Chain, Any], call: _Call) -> Outputs:
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
        _empty_grads(0),
    ),
    "marginals": (
        lambda b, c: [b.marginals(c.chain, c.state, 0)],
        lambda layout, c: [c.like(c.chain.emissions)],
    ),
    "edge_marginals": (lambda b, c: [b.marginals(c.chain, c.state, 1)], _empty_edges),
    "entropy": (lambda b, c: b.entropy(c.chain, c.state), _empty_expected),
    "entropy_adjoint": (
        lambda b, c: b.entropy_adjoint(
            c.chain, c.state, Expected(*c.others[:2]), c.others[2], c.needs
        ),
        _empty_grads(0),
    ),
    "expectation": (lambda b, c: b.expectation(c.chain, c.state, c.others), _empty_expected),
    "expectation_adjoint": (
        lambda b, c: b.expectation_adjoint(
            c.chain, c.state, c.others[:2], Expected(*c.others[2:4]), c.others[4], c.needs
        ),
        _empty_grads(2),
    ),
    "sample_paths": (
        lambda b, c: [b.sample_paths(c.chain, c.state, c.others[0])],
        lambda layout, c: [c.like(c.others[0], torch.long)],
    ),
    "gumbel_ffbs": (lambda b, c: b.gumbel_ffbs(c.chain, c.state, *c.others), _empty_draw),
    "gumbel_ffbs_adjoint": (
        lambda b, c: b.gumbel_ffbs_adjoint(
            c.chain, c.state, Draw(*c.others[1:3]), c.others[0], c.others[3], c.needs
        ),
        _empty_grads(1),
    ),
    "viterbi": (
        lambda b, c: b.viterbi(c.chain),
        lambda layout, c: [c.empty(c.chain.emissions.shape[:2], torch.long), c.by_chain()],
    ),
    "relaxed_viterbi": (_run_relaxed_viterbi, _empty_relaxed_viterbi),
    "relaxed_viterbi_adjoint": (
        lambda b, c: b.relaxed_viterbi_adjoint(
            c.chain, c.others[1], Draw(*c.others[2:4]), c.others[0], c.others[4], c.needs
        ),
        _empty_grads(1),
    ),
}


class ChainOperators:
    """A backend of linear chains, whose functions are operators.

    A graph has all tensors of the state always: in place of None there is one with anything in it.
    If its layout wants None back, a further tensor, `present`, tells where it was. That one is on
    the CPU, so that nothing waits for a device to read it.
    """

    def __init__(self, backend: Backend[Chain, Any], layout: Layout) -> None:
        self.NAME, self._backend, self._layout = backend.NAME, backend, layout
        self._state_type = layout.state_type
        if layout.restores_none:
            fields = (*layout.state_type._fields, "present")
            self._state_type = namedtuple("_State", fields)  # type: ignore[misc]
        self._operators = {name: self._define(name, *pair) for name, pair in OPERATORS.items()}

    def full_name(self, name: str) -> str:
        """With the backend and, where its layout matters, the version of that."""
        version = "" if name == "viterbi" else f"_{self._layout.version}"
        return f"chain_{name}_{self.NAME}{version}"

    def _define(self, name: str, run: Run, empty: Empty) -> Callable[..., list[Tensor]]:
        is_filter, full_name = name == "filter", self.full_name(name)

        def real(chain: Tensors, state: Tensors, others: Tensors, needs: Needs) -> list[Tensor]:
            others = [None if x is None else x.contiguous() for x in others]
            call = _Call(Chain(*chain), self._eager_state(state), others, needs)
            reason = self._backend.unsupported(call.chain)
            if reason is not None:  # graphs go to devices that they were not made on
                raise RuntimeError(f"this graph was made for the backend {self.NAME!r}: {reason}")
            found = run(self._backend, call)
            found = self._without_none(found, call) if is_filter else found
            return [x.contiguous() for x in found if x is not None]

        def fake(chain: Tensors, state: Tensors, others: Tensors, needs: Needs) -> list[Tensor]:
            call = _Call(Chain(*chain), None, others, needs)
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
        self, name: str, chain: Chain, state: Tensors = (), others: Tensors = (), needs: Needs = ()
    ) -> list[Tensor]:
        return self._operators[name](list(chain), list(state), list(others), list(needs))

    def _adjoint(
        self, name: str, chain: Chain, state: Tensors, others: Tensors, needs: Needs
    ) -> Grads:
        """Gradients by input, None where none is wanted; that of the emissions is always found."""
        needs = (True, *needs[1:])
        left = iter(self._run(name, chain, state, others, needs))
        return [next(left) if need else None for need in needs]

    # The functions of a backend --------------------------------------------------------------

    def unsupported(self, chain: Chain) -> str | None:
        return self._backend.unsupported(chain)

    def filter(self, chain: Chain) -> tuple[Any, None]:
        return self._state_type(*self._run("filter", chain)), None

    def log_partition(self, chain: Chain, state: Any, dtype: torch.dtype) -> Tensor:
        return rounded(self._run("log_partition", chain, state)[0], dtype)

    def log_partition_adjoint(self, chain: Chain, state: Any, grad: Tensor, needs: Needs) -> Grads:
        return self._adjoint("log_partition_adjoint", chain, state, [grad], needs)

    def marginals(self, chain: Chain, state: Any, part: int) -> Tensor:
        return self._run("edge_marginals" if part else "marginals", chain, state)[0]

    def entropy(self, chain: Chain, state: Any) -> Expected:
        return Expected(*self._run("entropy", chain, state))

    def entropy_adjoint(
        self, chain: Chain, state: Any, expected: Expected, grad: Tensor, needs: Needs
    ) -> Grads:
        return self._adjoint("entropy_adjoint", chain, state, [*expected, grad], needs)

    def expectation(self, chain: Chain, state: Any, values: Values) -> Expected:
        return Expected(*self._run("expectation", chain, state, values))

    def expectation_adjoint(
        self,
        chain: Chain,
        state: Any,
        values: Values,
        expected: Expected,
        grad: Tensor,
        needs: Needs,
    ) -> Grads:
        others = [*values, *expected, grad]
        return self._adjoint("expectation_adjoint", chain, state, others, needs)

    def sample_paths(self, chain: Chain, state: Any, uniform: Tensor) -> Tensor:
        return self._run("sample_paths", chain, state, [uniform])[0]

    def gumbel_ffbs(
        self, chain: Chain, state: Any, gumbel: Tensor, temperature: Temperature
    ) -> Draw:
        others = [gumbel, _as_tensor(temperature, gumbel)]
        return Draw(*self._run("gumbel_ffbs", chain, state, others))

    def gumbel_ffbs_adjoint(
        self,
        chain: Chain,
        state: Any,
        draw: Draw,
        temperature: Temperature,
        grad: Tensor,
        needs: Needs,
    ) -> Grads:
        others = [_as_tensor(temperature, grad), *draw, grad]
        return self._adjoint("gumbel_ffbs_adjoint", chain, state, others, needs)

    def viterbi(self, chain: Chain) -> Best:
        return Best(*self._run("viterbi", chain))

    def relaxed_viterbi(self, chain: Chain, temperature: Temperature) -> tuple[Draw, Tensor]:
        others = [_as_tensor(temperature, chain.emissions)]
        soft, path, known = self._run("relaxed_viterbi", chain, (), others)
        return Draw(soft, path), known

    def relaxed_viterbi_adjoint(
        self,
        chain: Chain,
        known: Tensor,
        draw: Draw,
        temperature: Temperature,
        grad: Tensor,
        needs: Needs,
    ) -> Grads:
        others = [_as_tensor(temperature, grad), known, *draw, grad]
        return self._adjoint("relaxed_viterbi_adjoint", chain, (), others, needs)

    # What the compiler can follow as it is ---------------------------------------------------

    def path_scores(self, chain: Chain, paths: Tensor) -> Tensor:
        return path_scores(chain, paths)

    def path_scores_adjoint(self, chain: Chain, paths: Tensor, grad: Tensor, needs: Needs) -> Grads:
        return path_scores_adjoint(chain, paths, grad, needs)

    def k_best(self, chain: Chain, k: int) -> KBest:
        return k_best(chain, k)


def _as_tensor(temperature: Temperature, like: Tensor) -> Tensor:
    if isinstance(temperature, Tensor):
        return temperature
    return like.new_full((), temperature, dtype=torch.float64)
