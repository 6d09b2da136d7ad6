"""A drop-in for `torch_struct.SemiMarkovCRF`.

torch-struct's segments lead from node to node. With `N` nodes and `C` labels a batch of `B` chains
has log potentials, marginals and events ("parts") of shape `[B, N-1, K, C, C]`. Entry
`[n, k, j, i]` is about a segment of label i and length k in `1..K-1` that begins at node n, and the
label j of node n + k, where the next one begins: [to, from]. Entries of k = 0 are never used. The
first segment begins at node 0, and the last one ends at the last node of its chain, which has a
label too.

Such a score may depend on all of n, k, j and i at once. `SemiMarkovCRF` adds the scores of a length
and of the label that comes next, so its labels cannot be torch-struct's. Time can: the chain that
answers here has one label, and C + 1 steps for each node, the first of which starts the chain
and ends the node before, while the others are the labels of the node. So

    a segment of length k(C + 1) + j - i from step 1 + i of node n    is the part [n, k, j, i],
    one of length 1 + i from step 0 of the first node                 chooses the first label i,
    one of length C - j from step 1 + j of a node                     ends the chain there,

and nothing else is allowed. Its number of scores, hence its time, is that of torch-struct's log
potentials, O(N K C^2). It takes no masks: what reaches beyond a chain counts for nothing anyway,
and what ends a chain too early leads nowhere.
"""

from __future__ import annotations

import torch
import torch_struct
from torch import Tensor
from torch.nn.functional import pad

from structdist.checks import require_integers
from structdist.compat.computed import computed_once, computed_once_unless_graph
from structdist.compat.plugin import TorchStructPlugin, require_floating_point
from structdist.compat.segment_sequences import parts_of_sequences, sequences_of_parts
from structdist.semi_markov import SemiMarkovCRF


class TorchStructSemiMarkovCRF(TorchStructPlugin, torch_struct.SemiMarkovCRF):
    """`torch_struct.SemiMarkovCRF`, computed by the kernels of this package.

    Args:
        log_potentials: `[B, N-1, K, C, C]`, of the segments of lengths `1..K-1` (entries of length
            0 are never used), [to, from]; `-inf` forbids. They are never modified.
        lengths: `[B]`, numbers of nodes in `0..N` (default `N`), integers or whole floats. What
            stands beyond never matters.
        args, validate_args: as in `TorchStructLinearChainCRF`.

    Names, kinds (property or method) and shapes are torch-struct's. Different by intent, beside
    what is said there: chains of unequal lengths have all their segments (torch-struct has none
    longer than a step that reach beyond the shortest chain), in O(N K C^2) time and memory.

    Example:
        >>> import torch
        >>> from structdist.compat import TorchStructSemiMarkovCRF
        >>> dist = TorchStructSemiMarkovCRF(torch.zeros(2, 4, 3, 1, 1))  # segments of 1 or 2 steps
        >>> dist.count  # ways to tile four steps with them
        tensor([5., 5.])
        >>> dist.marginals.shape
        torch.Size([2, 4, 3, 1, 1])
    """

    _counterpart = torch_struct.SemiMarkovCRF

    def __repr__(self) -> str:
        num_steps, num_sizes, num_labels, _ = self.event_shape
        sizes = f"B={self.batch_shape[0]}, N={num_steps + 1}, K={num_sizes}, C={num_labels}"
        return f"{type(self).__name__}({sizes})"

    @staticmethod
    def _require_shape(log_potentials: Tensor) -> None:
        require_floating_point(log_potentials)
        shape = tuple(log_potentials.shape)
        if len(shape) != 5 or shape[-1] != shape[-2] or shape[-1] == 0 or shape[2] < 2:
            raise ValueError(
                "log_potentials must be [B, N-1, K, C, C] with K at least 2, for lengths 1..K-1, "
                f"and C at least 1, got {shape}"
            )

    def _structure(self) -> SemiMarkovCRF:
        self._require_lengths(self._node_lengths)
        lengths = self._node_lengths * (self.event_shape[-1] + 1)
        scores = _unroll(self.log_potentials)
        emissions = scores.new_zeros(*scores.shape[:2], 1)
        return SemiMarkovCRF(
            emissions,
            emissions.new_zeros(1, 1),
            None,
            lengths,
            segments=scores.unsqueeze(-1),
            validate_args=self._validate_args,
        )

    def _require_lengths(self, lengths: Tensor) -> None:
        """Raise unless numbers of nodes are in range; the chain that answers counts otherwise."""
        num_nodes = self.event_shape[0] + 1
        require_integers("lengths", lengths)
        if self._validating and ((lengths < 0) | (lengths > num_nodes)).any():
            raise ValueError(f"lengths must lie in 0..{num_nodes}, got {lengths.tolist()}")

    def _parts_of(self, events: Tensor) -> Tensor:
        """What stands where log potentials stand in the segments of the chain that answers."""
        return _roll(events.squeeze(-1), *self.event_shape[:3])

    def _in_use(self, lengths: Tensor) -> Tensor:
        num_steps, num_sizes = self.event_shape[:2]
        size = torch.arange(num_sizes, device=lengths.device)
        end = torch.arange(num_steps, device=lengths.device).unsqueeze(-1) + size  # [N-1, K]
        return ((size > 0) & (end < lengths[:, None, None]))[..., None, None]

    @property
    @computed_once_unless_graph
    def marginals(self) -> Tensor:
        """`[B, N-1, K, C, C]`: the probability of each part."""
        return self._parts_of(self._crf.marginals)

    @property
    @computed_once
    def count(self) -> Tensor:
        """`[B]`: the number of allowed paths, counted in float64."""
        lengths = self._node_lengths
        allowed = ((self.log_potentials > -torch.inf) & self._in_use(lengths)).double()
        batch, num_steps, num_sizes, num_labels, _ = allowed.shape
        paths = [allowed.new_ones(batch, num_labels)]  # into each node and label
        for end in range(1, num_steps + 1):
            first = range(max(end - num_sizes + 1, 0), end)
            moves = torch.stack([allowed[:, n, end - n] for n in first], 1)  # [B, n, to, from]
            before = torch.stack([paths[n] for n in first], 1)
            paths.append((moves @ before.unsqueeze(-1)).sum((1, -1)))
        last = (lengths - 1).clamp(min=0)
        counts = torch.stack(paths, 1).sum(-1).gather(1, last.unsqueeze(-1)).squeeze(-1)
        return torch.where(lengths > 0, counts, 1.0).to(self._crf.emissions.dtype)

    def to_event(
        self, sequence: Tensor, extra: tuple[int, int], lengths: Tensor | None = None
    ) -> Tensor:
        """`[..., N-1, K, C, C]`, integers: the parts of sequences `[..., N]`; `extra` is (C, K).

        A sequence has a label where a segment begins, and at the last node, and -1 elsewhere.
        Without `lengths` those of this distribution count, if it has any.
        """
        lengths = self.lengths if lengths is None else lengths
        return parts_of_sequences(sequence, *extra, lengths, self._validating)

    def from_event(self, event: Tensor) -> tuple[Tensor, tuple[int, int]]:
        """Sequences `[..., N]`, -1 where no segment begins, and (C, K), of `[..., N-1, K, C, C]`.

        Chains of one node have no parts, so that their label is not known: they are -1 throughout.
        """
        return sequences_of_parts(event), (event.shape[-1], event.shape[-3])


def _unroll(log_potentials: Tensor) -> Tensor:
    """[B, N(C+1), L]: the scores of lengths 1..L of all segments, from [B, N-1, K, C, C].

    Views, pads and concatenations alone, which keep nothing for a backward pass: any number of
    them may run through one and the same graph.
    """
    by_label = log_potentials[:, :, 1:].permute(0, 1, 4, 2, 3)  # [B, N-1, from, K-1, to]
    rows = pad(by_label, (0, 1), value=-torch.inf).flatten(-2)  # by k and to: the label of an end
    rows = pad(rows, (0, 0, 0, 0, 0, 1), value=-torch.inf)  # [B, N, from, (K-1)(C+1)]
    batch, num_nodes, num_labels, _ = rows.shape
    ends = rows.new_full((batch, num_nodes, num_labels, num_labels), -torch.inf)
    ends[..., -1] = 0.0
    scores = _skew(torch.cat([ends, rows], -1))  # [B, N, from, L]
    starts = scores.new_full((batch, num_nodes, 1, scores.shape[-1]), -torch.inf)
    starts[:, 0, :, :num_labels] = 0.0
    return torch.cat([starts, scores], 2).flatten(1, 2)


def _roll(events: Tensor, num_steps: int, num_sizes: int, num_labels: int) -> Tensor:
    """[..., N-1, K, C, C]: the parts among segments [..., N(C+1), L], laid out by `_unroll`."""
    scores = events.unflatten(-2, (num_steps + 1, num_labels + 1))[..., :-1, 1:, :]
    rows = _unskew(scores)[..., num_labels:]  # [..., N-1, from, (K-1)(C+1)]
    by_label = rows.unflatten(-1, (num_sizes - 1, num_labels + 1))[..., :-1]
    return pad(by_label.movedim(-3, -1), (0, 0, 0, 0, 1, 0))


def _skew(rows: Tensor) -> Tensor:
    """[..., C, Q-1]: rows [..., C, Q], the i-th of which is moved i places to the left."""
    num_rows, width = rows.shape[-2:]
    padded = pad(rows, (0, num_rows - 1), value=-torch.inf).flatten(-2)
    padded = pad(padded, (0, num_rows), value=-torch.inf)
    return padded.unflatten(-1, (num_rows, -1))[..., : width - 1]


def _unskew(rows: Tensor) -> Tensor:
    """[..., C, Q]: rows [..., C, Q-1], the i-th of which is moved i places to the right."""
    num_rows, width = rows.shape[-2], rows.shape[-1] + 1
    padded = pad(rows, (0, num_rows + 1)).flatten(-2)
    return padded[..., :-num_rows].unflatten(-1, (num_rows, -1))[..., :width]
