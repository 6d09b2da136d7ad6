"""A drop-in for `torch_struct.LinearChainCRF`, and conversions between it and ours.

torch-struct scores and returns *edges*. With `N` nodes and `C` states a batch of `B` chains has
log potentials, marginals and events ("parts") of shape `[B, N-1, C, C]`, and entry `[t, j, i]` is
about moving **from i to j**, from node `t` to node `t+1`: [to, from], the transpose of the rest of
this package. Zeros stand beyond a chain's length, which is its number of nodes.
"""

from __future__ import annotations

import torch
import torch_struct
from torch import Tensor
from torch.nn.functional import one_hot, pad

from structdist import ops
from structdist.compat.computed import computed_once, computed_once_unless_graph
from structdist.compat.plugin import TorchStructPlugin, require_floating_point, require_struct
from structdist.linear_chain import LinearChainCRF
from structdist.ops.edges import every_edge


class TorchStructLinearChainCRF(TorchStructPlugin, torch_struct.LinearChainCRF):
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

    Example:
        >>> import torch
        >>> from structdist.compat import TorchStructLinearChainCRF
        >>> dist = TorchStructLinearChainCRF(torch.zeros(2, 4, 3, 3), lengths=torch.tensor([5, 2]))
        >>> dist.count  # 3^5 and 3^2 paths
        tensor([243.,   9.])
        >>> dist.marginals.shape, dist.argmax.shape, dist.gumbel_crf(temperature=0.5).shape
        (torch.Size([2, 4, 3, 3]), torch.Size([2, 4, 3, 3]), torch.Size([2, 4, 3, 3]))
    """

    _counterpart = torch_struct.LinearChainCRF

    def __repr__(self) -> str:
        num_edges, num_states, _ = self.event_shape
        return f"{type(self).__name__}(B={self.batch_shape[0]}, N={num_edges + 1}, C={num_states})"

    @staticmethod
    def _require_shape(log_potentials: Tensor) -> None:
        require_floating_point(log_potentials)
        shape = tuple(log_potentials.shape)
        if len(shape) != 4 or shape[-1] != shape[-2] or shape[-1] == 0:
            raise ValueError(
                f"log_potentials must be [B, N-1, C, C] with C at least 1, got {shape}"
            )

    def _structure(self) -> LinearChainCRF:
        """The same distribution over nodes: emissions are 0, and every edge has its transition."""
        batch, num_edges, num_states, _ = self.log_potentials.shape
        emissions = self.log_potentials.new_zeros(batch, num_edges + 1, num_states)
        transitions = self.log_potentials.transpose(-1, -2)
        return LinearChainCRF(
            emissions, transitions, self.lengths, validate_args=self._validate_args
        )

    def _parts_of(self, events: Tensor) -> Tensor:
        """The products `z[t+1, to] * z[t, from]` of nodes z."""
        return _parts(events)

    def _in_use(self, lengths: Tensor) -> Tensor:
        return _edges_in_chain(lengths, self.event_shape[0] + 1)

    @property
    @computed_once_unless_graph
    def marginals(self) -> Tensor:
        """`[B, N-1, C, C]`: the probability of each edge."""
        return self._crf.edge_marginals.transpose(-1, -2)

    @property
    @computed_once
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


def from_torch_struct(dist: torch_struct.LinearChainCRF) -> LinearChainCRF:
    """The same distribution over nodes: batch shape `[B]`, T = N, K = C.

    Its emissions are 0, and every edge has a transition of its own. `dist` may be torch-struct's
    `LinearChainCRF` or `HMM`, or the class above.

    Example:
        >>> import torch, torch_struct
        >>> from structdist.compat import from_torch_struct
        >>> from_torch_struct(torch_struct.LinearChainCRF(torch.zeros(2, 4, 3, 3)))
        LinearChainCRF(batch_shape=(2,), T=5, K=3)
    """
    require_struct("dist", dist, torch_struct.LinearChainCRF)
    if not isinstance(dist, TorchStructLinearChainCRF):
        dist = TorchStructLinearChainCRF(
            dist.log_potentials, dist.lengths, validate_args=dist._validate_args
        )
    return dist._crf


def to_torch_struct(crf: LinearChainCRF) -> TorchStructLinearChainCRF:
    """The same distribution over edges `[B, T-1, K, K]`, batch dimensions flattened (1 if none).

    An edge takes the scores of the node it leads to, the first edge those of the first node too.

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.compat import to_torch_struct
        >>> to_torch_struct(LinearChainCRF(torch.zeros(2, 5, 3), torch.zeros(3, 3)))
        TorchStructLinearChainCRF(B=2, N=5, C=3)
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
