"""`LinearChainCRF`: a distribution over state sequences that obeys `torch.distributions`.

This file holds what is the linear chain's own: its arguments, its events and its moves. What it
shares with other structures is in `base.py`, and the dynamic programs are in `structdist.ops`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeVar

import torch
from torch import Tensor
from torch.distributions import constraints

from structdist import perturb_map
from structdist.base import StructuredDistribution
from structdist.checks import require_log_probabilities, require_real, require_sample_shape
from structdist.events import (
    OneHotPaths,
    RelaxedPaths,
    enumerate_events,
    events_of,
    is_event,
    require_one_hot,
    require_states,
)
from structdist.potentials import (
    Potentials,
    flatten_edge_values,
    flatten_node_values,
    make_potentials,
)
from structdist.relaxation import given_or_drawn, require_temperature

if TYPE_CHECKING:
    import torch_struct


Chains = TypeVar("Chains", bound="LinearChainCRF")


class LinearChainCRF(StructuredDistribution):
    """A linear-chain conditional random field over paths of `T` steps and `K` states.

    Args:
        emissions: `[*B, T, K]`, the score of each state at each step.
        transitions: `[K, K]`, `[*B, K, K]` or, varying with time, `[*B, T-1, K, K]`; entry
            `[..., i, j]` scores moving from `i` to `j`.
        lengths: `[*B]`, integers in `0..T` (default `T`). What stands beyond never matters. Those
            who have a mask take `structdist.lengths_from_mask`.
        start, end: `[K]` or `[*B, K]`, scores of the first and the last state.

    `-inf` forbids. Events are one-hot, `[T, K]`, zeros beyond the length; paths are their integer
    form `[T]`. Integers that end in `[T, K]` are events too, unless T = K leaves a doubt: then
    `log_prob` asks. Half-precision scores are computed, and answered, in float32.

    Properties, without parentheses: `log_partition`, `marginals`, `edge_marginals`, `argmax`,
    `mode`, `mean`, `variance`. Methods: `log_prob`, `entropy`, `topk`, `sample`, `rsample` and all
    others.

    Example:
        Two chains of up to four steps over three states, the second of which has two steps:

        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> emissions, transitions = torch.zeros(2, 4, 3), torch.zeros(3, 3)
        >>> dist = LinearChainCRF(emissions, transitions, lengths=torch.tensor([4, 2]))
        >>> dist.log_partition.exp().round()  # all scores are 0: the number of paths, 3^4 and 3^2
        tensor([81.,  9.])
        >>> dist.marginals.shape, dist.argmax.shape, dist.sample((5,)).shape
        (torch.Size([2, 4, 3]), torch.Size([2, 4]), torch.Size([5, 2, 4, 3]))
        >>> z = dist.rsample(temperature=0.5, straight_through=True)
        >>> z.sum((-1, -2))  # a one for each step of a chain
        tensor([4., 2.])
        >>> path = torch.tensor([0, 1, 1, 2])
        >>> (1 / dist.log_prob(path).exp()).round()  # one of 81, and of 9
        tensor([81.,  9.])
    """

    arg_constraints = {
        name: constraints.dependent(is_discrete=False, event_dim=dims)
        for name, dims in (("emissions", 2), ("transitions", 2), ("start", 1), ("end", 1))
    }

    has_enumerate_support = True

    _parameters: Potentials
    _what_forbids = "emissions, transitions, start and end"

    def __init__(
        self,
        emissions: Tensor,
        transitions: Tensor,
        lengths: Tensor | None = None,
        *,
        start: Tensor | None = None,
        end: Tensor | None = None,
        validate_args: bool | None = None,
    ) -> None:
        potentials = make_potentials(emissions, transitions, lengths, start, end)
        super().__init__(potentials, validate_args)

    @classmethod
    def from_hmm(
        cls: type[Chains],
        initial: Tensor,
        transition: Tensor,
        observation: Tensor,
        lengths: Tensor | None = None,
        *,
        validate_args: bool | None = None,
    ) -> Chains:
        """The posterior of a hidden Markov model, from log probabilities.

        `initial` `[K]`, `transition` `[K, K]` (from, to), `observation` `[*B, T, K]`: of what was
        observed at each step, given each state. Then `log_partition` is the log evidence.

        Example:
            >>> import torch
            >>> from structdist import LinearChainCRF
            >>> moves = torch.tensor([[0.9, 0.1], [0.1, 0.9]])
            >>> coins = torch.tensor([[0.5, 0.5], [0.2, 0.8]])  # of each state: tails, heads
            >>> observed = torch.tensor([1, 1, 0])
            >>> dist = LinearChainCRF.from_hmm(
            ...     torch.tensor([0.5, 0.5]).log(), moves.log(), coins.log().T[observed]
            ... )
            >>> round(dist.log_partition.exp().item(), 4)  # the probability of what was observed
            0.1331
        """
        require_real("observation", observation, like=observation)
        require_real("transition", transition, like=observation)
        require_real("initial", initial, like=observation)
        made = cls(observation, transition, lengths, start=initial, validate_args=validate_args)
        made._require_markov(initial)
        return made

    @classmethod
    def markov(
        cls: type[Chains],
        initial: Tensor,
        transition: Tensor,
        num_steps: int,
        lengths: Tensor | None = None,
        *,
        validate_args: bool | None = None,
    ) -> Chains:
        """A Markov chain without observations, from log probabilities: a prior over paths.

        `initial` `[*B, K]`, `transition` `[K, K]`, `[*B, K, K]` or `[*B, T-1, K, K]` (from, to).
        Its `log_partition` is 0.

        Example:
            >>> import torch
            >>> from structdist import LinearChainCRF
            >>> half = torch.tensor([0.5, 0.5]).log()
            >>> prior = LinearChainCRF.markov(half, half.expand(2, 2), num_steps=3)
            >>> round(prior.entropy().item() / 0.6931, 3)  # three coins, in bits
            3.0
        """
        require_real("initial", initial, like=initial)
        require_real("transition", transition, like=initial)
        if isinstance(num_steps, bool) or not isinstance(num_steps, int) or num_steps < 1:
            raise ValueError(f"num_steps must be an integer from 1 up, got {num_steps!r}")
        if initial.dim() < 1:
            raise ValueError(f"initial must be [*B, K], got {tuple(initial.shape)}")
        emissions = initial.new_zeros(*initial.shape[:-1], num_steps, initial.shape[-1])
        made = cls(emissions, transition, lengths, start=initial, validate_args=validate_args)
        made._require_markov(initial)
        return made

    def _require_markov(self, initial: Tensor) -> None:
        """Raise unless the initial scores, and the moves within the lengths, are normalised."""
        if self._validating:
            require_log_probabilities("initial", initial)
            p = self._parameters
            moves = p.transitions
            if p.time_varying:
                in_use = p.active[..., 1:, None, None].expand(*p.batch_shape, -1, 1, 1)
                moves = torch.where(in_use, moves, -math.log(p.num_states))
            if p.num_steps > 1:
                require_log_probabilities("transition", moves)

    @classmethod
    def from_torch_struct(cls, dist: torch_struct.LinearChainCRF) -> LinearChainCRF:
        """The same distribution over nodes, from torch-struct's over edges."""
        from structdist.compat import from_torch_struct

        return from_torch_struct(dist)

    def to_torch_struct(self) -> torch_struct.LinearChainCRF:
        """A drop-in `torch_struct.LinearChainCRF` over edges, batch dimensions flattened."""
        from structdist.compat import to_torch_struct

        return to_torch_struct(self)

    def __repr__(self) -> str:
        batch_shape, (num_steps, num_states) = tuple(self.batch_shape), self.event_shape
        name = type(self).__name__
        return f"{name}(batch_shape={batch_shape}, T={num_steps}, K={num_states})"

    # Parameters, broadcast to the batch shape (transitions: as far as they differ) -----------

    @property
    def emissions(self) -> Tensor:
        """`[*B, T, K]`."""
        return self._parameters.emissions

    @property
    def transitions(self) -> Tensor:
        """`[K, K]`, `[*B, K, K]` or `[*B, T-1, K, K]`, with dimensions of size 1 kept."""
        return self._parameters.transitions

    @property
    def start(self) -> Tensor | None:
        """`[*B, K]`."""
        return self._parameters.start

    @property
    def end(self) -> Tensor | None:
        """`[*B, K]`."""
        return self._parameters.end

    # Events and paths ------------------------------------------------------------------------

    @constraints.dependent_property(is_discrete=True, event_dim=2)
    def support(self) -> OneHotPaths:
        """One-hot rows within the lengths, zeros beyond."""
        return OneHotPaths(self.lengths, *self.event_shape)

    @property
    def relaxed_support(self) -> RelaxedPaths:
        """Rows that sum to one within the lengths, where relaxed draws lie."""
        return RelaxedPaths(self.lengths, *self.event_shape)

    def event_of(self, paths: Tensor) -> Tensor:
        """`[*S, *B, T, K]`: integer paths `[*S, *B, T]` as one-hot events."""
        if self._validating:
            require_states("paths", paths, self.event_shape[1], self._parameters.active)
        is_state = (paths >= 0) & (paths < self.event_shape[1])  # else a row of zeros
        return self._events(torch.where(is_state, paths, 0)) * is_state.unsqueeze(-1)

    def _events(self, paths: Tensor) -> Tensor:
        known = self._parameters
        shape = (*self.batch_shape, known.num_steps)
        all_active = known.whole and paths.shape[-len(shape) :] == shape
        active = None if all_active else known.active
        return events_of(paths.long(), known.num_states, active, known.dtype)

    def _read(self, value: Tensor) -> Tensor:
        if not is_event(value, self.event_shape, self.batch_shape):
            if self._validating:
                self._broadcast_batch("value", value.shape[:-1])
                require_states("value", value, self.event_shape[1], self._parameters.active)
            return value.long()
        if self._validating:
            self._broadcast_batch("value", value.shape[:-2])
            require_one_hot(value, self._parameters.active)
        return (value.byte() if value.dtype == torch.bool else value).argmax(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """`[K^n, *B, T, K]`: every path of the common length n (`*B` of ones unless `expand`)."""
        lengths = self.lengths.unique().tolist()
        if len(lengths) > 1:
            raise NotImplementedError("chains of unequal lengths have unequal supports")
        length = lengths[0] if lengths else self.event_shape[0]
        events = enumerate_events(length, self.event_shape, self.emissions)
        ones = (1,) * len(self.batch_shape)
        events = events.view(-1, *ones, *self.event_shape)
        return events.expand(-1, *self.batch_shape, *self.event_shape) if expand else events

    # Edges -----------------------------------------------------------------------------------

    @property
    def edge_marginals(self) -> Tensor:
        """`[*B, T-1, K, K]`: the probability of each move from i to j. O(T K^2), memory too."""
        return self._marginals(1)

    def expectation(
        self, node_values: Tensor | None = None, edge_values: Tensor | None = None
    ) -> Tensor:
        """`[*B]`: E of the sum of values along the path. O(T K^2).

        `node_values` broadcast to `[*B, T, K]`; `edge_values` are `[K, K]`, `[*B, K, K]` or
        `[*B, T-1, K, K]`, from i to j; both finite. Differentiable in both.
        """
        nodes = edges = None
        if node_values is not None:
            nodes = flatten_node_values(node_values, self._parameters, self._validating)
        if edge_values is not None:
            edges = flatten_edge_values(edge_values, self._parameters, self._validating)
        return self._expectation((nodes, edges))

    def perturb_and_map(
        self,
        sample_shape: Sequence[int] = (),
        *,
        temperature: float | Tensor = 1.0,
        straight_through: bool = False,
        perturb: str = "edges",
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """`[*S, *B, T, K]`: Perturb-and-MAP (PM-MRF), a biased baseline with relaxed Viterbi.

        Gumbel noise is added to the first node and every edge (`perturb="edges"`, memory
        O(S B T K^2)) or to every node (`perturb="nodes"`, O(S B T K)). It can be given: `noise`
        `[*S, *B, T, K]` for nodes; for edges `[*S, *B, 1 + (T-1) K, K]`, the first row for the
        first node, then a row for each step and state that is left.
        """
        sample_shape = require_sample_shape(sample_shape)
        shape = sample_shape + self.batch_shape
        copies = sample_shape.numel(), self.batch_shape.numel()
        temperature = require_temperature(temperature, shape, copies, self._validating)
        noise_shape = perturb_map.noise_shape(perturb, *self.event_shape)
        noise = given_or_drawn(noise, shape + noise_shape, self._parameters, generator)
        chain = self._parameters.flatten()
        if self._validating:
            self._forward(chain)  # raises where there is no path to find
        noise = noise.reshape(*copies, *noise_shape)
        draw = perturb_map.perturb_and_map(chain, noise, temperature, perturb)
        return self._present(draw, shape, straight_through)
