"""A drop-in for `torch_struct.LinearChainCRF`, and conversions between it and ours.

torch-struct scores and returns *edges*. With `N` nodes and `C` states a batch of `B` chains has
log potentials, marginals and events ("parts") of shape `[B, N-1, C, C]`, and entry `[t, j, i]` is
about moving **from i to j**, from node `t` to node `t+1`: [to, from], the transpose of the rest of
this package. Zeros stand beyond a chain's length, which is its number of nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

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


class TorchStructLinearChainCRF(torch_struct.LinearChainCRF):
    """`torch_struct.LinearChainCRF`, computed by the kernels of this package.

    Args:
        log_potentials: `[B, N-1, C, C]`, [to, from]; `-inf` forbids. Never modified.
        lengths: `[B]`, numbers of nodes in `0..N` (default `N`). What stands beyond never matters.

    Names, kinds (property or method) and shapes are torch-struct's. Different by intent: samples
    are exact and independent over the batch, and come in any `sample_shape`; `-inf` gives no NaN;
    no length has to equal `N`, and an empty chain has one path. Half precision is computed, and
    answered, in float32.
    """

    arg_constraints: dict[str, torch.distributions.constraints.Constraint] = {}

    def __init__(self, log_potentials: Tensor, lengths: Tensor | None = None) -> None:
        _require_shapes(log_potentials, lengths)
        super().__init__(log_potentials, lengths)
        batch, num_edges, num_states, _ = log_potentials.shape
        if self._validate_args:
            _require_below_inf(log_potentials, lengths)
        nodes = log_potentials.new_zeros(batch, num_edges + 1, num_states)
        self._crf = LinearChainCRF(nodes, log_potentials.transpose(-1, -2), lengths)

    def __repr__(self) -> str:
        num_nodes, num_states = self._crf.event_shape
        return f"{type(self).__name__}(B={self.batch_shape[0]}, N={num_nodes}, C={num_states})"

    @property
    def partition(self) -> Tensor:
        """`[B]`: log of the sum of exp(score) over all paths."""
        return self._crf.log_partition

    @property
    def marginals(self) -> Tensor:
        """`[B, N-1, C, C]`: the probability of each edge."""
        return self._crf.edge_marginals.transpose(-1, -2)

    @property
    def entropy(self) -> Tensor:
        """`[B]`: in nats."""
        return self._crf.entropy()

    @property
    def count(self) -> Tensor:
        """`[B]`: the number of allowed paths, counted in float64."""
        _, transitions, lengths = self._crf._parameters.flatten()
        allowed = (transitions > -torch.inf).double()
        paths = allowed.new_ones(len(lengths), 1, allowed.shape[-1])
        for t in range(allowed.shape[1]):
            goes_on = (t + 1 < lengths)[:, None, None]
            paths = torch.where(goes_on, paths @ allowed[:, t], paths)
        counts = torch.where(lengths > 0, paths.sum((-1, -2)), 1.0)
        return counts.to(self._crf.emissions.dtype)

    @property
    def argmax(self) -> Tensor:
        """`[B, N-1, C, C]`: the parts of the best path."""
        return _parts(self._crf.mode)

    @property
    def mode(self) -> Tensor:
        return self.argmax

    @property
    def max(self) -> Tensor:
        """`[B]`: the score of the best path, not normalised."""
        return self._crf.log_prob(self._crf.argmax) + self.partition

    def topk(self, k: int) -> Tensor:
        """`[k, B, N-1, C, C]`: the parts of the k best paths; zeros where a chain has fewer."""
        best = self._crf.topk(k)
        exists = (best.log_probs > -torch.inf)[..., None, None, None]
        return self.to_event(best.paths, self.event_shape[-1]) * exists.to(best.log_probs)

    def kmax(self, k: int) -> Tensor:
        """`[k, B]`: the scores of the k best paths, not normalised; -inf where there are fewer."""
        return self._crf.topk(k).log_probs + self.partition

    def log_prob(self, value: Tensor) -> Tensor:
        """`[*S, B]`, of parts `[*S, B, N-1, C, C]`.

        The score is linear in the parts, so relaxed ones are scored too, and gradients reach them.
        """
        full_shape = self.batch_shape + self.event_shape
        if value.shape[-4:] != full_shape:
            raise ValueError(f"value must end in {tuple(full_shape)}, got {tuple(value.shape)}")
        in_use = _edges_in_chain(self._crf.lengths, self._crf.event_shape[0])
        value = torch.where(in_use, value.to(self._crf.emissions.dtype), 0.0)
        forbidden = in_use & (self.log_potentials == -torch.inf)
        scores = torch.where(in_use & ~forbidden, self.log_potentials, 0.0).to(value)
        impossible = (forbidden & (value != 0)).flatten(-3).any(-1)
        total = (scores * value).flatten(-3).sum(-1) - self.partition
        return torch.where(impossible, -torch.inf, total)

    def cross_entropy(self, other: torch_struct.LinearChainCRF) -> Tensor:
        """`[B]`: -E_self[log other]. An `other` without lengths takes those of `self`."""
        return self._crf.cross_entropy(self._counterpart(other))

    def kl(self, other: torch_struct.LinearChainCRF) -> Tensor:
        """`[B]`: KL(self || other). An `other` without lengths takes those of `self`."""
        return kl_divergence(self._crf, self._counterpart(other))

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
        if ((sequence < 0) | (sequence >= extra)).any():
            raise ValueError(f"sequence must hold states in 0..{extra - 1} within the lengths")
        return _parts(one_hot(sequence.long(), extra) * in_use.unsqueeze(-1))

    def from_event(self, event: Tensor) -> tuple[Tensor, int]:
        """Paths `[..., N]`, zero beyond the length, and C: of parts `[..., N-1, C, C]`."""
        as_target, as_source = event.sum(-1), event.sum(-2)  # [..., N-1, C]
        nodes = pad(as_target, (0, 0, 1, 0)) + pad(as_source, (0, 0, 0, 1))  # [..., N, C]
        return nodes.argmax(-1), event.shape[-1]

    def _counterpart(self, other: torch_struct.LinearChainCRF) -> LinearChainCRF:
        _require_chain("other", other)
        theirs, ours = tuple(other.log_potentials.shape), tuple(self.log_potentials.shape)
        if theirs != ours:
            raise ValueError(f"other has log_potentials {theirs}, expected {ours}")
        if other.lengths is None and self.lengths is not None:
            return TorchStructLinearChainCRF(other.log_potentials, self.lengths)._crf
        return from_torch_struct(other)


def from_torch_struct(dist: torch_struct.LinearChainCRF) -> LinearChainCRF:
    """Over nodes, batch shape `[B]`, T = N, K = C: emissions 0, and transitions for every edge.

    Takes torch-struct's `LinearChainCRF` and `HMM`, and the class above.
    """
    _require_chain("dist", dist)
    if not isinstance(dist, TorchStructLinearChainCRF):
        dist = TorchStructLinearChainCRF(dist.log_potentials, dist.lengths)
    return dist._crf


def to_torch_struct(crf: LinearChainCRF) -> TorchStructLinearChainCRF:
    """Over edges `[B, T-1, K, K]`, B the flattened batch shape (1 if there is none).

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
    return TorchStructLinearChainCRF(edges.transpose(-1, -2), lengths)


def _parts(nodes: Tensor) -> Tensor:
    """Nodes [..., N, C], hard or relaxed, as edges [..., N-1, C, C] ([to, from])."""
    return nodes[..., 1:, :, None] * nodes[..., :-1, None, :]


def _edges_in_chain(lengths: Tensor, num_nodes: int) -> Tensor:
    """[B, N-1, 1, 1]: which edges belong to their chain."""
    return ops.in_chain(lengths, num_nodes)[..., 1:, None, None]


def _require_chain(name: str, dist: torch_struct.LinearChainCRF) -> None:
    if getattr(dist, "struct", None) is not torch_struct.LinearChain:
        raise ValueError(f"{name} must be a torch_struct.LinearChainCRF, got {type(dist).__name__}")


def _require_shapes(log_potentials: Tensor, lengths: Tensor | None) -> None:
    shape = tuple(log_potentials.shape)
    if not log_potentials.is_floating_point():
        raise ValueError(f"log_potentials must be floating point, got {log_potentials.dtype}")
    if len(shape) != 4 or shape[-1] != shape[-2] or shape[-1] == 0:
        raise ValueError(f"log_potentials must be [B, N-1, C, C] with C at least 1, got {shape}")
    if lengths is not None and torch.as_tensor(lengths).shape != shape[:1]:
        raise ValueError(f"lengths must be [B] with B = {shape[0]}, got {lengths}")


def _require_below_inf(log_potentials: Tensor, lengths: Tensor | None) -> None:
    bad = ~(log_potentials < torch.inf)
    if lengths is not None:
        lengths = torch.as_tensor(lengths, device=bad.device)
        bad = bad & _edges_in_chain(lengths, log_potentials.shape[1] + 1)
    if bad.any():
        index = bad.nonzero()[0].tolist()
        raise ValueError(
            "log_potentials must be finite or -inf, got "
            f"{log_potentials[tuple(index)].item()} at index {index}"
        )
