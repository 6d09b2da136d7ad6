"""`LinearChainCRF`: a distribution over state sequences that obeys `torch.distributions`.

This file holds shapes, validation and caching. The dynamic programs are in `structdist.ops`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints, register_kl

from structdist import divergences, ops, perturb_map
from structdist.events import (
    OneHotPaths,
    TopK,
    allowed_by,
    enumerate_events,
    events_of,
    paths_of,
    require_sample_shape,
    require_valid,
)
from structdist.potentials import (
    Potentials,
    flatten_edge_values,
    flatten_node_values,
    make_potentials,
    require_allowed_values,
    require_real,
    require_tensor,
)
from structdist.relaxation import (
    gumbel_noise,
    require_temperature,
    straight_through,
    uniform_noise,
)

if TYPE_CHECKING:
    import torch_struct


class LinearChainCRF(Distribution):
    """A linear-chain conditional random field over paths of `T` steps and `K` states.

    Args:
        emissions: `[*B, T, K]`, the score of each state at each step.
        transitions: `[K, K]`, `[*B, K, K]` or, varying with time, `[*B, T-1, K, K]`; entry
            `[..., i, j]` scores moving from `i` to `j`.
        lengths: `[*B]`, integers in `0..T` (default `T`). What stands beyond never matters.
        start, end: `[K]` or `[*B, K]`, scores of the first and the last state.

    `-inf` forbids. Events are one-hot, `[T, K]`, zeros beyond the length; paths are their integer
    form `[T]`. Half-precision scores are computed, and answered, in float32.
    """

    arg_constraints = {
        name: constraints.dependent(is_discrete=False, event_dim=dims)
        for name, dims in (("emissions", 2), ("transitions", 2), ("start", 1), ("end", 1))
    }
    has_rsample = True
    has_enumerate_support = True

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
        self._adopt(make_potentials(emissions, transitions, lengths, start, end), validate_args)
        if self._validating:
            require_allowed_values(self._potentials)

    def _adopt(self, potentials: Potentials, validate_args: bool | None) -> None:
        self._potentials = potentials
        self._filtered: ops.Filtered | None = None
        self._versions: tuple[int, ...] = ()
        event_shape = potentials.emissions.shape[-2:]
        super().__init__(potentials.batch_shape, event_shape, validate_args=validate_args)

    @property
    def _validating(self) -> bool:
        """Are values to be looked at? (Inside a transform they cannot be.)"""
        return self._validate_args and not ops.transforming()

    @classmethod
    def from_hmm(
        cls,
        initial: Tensor,
        transition: Tensor,
        observation: Tensor,
        lengths: Tensor | None = None,
        *,
        validate_args: bool | None = None,
    ) -> LinearChainCRF:
        """The posterior of a hidden Markov model, from log probabilities.

        `initial` `[K]`, `transition` `[K, K]` (from, to), `observation` `[*B, T, K]`: of what was
        observed at each step, given each state. Then `log_partition` is the log evidence.
        """
        require_real("observation", observation, like=observation)
        require_real("transition", transition, like=observation)
        require_real("initial", initial, like=observation)
        return cls(observation, transition, lengths, start=initial, validate_args=validate_args)

    @classmethod
    def from_torch_struct(cls, dist: torch_struct.LinearChainCRF) -> LinearChainCRF:
        """The same distribution over nodes, from torch-struct's over edges."""
        from structdist.compat import from_torch_struct

        return from_torch_struct(dist)

    def to_torch_struct(self) -> torch_struct.LinearChainCRF:
        """A drop-in `torch_struct.LinearChainCRF` over edges, batch dimensions flattened."""
        from structdist.compat import to_torch_struct

        return to_torch_struct(self)

    # Parameters, broadcast to the batch shape (transitions: as far as they differ) -----------

    @property
    def emissions(self) -> Tensor:
        return self._potentials.emissions

    @property
    def transitions(self) -> Tensor:
        return self._potentials.transitions

    @property
    def lengths(self) -> Tensor:
        return self._potentials.lengths

    @property
    def start(self) -> Tensor | None:
        return self._potentials.start

    @property
    def end(self) -> Tensor | None:
        return self._potentials.end

    @property
    def support(self) -> OneHotPaths:
        return OneHotPaths(self.lengths, *self.event_shape)

    def expand(
        self, batch_shape: Sequence[int], _instance: LinearChainCRF | None = None
    ) -> LinearChainCRF:
        new = self._get_checked_instance(LinearChainCRF, _instance)
        new._adopt(self._potentials.expand(torch.Size(batch_shape)), self._validate_args)
        return new

    def __repr__(self) -> str:
        batch_shape, (num_steps, num_states) = tuple(self.batch_shape), self.event_shape
        return f"LinearChainCRF(batch_shape={batch_shape}, T={num_steps}, K={num_states})"

    # Inference -------------------------------------------------------------------------------

    def _chain(self) -> ops.Chain:
        return self._potentials.flatten()

    def _filter(self) -> ops.Filtered | None:
        """The forward pass: run once, then shared, until a parameter is changed in place.

        Holds numbers only, never a graph.
        """
        if ops.transforming():
            return None
        known, versions = self._filtered, self._potentials.versions()
        leaving = known and known.log_z.is_inference() and not torch.is_inference_mode_enabled()
        if known is None or leaving or versions != self._versions:
            known = ops.filter(self._chain())
            assert known is not None
            self._require_possible(known.log_z)
            self._filtered, self._versions = known, versions
        return known

    def _require_possible(self, log_weight: Tensor) -> None:
        """Raise where the log weight [N] of all paths, or of the best, says that there is none."""
        if self._validating:
            impossible = (log_weight == -torch.inf).view(self.batch_shape)
            if impossible.any():
                index = tuple(impossible.nonzero()[0].tolist())
                raise ValueError(
                    f"the chain at batch index {index} has no allowed path: emissions, "
                    "transitions, start and end forbid every one"
                )

    def _per_chain(self, x: Tensor) -> Tensor:
        """[N, ...] as [*B, ...], in the dtype of the distribution."""
        return x.to(self.emissions.dtype).view(self.batch_shape + x.shape[1:])

    @property
    def log_partition(self) -> Tensor:
        """`[*B]`: log of the sum of exp(score) over all paths. O(T K^2)."""
        return self._per_chain(ops.log_partition(self._chain(), self._filter()))

    @property
    def marginals(self) -> Tensor:
        """`[*B, T, K]`: the probability of each state at each step. O(T K^2)."""
        return self._per_chain(ops.node_marginals(self._chain(), self._filter()))

    mean = marginals

    @property
    def variance(self) -> Tensor:
        mean = self.marginals
        return mean * (1 - mean)

    @property
    def edge_marginals(self) -> Tensor:
        """`[*B, T-1, K, K]`: the probability of each move from i to j. O(T K^2), memory too."""
        return self._per_chain(ops.edge_marginals(self._chain(), self._filter()))

    @property
    def argmax(self) -> Tensor:
        """`[*B, T]`: the best path (Viterbi). O(T K^2)."""
        best = ops.viterbi(self._chain())
        self._require_possible(best.score)
        return best.path.view(self.batch_shape + self.event_shape[:1])

    @property
    def mode(self) -> Tensor:
        """`[*B, T, K]`: the best event."""
        return self._events(self.argmax)

    def topk(self, k: int) -> TopK:
        """The `k` best paths, best first. O(T K^2 k)."""
        if isinstance(k, bool) or not isinstance(k, int) or k < 0:
            raise ValueError(f"k must be a non-negative integer, got {k!r}")
        chain, filtered = self._chain(), self._filter()
        found = ops.k_best(chain, max(k, 1))
        scores = ops.path_scores(chain, found.paths) - ops.log_partition(chain, filtered)
        log_probs = torch.where(found.scores == -torch.inf, -torch.inf, scores)
        paths = found.paths[:k].view(k, *self.batch_shape, self.event_shape[0])
        return TopK(paths, log_probs[:k].view(k, *self.batch_shape).to(self.emissions.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """`[*S, *B]`, of events `[*S, *B, T, K]` or integer paths `[*S, *B, T]`.

        Values beyond a chain's length do not matter. No gradient flows to the value.
        """
        paths = paths_of(value, self.event_shape)
        shape = self._potentials.broadcast_batch("value", paths.shape[:-1])
        if self._validating:
            require_valid(value, self.event_shape[1], self._potentials.active)
        samples = shape[: len(shape) - len(self.batch_shape)]
        paths = paths.expand(*shape, -1)
        paths = paths.reshape(samples.numel(), self.batch_shape.numel(), paths.shape[-1])
        chain = self._chain()
        log_probs = ops.path_scores(chain, paths) - ops.log_partition(chain, self._filter())
        return log_probs.to(self.emissions.dtype).view(shape)

    def entropy(self) -> Tensor:
        """`[*B]`: in nats, by the entropy semiring. O(T K^2)."""
        return self._per_chain(ops.entropy(self._chain(), self._filter()))

    def cross_entropy(self, other: LinearChainCRF) -> Tensor:
        """`[*B]`: -E_self[log other]; inf where `other` forbids what `self` allows."""
        return divergences.cross_entropy(self, other)

    def renyi_entropy(self, order: float) -> Tensor:
        """`[*B]`: 0 is the log number of allowed paths, 1 the entropy, inf that of the mode."""
        return divergences.renyi_entropy(self, order)

    def expectation(
        self, node_values: Tensor | None = None, edge_values: Tensor | None = None
    ) -> Tensor:
        """`[*B]`: E of the sum of values along the path. O(T K^2).

        `node_values` broadcast to `[*B, T, K]`; `edge_values` are `[K, K]`, `[*B, K, K]` or
        `[*B, T-1, K, K]`, from i to j; both finite. Differentiable in both.
        """
        nodes = edges = None
        if node_values is not None:
            nodes = flatten_node_values(node_values, self._potentials, self._validating)
        if edge_values is not None:
            edges = flatten_edge_values(edge_values, self._potentials, self._validating)
        return self._per_chain(ops.expectation(self._chain(), nodes, edges, self._filter()))

    # Samples ---------------------------------------------------------------------------------

    def _events(self, paths: Tensor) -> Tensor:
        num_states, active = self.event_shape[1], self._potentials.active
        return events_of(paths, num_states, active, self.emissions.dtype)

    def sample_paths(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator | None = None
    ) -> Tensor:
        """`[*S, *B, T]`: exact, independent draws (forward filtering, backward sampling).

        O(T K^2) once and O(T K) a sample.
        """
        sample_shape = require_sample_shape(sample_shape)
        with torch.no_grad():
            chain, filtered = self._chain(), self._filter()
            size = (sample_shape.numel(), *chain.emissions.shape[:2])
            uniform = uniform_noise(size, self.emissions.device, generator)
            paths = ops.sample_paths(chain, uniform, filtered)
        return paths.view(sample_shape + self.batch_shape + self.event_shape[:1])

    def sample(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator | None = None
    ) -> Tensor:
        """`[*S, *B, T, K]`: exact, independent draws as one-hot events."""
        return self._events(self.sample_paths(sample_shape, generator=generator))

    def rsample(
        self,
        sample_shape: Sequence[int] = (),
        *,
        temperature: float = 1.0,
        straight_through: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """`[*S, *B, T, K]`: Gumbel-FFBS, Algorithm 2 of Fu et al. (2020).

        The argmax of each row is an exact draw at every temperature; the temperature only softens
        the relaxation. With `straight_through` the value is that draw, one-hot, and the gradient
        is the relaxation's. O(T K^2) once and O(T K) a sample, both passes.
        """
        temperature = require_temperature(temperature)
        sample_shape = require_sample_shape(sample_shape)
        chain = self._chain()
        size = (sample_shape.numel(), *chain.emissions.shape)
        gumbel = gumbel_noise(size, chain.emissions, generator)
        draw = ops.gumbel_ffbs(chain, gumbel, temperature, self._filter())
        return self._present(draw, sample_shape, straight_through)

    def perturb_and_map(
        self,
        sample_shape: Sequence[int] = (),
        *,
        temperature: float = 1.0,
        straight_through: bool = False,
        perturb: str = "edges",
        generator: torch.Generator | None = None,
    ) -> Tensor:
        """`[*S, *B, T, K]`: Perturb-and-MAP (PM-MRF), a biased baseline with relaxed Viterbi.

        Gumbel noise is added to the first node and every edge (`perturb="edges"`, memory
        O(S B T K^2)) or to every node (`perturb="nodes"`, O(S B T K)).
        """
        temperature = require_temperature(temperature)
        sample_shape = require_sample_shape(sample_shape)
        if self._validating:
            self._filter()  # raises where there is no path to find
        draw = perturb_map.perturb_and_map(
            self._chain(), sample_shape.numel(), temperature, perturb, generator
        )
        return self._present(draw, sample_shape, straight_through)

    def _present(self, draw: ops.Draw, sample_shape: torch.Size, hard: bool) -> Tensor:
        """A kernel's draw [S, N, ...] in the shape of this distribution's samples."""
        shape = sample_shape + self.batch_shape
        soft = draw.soft.view(shape + self.event_shape)
        if not hard:
            return soft
        return straight_through(self._events(draw.path.view(shape + self.event_shape[:1])), soft)

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

    # New distributions -----------------------------------------------------------------------

    def condition(self, observed: Tensor) -> LinearChainCRF:
        """Given some labels: integers `[*B, T]`, -1 where unknown.

        The new `log_partition` minus this one is the log probability of what was observed.
        """
        return self.restrict(allowed_by(observed, self._potentials, self._validating))

    def restrict(self, allowed: Tensor) -> LinearChainCRF:
        """Within a bool mask of allowed states, `[*B, T, K]`."""
        require_tensor("allowed", allowed)
        if allowed.dtype != torch.bool:
            raise ValueError(f"allowed must be bool, got {allowed.dtype}")
        allowed = self._potentials.broadcast_steps("allowed", allowed, self.event_shape)
        allowed = allowed | ~self._potentials.active.unsqueeze(-1)
        batch = self.expand(allowed.shape[:-2])._potentials
        masked = batch.with_emissions(torch.where(allowed, batch.emissions, -torch.inf))
        new = self._get_checked_instance(LinearChainCRF)
        new._adopt(masked, self._validate_args)
        return new


register_kl(LinearChainCRF, LinearChainCRF)(divergences.kl)
