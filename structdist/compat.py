"""A drop-in for `torch_struct.LinearChainCRF`, and conversions between it and ours.

torch-struct scores and returns *edges*. With `N` nodes and `C` states a batch of `B` chains has
log potentials, marginals and events ("parts") of shape `[B, N-1, C, C]`, and entry `[t, j, i]` is
about moving **from i to j**, from node `t` to node `t+1`: [to, from], the transpose of the rest of
this package. Zeros stand beyond a chain's length, which is its number of nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor
from torch.distributions import kl_divergence
from torch.nn.functional import one_hot, pad

from structdist import ops
from structdist.linear_chain import LinearChainCRF
from structdist.ops.edges import every_edge

try:
    import torch_struct
except ImportError as error:
    raise ImportError(
        'structdist.compat needs torch-struct: pip install "structdist[torch-struct]"'
    ) from error

Self = TypeVar("Self", bound="TorchStructLinearChainCRF")


class _State(NamedTuple):
    """What may change during the life of a distribution, and its answers with it."""

    version: int | None  # of the log potentials, in place; inference tensors have none
    requires_grad: bool
    backend: str | None


class _Computed(NamedTuple):
    """The chain that answers for a distribution in some state, and its answers so far."""

    state: _State | None
    crf: LinearChainCRF
    answers: dict[str, Tensor]  # by the name of the property


def _computed_once(compute: Callable[[Self], Tensor]) -> Callable[[Self], Tensor]:
    """Keep an answer that never has a graph, for as long as the distribution stays in its state.

    What is handed out is a copy: callers may change it in place, and outside inference mode it is
    an ordinary tensor, wherever the answer was computed.
    """

    @wraps(compute)
    def answer(self: Self) -> Tensor:
        if ops.numbers_are_hidden():
            return compute(self)
        answers = self._computed().answers
        if compute.__name__ not in answers:
            answers[compute.__name__] = compute(self)
        return answers[compute.__name__].clone()

    return answer


def _computed_once_unless_graph(compute: Callable[[Self], Tensor]) -> Callable[[Self], Tensor]:
    """Keep an answer as `_computed_once` does, but for one that is to have a graph.

    That one is made anew each time, from the forward pass that all answers share, so that every
    caller may run, and free, a graph of their own.
    """
    without_graph = _computed_once(compute)

    @wraps(compute)
    def answer(self: Self) -> Tensor:
        wants_graph = torch.is_grad_enabled() and self.log_potentials.requires_grad
        return compute(self) if wants_graph else without_graph(self)

    return answer


class TorchStructLinearChainCRF(torch_struct.LinearChainCRF):
    """`torch_struct.LinearChainCRF`, computed by the kernels of this package.

    Args:
        log_potentials: `[B, N-1, C, C]`, [to, from]; `-inf` forbids. They are never modified.
        lengths: `[B]`, numbers of nodes in `0..N` (default `N`), integers or whole floats. What
            stands beyond never matters.
        args: Anything. It is kept as the attribute `args`, as torch-struct does, and not used.
        validate_args: Whether to look at values, to raise errors that name what is wrong with them
            (default: as `torch.distributions.Distribution` is set).

    Names, kinds (property or method) and shapes are torch-struct's. Different by intent: samples
    are exact and independent over the batch, and come in any `sample_shape`; `-inf` gives no NaN;
    no length has to equal `N`, and an empty chain has one path. Half precision is computed, and
    answered, in float32.

    The forward pass runs once and is shared by all answers, and properties keep what they have
    computed, until `log_potentials` is changed in place (a change through `x.data`, or of an
    inference tensor, cannot be seen). Properties that carry a graph keep the forward pass alone:
    each time they are asked they make a new graph on it, so any number of backward passes can run.
    """

    arg_constraints: dict[str, torch.distributions.constraints.Constraint] = {}

    _last_computed: _Computed | None = None

    def __init__(
        self,
        log_potentials: Tensor,
        lengths: Tensor | None = None,
        args: Any = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        _require_edge_scores(log_potentials)
        if validate_args is not None:
            self._validate_args = validate_args  # which torch's constructor leaves as it is
        super().__init__(log_potentials, lengths, {} if args is None else args)
        if lengths is not None:
            self.lengths = self._whole_lengths(lengths)
        self._computed()  # raises where arguments are wrong

    def __repr__(self) -> str:
        num_edges, num_states, _ = self.event_shape
        return f"{type(self).__name__}(B={self.batch_shape[0]}, N={num_edges + 1}, C={num_states})"

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: everything but what can be computed again."""
        return {name: x for name, x in self.__dict__.items() if name != "_last_computed"}

    # The chain that answers ------------------------------------------------------------------

    @property
    def _crf(self) -> LinearChainCRF:
        """The same distribution over nodes: emissions are 0, and every edge has its transition."""
        return self._computed().crf

    def _computed(self) -> _Computed:
        """What holds of the present state: a chain without answers, if the state is a new one."""
        last = self._last_computed
        if last is None or not (ops.numbers_are_hidden() or last.state == self._state()):
            last = self._last_computed = _Computed(self._state(), self._make_crf(), {})
        return last

    def _state(self) -> _State | None:
        """The present state; None inside a transform, which does not show it."""
        if ops.numbers_are_hidden():
            return None
        potentials = self.log_potentials
        version = None if potentials.is_inference() else potentials._version
        return _State(version, potentials.requires_grad, ops.forced_backend())

    def _make_crf(self) -> LinearChainCRF:
        if self._validating:
            self._require_below_inf()
        batch, num_edges, num_states, _ = self.log_potentials.shape
        # A chain made while gradients are off would be cut off from the graph of the log potentials
        # for good. This one is part of it, and each answer heeds the mode in which it is asked.
        with torch.inference_mode(False), torch.enable_grad():
            emissions = self.log_potentials.new_zeros(batch, num_edges + 1, num_states)
            transitions = self.log_potentials.transpose(-1, -2)
            return LinearChainCRF(
                emissions, transitions, self.lengths, validate_args=self._validate_args
            )

    # Validation ------------------------------------------------------------------------------

    @property
    def _validating(self) -> bool:
        """Whether to look at values, which cannot be done inside a transform or without data."""
        return (
            self._validate_args and not ops.numbers_are_hidden() and not self.log_potentials.is_meta
        )

    def _whole_lengths(self, lengths: Tensor) -> Tensor:
        """Lengths `[B]` in a tensor of their own, as integers if they are floats."""
        lengths = torch.as_tensor(lengths, device=self.log_potentials.device)
        if lengths.shape != self.batch_shape:
            raise ValueError(f"lengths must be [B] with B = {self.batch_shape[0]}, got {lengths}")
        if not lengths.is_floating_point():
            return lengths.clone()
        if self._validating and not (lengths == lengths.trunc()).all():
            raise ValueError(f"lengths must be whole numbers, got {lengths}")
        return lengths.long()

    def _require_below_inf(self) -> None:
        bad = ~(self.log_potentials < torch.inf)
        if self.lengths is not None:
            bad = bad & _edges_in_chain(self.lengths, self.event_shape[0] + 1)
        if bad.any():
            index = bad.nonzero()[0].tolist()
            raise ValueError(
                "log_potentials must be finite or -inf, got "
                f"{self.log_potentials[tuple(index)].item()} at index {index}"
            )

    # Properties ------------------------------------------------------------------------------

    @property
    @_computed_once_unless_graph
    def partition(self) -> Tensor:
        """`[B]`: log of the sum of exp(score) over all paths."""
        return self._crf.log_partition

    @property
    @_computed_once_unless_graph
    def marginals(self) -> Tensor:
        """`[B, N-1, C, C]`: the probability of each edge."""
        return self._crf.edge_marginals.transpose(-1, -2)

    @property
    @_computed_once_unless_graph
    def entropy(self) -> Tensor:
        """`[B]`: in nats."""
        return self._crf.entropy()

    @property
    @_computed_once
    def count(self) -> Tensor:
        """`[B]`: the number of allowed paths, counted in float64."""
        lengths = self._crf.lengths
        allowed = (self._crf.transitions > -torch.inf).double()
        paths = allowed.new_ones(len(lengths), 1, allowed.shape[-1])
        for t in range(allowed.shape[1]):
            goes_on = (t + 1 < lengths)[:, None, None]
            paths = torch.where(goes_on, paths @ allowed[:, t], paths)
        counts = torch.where(lengths > 0, paths.sum((-1, -2)), 1.0)
        return counts.to(self._crf.emissions.dtype)

    @property
    @_computed_once
    def _best_path(self) -> Tensor:
        """`[B, N]`: the states of the best path, zero beyond the length."""
        return self._crf.argmax

    @property
    def argmax(self) -> Tensor:
        """`[B, N-1, C, C]`: the parts of the best path."""
        return _parts(self._crf.event_of(self._best_path))

    @property
    def mode(self) -> Tensor:
        """`[B, N-1, C, C]`: the same as `argmax`."""
        return self.argmax

    @property
    @_computed_once_unless_graph
    def max(self) -> Tensor:
        """`[B]`: the score of the best path, not normalised."""
        return self._crf.log_prob(self._best_path) + self.partition

    # Methods ---------------------------------------------------------------------------------

    def topk(self, k: int) -> Tensor:
        """`[k, B, N-1, C, C]`: the parts of the k best paths; zeros where a chain has fewer."""
        best = self._crf.topk(k)
        exists = (best.log_probs > -torch.inf)[..., None, None, None]
        return self.to_event(best.paths, self.event_shape[-1]) * exists.to(best.log_probs)

    def kmax(self, k: int) -> Tensor:
        """`[k, B]`: the scores of the k best paths, not normalised; -inf where there are fewer."""
        return self._crf.topk(k).log_probs + self.partition

    def log_prob(self, value: Tensor) -> Tensor:
        """`[*S, B]`, of parts `[*S, B, N-1, C, C]`; leading dimensions broadcast with `[B]`.

        So parts `[N-1, C, C]` are scored under each chain of the batch. The score is linear in the
        parts: relaxed ones are scored too, and gradients reach them.
        """
        self._require_parts(value)
        log_partition = self.partition
        in_use = _edges_in_chain(self._crf.lengths, self.event_shape[0] + 1)
        value = torch.where(in_use, value.to(log_partition.dtype), 0.0)
        forbidden = in_use & (self.log_potentials == -torch.inf)
        scores = torch.where(in_use & ~forbidden, self.log_potentials, 0.0).to(value)
        impossible = (forbidden & (value != 0)).flatten(-3).any(-1)
        total = (scores * value).flatten(-3).sum(-1) - log_partition
        return torch.where(impossible, -torch.inf, total)

    def _require_parts(self, value: Tensor) -> None:
        leading, last = value.shape[:-3], value.shape[-3:]
        if last != self.event_shape:
            raise ValueError(
                f"value must end in {tuple(self.event_shape)}, got {tuple(value.shape)}"
            )
        try:
            torch.broadcast_shapes(leading, self.batch_shape)
        except RuntimeError:
            raise ValueError(
                f"value has leading dimensions {tuple(leading)}, which do not broadcast with the "
                f"batch shape {tuple(self.batch_shape)}"
            ) from None

    def cross_entropy(self, other: torch_struct.LinearChainCRF) -> Tensor:
        """`[B]`: -E_self[log other]. An `other` without lengths takes those of `self`."""
        return self._crf.cross_entropy(self._crf_of(other))

    def kl(self, other: torch_struct.LinearChainCRF) -> Tensor:
        """`[B]`: KL(self || other). An `other` without lengths takes those of `self`."""
        return kl_divergence(self._crf, self._crf_of(other))

    def sample(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator | None = None
    ) -> Tensor:
        """`[*S, B, N-1, C, C]`: the parts of exact, independent draws."""
        return _parts(self._crf.sample(sample_shape, generator=generator))

    def gumbel_crf(
        self, temperature: float = 1.0, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """`[B, N-1, C, C]`: straight-through Gumbel-CRF parts, as torch-struct's are.

        The value is the one-hot parts of a draw that is exact at every temperature and independent
        over the batch. The gradient is that of `z[t+1, to] * z[t, from]` in the relaxed nodes z,
        so a reward that is the same for all parts has gradient 0.
        """
        nodes = self._crf.rsample(
            temperature=temperature, straight_through=True, generator=generator
        )
        return _parts(nodes)

    def to_event(self, sequence: Tensor, extra: int, lengths: Tensor | None = None) -> Tensor:
        """`[..., N-1, C, C]`, integers: the parts of paths `[..., N]` over `extra` = C states.

        Without `lengths` those of this distribution count, if it has any.
        """
        lengths = self.lengths if lengths is None else lengths
        in_use = torch.ones_like(sequence, dtype=torch.bool)
        if lengths is not None:
            lengths = torch.as_tensor(lengths, device=sequence.device)
            in_use = in_use & ops.in_chain(lengths, sequence.shape[-1])
        sequence = torch.where(in_use, sequence, 0)
        if self._validating and ((sequence < 0) | (sequence >= extra)).any():
            raise ValueError(f"sequence must hold states in 0..{extra - 1} within the lengths")
        return _parts(one_hot(sequence.long(), extra) * in_use.unsqueeze(-1))

    def from_event(self, event: Tensor) -> tuple[Tensor, int]:
        """Paths `[..., N]`, zero beyond the length, and C: of parts `[..., N-1, C, C]`."""
        as_target, as_source = event.sum(-1), event.sum(-2)  # [..., N-1, C]
        nodes = pad(as_target, (0, 0, 1, 0)) + pad(as_source, (0, 0, 0, 1))  # [..., N, C]
        return nodes.argmax(-1), event.shape[-1]

    def _crf_of(self, other: torch_struct.LinearChainCRF) -> LinearChainCRF:
        """Another distribution over nodes, with the lengths of this one if it has none."""
        _require_chain("other", other)
        theirs, ours = tuple(other.log_potentials.shape), tuple(self.log_potentials.shape)
        if theirs != ours:
            raise ValueError(f"other has log_potentials {theirs}, expected {ours}")
        if other.lengths is None and self.lengths is not None:
            other = TorchStructLinearChainCRF(
                other.log_potentials, self.lengths, validate_args=other._validate_args
            )
        return from_torch_struct(other)


def from_torch_struct(dist: torch_struct.LinearChainCRF) -> LinearChainCRF:
    """The same distribution over nodes: batch shape `[B]`, T = N, K = C.

    Its emissions are 0, and every edge has a transition of its own. `dist` may be torch-struct's
    `LinearChainCRF` or `HMM`, or the class above.
    """
    _require_chain("dist", dist)
    if not isinstance(dist, TorchStructLinearChainCRF):
        dist = TorchStructLinearChainCRF(
            dist.log_potentials, dist.lengths, validate_args=dist._validate_args
        )
    return dist._crf


def to_torch_struct(crf: LinearChainCRF) -> TorchStructLinearChainCRF:
    """The same distribution over edges `[B, T-1, K, K]`, batch dimensions flattened (1 if none).

    An edge takes the scores of the node it leads to, the first edge those of the first node too.
    """
    emissions, transitions, lengths = crf._parameters.flatten()
    stranded = (lengths == 1) & (emissions[:, 0] != 0).any(-1)
    if stranded.any():
        index = tuple(stranded.view(crf.batch_shape).nonzero()[0].tolist())
        raise ValueError(
            f"crf has a chain of length 1 with scores (batch index {index}, T = "
            f"{crf.event_shape[0]}): a single node has no edge, and torch-struct scores only edges"
        )
    edges = every_edge(transitions) + emissions[:, 1:, None, :]  # [B, T-1, from, to]
    edges = torch.cat([edges[:, :1] + emissions[:, :1, :, None], edges[:, 1:]], 1)
    edges = torch.where(_edges_in_chain(lengths, emissions.shape[1]), edges, 0.0)
    return TorchStructLinearChainCRF(
        edges.transpose(-1, -2), lengths, validate_args=crf._validate_args
    )


def _parts(nodes: Tensor) -> Tensor:
    """Nodes [..., N, C], hard or relaxed, as edges [..., N-1, C, C] ([to, from])."""
    return nodes[..., 1:, :, None] * nodes[..., :-1, None, :]


def _edges_in_chain(lengths: Tensor, num_nodes: int) -> Tensor:
    """[B, N-1, 1, 1]: which edges belong to their chain."""
    return ops.in_chain(lengths, num_nodes)[..., 1:, None, None]


def _require_chain(name: str, dist: torch_struct.LinearChainCRF) -> None:
    if getattr(dist, "struct", None) is not torch_struct.LinearChain:
        raise ValueError(f"{name} must be a torch_struct.LinearChainCRF, got {type(dist).__name__}")


def _require_edge_scores(log_potentials: Tensor) -> None:
    if not log_potentials.is_floating_point():
        raise ValueError(f"log_potentials must be floating point, got {log_potentials.dtype}")
    shape = tuple(log_potentials.shape)
    if len(shape) != 4 or shape[-1] != shape[-2] or shape[-1] == 0:
        raise ValueError(f"log_potentials must be [B, N-1, C, C] with C at least 1, got {shape}")
