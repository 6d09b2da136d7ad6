"""The linear chain as kernels see it: a flat batch of chains, as plain tensors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.edges import EdgeForm, are_shared, same_form
from structdist.ops.finite import bounded_scores


class Chain(NamedTuple):
    """N chains. Start and end scores are part of the emissions; entry [i, j] goes from i to j.

    What stands at or beyond a chain's length is padding: kernels never let it matter.
    """

    emissions: Tensor  # [N, T, K]
    transitions: Tensor  # [K, K], [N, K, K] or [N, T-1, K, K]
    lengths: Tensor  # [N], integers in 0..T

    @property
    def scores(self) -> tuple[Tensor, Tensor]:
        """What a path's score adds up from: scores of nodes and scores of edges."""
        return self.emissions, self.transitions

    def with_scores(self, scores: Sequence[Tensor]) -> Chain:
        """The same chains with other scores, in the order of `scores`."""
        emissions, transitions = scores
        return Chain(emissions, transitions, self.lengths)

    def with_values(self, values: Sequence[Tensor | None]) -> tuple[Chain, tuple[Tensor, Tensor]]:
        """These chains and values on their nodes and edges (None is 0), edges in one form."""
        nodes, edges = values
        nodes = torch.zeros_like(self.emissions) if nodes is None else nodes
        edges = torch.zeros_like(self.transitions) if edges is None else edges
        transitions, edges = same_form(self.transitions, edges)
        return Chain(self.emissions, transitions, self.lengths), (nodes, edges)

    def weighing(self, part: int, weights: Tensor) -> tuple[Tensor | None, Tensor | None]:
        """Values whose expectation is the sum of weights times marginals: of nodes, or of edges."""
        return (None, weights) if part else (weights, None)

    def shape_of_part(self, part: int) -> Sequence[int]:
        """Of the marginals of nodes, [N, T, K], or of edges, [N, T-1, K, K]."""
        num_chains, num_steps, num_states = self.emissions.shape
        edges = num_chains, num_steps - 1, num_states, num_states
        return edges if part else self.emissions.shape

    @property
    def shape_of_choices(self) -> Sequence[int]:
        """[N, T, K]: a state at each step."""
        return self.emissions.shape

    @property
    def form(self) -> EdgeForm:
        return EdgeForm.of(self.transitions)

    @property
    def is_shared(self) -> bool:
        """Do all moves of all chains share one matrix?"""
        return are_shared(self.transitions)

    @classmethod
    def example(cls, device: torch.device, dtype: torch.dtype) -> Chain:
        """A small problem, to ask backends whether they could serve its like."""
        scores = torch.zeros(1, 2, 2, device=device, dtype=dtype)
        return cls(scores, scores[0], torch.zeros(1, device=device, dtype=torch.long))


def full_precision(device: torch.device) -> AbstractContextManager[object]:
    """Keeps autocast and TF32 out of a block: products of weights need their digits."""
    if device.type == "cuda":
        return _full_precision_on_cuda()
    if torch.is_autocast_enabled(device.type):
        return torch.autocast(device.type, enabled=False)
    return nullcontext()


@contextmanager
def _full_precision_on_cuda() -> Iterator[None]:
    settings = torch.backends.cuda.matmul
    name, exact = "fp32_precision", "ieee"
    if not hasattr(settings, name):  # before torch 2.9
        name, exact = "allow_tf32", False  # type: ignore[assignment]
    before = getattr(settings, name)
    setattr(settings, name, exact)
    try:
        with torch.autocast("cuda", enabled=False):
            yield
    finally:
        setattr(settings, name, before)


def in_chain(lengths: Tensor, num_steps: int) -> Tensor:
    """Which steps belong to their chain: bool [..., T]."""
    return torch.arange(num_steps, device=lengths.device) < lengths.unsqueeze(-1)


def without_padding(chain: Chain) -> Chain:
    """Zeros in place of whatever stands beyond the lengths, so that not even NaN gets through."""
    active = in_chain(chain.lengths, chain.emissions.shape[1])
    emissions = torch.where(active[..., None], chain.emissions, 0.0)
    return Chain(bounded_scores(emissions), transitions_without_padding(chain), chain.lengths)


def transitions_without_padding(chain: Chain) -> Tensor:
    """The transitions alone, with zeros in place of those beyond the lengths."""
    transitions = chain.transitions
    if chain.form is EdgeForm.PER_STEP:
        active = in_chain(chain.lengths, chain.emissions.shape[1])
        transitions = torch.where(active[:, 1:, None, None], transitions, 0.0)
    return bounded_scores(transitions)
