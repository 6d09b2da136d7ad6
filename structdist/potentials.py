"""What a chain is made of: shapes, broadcasting, lengths, and what may stand where.

Index convention, everywhere in this package: `transitions[..., i, j]` scores moving **from** state
`i` **to** state `j`. A path `z` of length `n` has the score

    sum_t emissions[t, z_t] + sum_t transitions[z_t, z_{t+1}] + start[z_1] + end[z_n].

The number of dimensions tells the forms of `transitions` apart: with those of the batch (of
emissions, lengths, start and end) and three more they vary with time, `[*B, T-1, K, K]`; with fewer
they do not, `[*B, K, K]`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from structdist import ops
from structdist.checks import require_not_complex, require_range, require_real
from structdist.lengths import integer_lengths
from structdist.ops import Chain, in_chain
from structdist.ops.edges import every_edge


@dataclass(eq=False)  # never changed, but not frozen: that would cost as much as all its checks
class Potentials:
    """The parameters of a batch of chains, as they were given; brought to one form when asked for.

    So gradients reach what was given, and changes of it in place are seen, whatever its dtype is
    and wherever the object was made.
    """

    given_emissions: Tensor  # [..., T, K]
    given_transitions: Tensor  # [..., K, K] or, varying with time, [..., T-1, K, K]
    given_start: Tensor | None  # [..., K]
    given_end: Tensor | None  # [..., K]
    given_lengths: Tensor  # [...]
    time_varying: bool
    dtype: torch.dtype  # of all answers
    batch_shape: torch.Size
    whole: bool = False  # has every chain the length T?

    @property
    def emissions(self) -> Tensor:
        """[*B, T, K]."""
        return self._over_batch(self.given_emissions, 2)

    @property
    def transitions(self) -> Tensor:
        """[K, K], or [*B, K, K] and [*B, T-1, K, K] with dimensions of size 1 kept."""
        given = self.given_transitions
        if given.dtype != self.dtype:
            given = given.to(self.dtype)
        missing = len(self.batch_shape) + self._edge_dims - given.dim()
        return given if given.dim() == 2 or missing == 0 else given[(None,) * missing]

    @property
    def start(self) -> Tensor | None:
        """[*B, K]."""
        return None if self.given_start is None else self._over_batch(self.given_start, 1)

    @property
    def end(self) -> Tensor | None:
        """[*B, K]."""
        return None if self.given_end is None else self._over_batch(self.given_end, 1)

    @property
    def lengths(self) -> Tensor:
        """[*B]."""
        lengths = self.given_lengths
        return lengths if lengths.shape == self.batch_shape else lengths.expand(self.batch_shape)

    def _over_batch(self, x: Tensor, event_dims: int) -> Tensor:
        if x.dtype != self.dtype:
            x = x.to(self.dtype)
        lead = x.dim() - event_dims
        if x.shape[:lead] == self.batch_shape:
            return x
        return x.expand(self.batch_shape + x.shape[lead:])

    @property
    def _edge_dims(self) -> int:
        return 3 if self.time_varying else 2

    @property
    def num_steps(self) -> int:
        return self.given_emissions.shape[-2]

    @property
    def num_states(self) -> int:
        return self.given_emissions.shape[-1]

    @property
    def event_shape(self) -> torch.Size:
        return self.given_emissions.shape[-2:]

    @property
    def device(self) -> torch.device:
        return self.given_emissions.device

    @property
    def is_meta(self) -> bool:
        return self.given_emissions.is_meta

    @property
    def active(self) -> Tensor:
        """Which steps belong to their chain: bool [*B, T]."""
        return in_chain(self.lengths, self.num_steps)

    def versions(self) -> tuple[int, ...]:
        """Changes with every change in place (inference tensors do not tell)."""
        given = (self.given_emissions, self.given_transitions, self.given_start, self.given_end)
        return tuple([x._version for x in given if x is not None and not x.is_inference()])

    def expand(self, batch_shape: torch.Size) -> Potentials:
        """The same chains over a larger batch; shared transitions stay shared."""
        self.given_lengths.expand(batch_shape)  # raises where the batch cannot grow so
        self.emissions.expand(batch_shape + self.event_shape)
        return replace(self, batch_shape=batch_shape)

    def restrict(self, allowed: Tensor) -> Potentials:
        """The same with every state forbidden that a bool mask [*B, T, K] forbids."""
        allowed = allowed | ~self.active.unsqueeze(-1)
        return replace(self, given_emissions=torch.where(allowed, self.emissions, -torch.inf))

    def shift(self, values: Tensor) -> Potentials:
        """The same with values [*B, T, K] added to the emissions."""
        return replace(self, given_emissions=ops.sum_of_scores(self.emissions, values))

    def allowed_by(self, observed: Tensor, validate: bool) -> Tensor:
        """Bool [*B, T, K]: the states that partial labels [*B, T] leave, -1 being unknown."""
        if validate:
            meaning = " (-1 = unknown)"
            require_range("observed", observed, -1, self.num_states - 1, self.active, meaning)
        states = torch.arange(self.num_states, device=observed.device)
        return (observed.unsqueeze(-1) == states) | (observed == -1).unsqueeze(-1)

    def flatten(self) -> Chain:
        """What kernels take: one batch dimension, start and end folded into the emissions."""
        emissions, lengths, start, end = self.emissions, self.lengths, self.start, self.end
        if start is not None:
            first = ops.sum_of_scores(emissions[..., :1, :], start.unsqueeze(-2))
            emissions = torch.cat([first, emissions[..., 1:, :]], -2)
        if end is not None:
            end = end.unsqueeze(-2)
            last = (lengths.clamp(1, self.num_steps) - 1)[..., None, None].expand_as(end)
            emissions = emissions.scatter(
                -2, last, ops.sum_of_scores(emissions.gather(-2, last), end)
            )
        if len(self.batch_shape) == 1:
            flat = emissions, lengths
        else:
            flat = emissions.reshape(-1, *self.event_shape), lengths.reshape(-1)
            if 0 in self.batch_shape:
                flat = emissions.reshape(0, *self.event_shape), lengths.reshape(0)
        transitions = flatten_edges(self.transitions, self.batch_shape, self._edge_dims)
        return Chain(flat[0], transitions, flat[1])

    def require_allowed_values(self) -> None:
        """Raise on lengths out of range, and on NaN or +inf inside a chain (not in the padding)."""
        if 0 in self.batch_shape:
            return
        if not self.whole:
            shortest, longest = torch.stack(self.given_lengths.aminmax()).tolist()
            if shortest < 0 or longest > self.num_steps:
                raise ValueError(
                    f"lengths must lie in 0..{self.num_steps}, "
                    f"got values from {shortest} to {longest}, the first of those outside at index "
                    f"{_first_outside(self.given_lengths, self.num_steps)}"
                )
        for name, given in (
            ("emissions", self.given_emissions),
            ("transitions", self.given_transitions),
            ("start", self.given_start),
            ("end", self.given_end),
        ):
            if given is not None and not ops.all_below_inf(given):
                self._require_below_inf(name, getattr(self, name))

    def _require_below_inf(self, name: str, x: Tensor) -> None:
        bad = ~(x < torch.inf)
        if name == "emissions":
            bad = bad & self.active[..., None]
        elif name == "transitions" and self.time_varying:
            bad = bad & self.active[..., 1:, None, None]
        if bad.any():
            where = bad.nonzero()[0].tolist()
            value = x.expand(bad.shape)[tuple(where)].item()
            raise ValueError(f"{name} must be finite or -inf, got {value} at index {where}")

    def first_forbidden(self, index: tuple[int, ...], path: Tensor) -> str:
        """The first step or move that forbids a path [T] of the chain at a batch index."""
        chain = self.flatten()
        row = int(torch.arange(self.lengths.numel(), device="cpu").view(self.batch_shape)[index])
        moves = len(chain.lengths), self.num_steps - 1, -1, -1
        edges = every_edge(chain.transitions).expand(moves)[row]
        states = path[: int(self.lengths[index])].tolist()
        for step, state in enumerate(states):
            if not 0 <= state < self.num_states:
                return f"state {state} at step {step} is not in 0..{self.num_states - 1}"
            if step > 0 and edges[step - 1, states[step - 1], state] == -torch.inf:
                return f"the move from {states[step - 1]} to {state} into step {step} is forbidden"
            if chain.emissions[row, step, state] == -torch.inf:
                return f"state {state} at step {step} is forbidden"
        return "no path of this chain is allowed"


def _first_outside(lengths: Tensor, num_steps: int) -> tuple[int, ...]:
    """Where the first length is that is negative or larger than T."""
    return tuple(((lengths < 0) | (lengths > num_steps)).nonzero()[0].tolist())


def flatten_edges(edges: Tensor, batch_shape: torch.Size, edge_dims: int) -> Tensor:
    """Edge scores in a form of `Chain`: [K, K] where all chains share them, else [N, ..., K, K]."""
    event_shape = edges.shape[edges.dim() - edge_dims :]
    if edge_dims == 2 and edges.numel() == event_shape.numel():
        return edges if edges.dim() == 2 else edges.reshape(event_shape)
    return edges.expand(batch_shape + event_shape).reshape(batch_shape.numel(), *event_shape)


def flatten_node_values(values: Tensor, p: Potentials, validate: bool) -> Tensor:
    """Values that broadcast to [*B, T, K], as [N, T, K]; 0 where the emissions forbid."""
    require_not_complex("node_values", values)
    shape = p.batch_shape + p.emissions.shape[-2:]
    emissions = p.emissions
    values = _expand("node_values", values, shape).to(emissions)
    values = torch.where(emissions == -torch.inf, 0.0, values)
    if validate and not (values.isfinite() | ~p.active.unsqueeze(-1)).all():
        raise ValueError("node_values must be finite within the lengths")
    return values.reshape(p.lengths.numel(), p.num_steps, p.num_states)


def flatten_edge_values(values: Tensor, p: Potentials, validate: bool) -> Tensor:
    """Values [K, K], [*B, K, K] or [*B, T-1, K, K] in a form of `Chain`; 0 on forbidden edges."""
    require_not_complex("edge_values", values)
    batch_dims = len(p.batch_shape)
    require_edge_shape("edge_values", values, batch_dims, p.num_steps, p.num_states)
    edge_dims = 3 if values.dim() == batch_dims + 3 else 2
    _expand("edge_values", values, p.batch_shape + values.shape[-edge_dims:])
    if values.dim() == p.transitions.dim():
        values = torch.where(p.transitions == -torch.inf, 0.0, values)
    finite = values.isfinite()
    if edge_dims == 3:
        finite = finite | ~p.active[..., 1:, None, None]
    if validate and not finite.all():
        raise ValueError("edge_values must be finite within the lengths")
    return flatten_edges(values.to(p.device, p.dtype), p.batch_shape, edge_dims)


def _expand(name: str, x: Tensor, shape: torch.Size) -> Tensor:
    try:
        return x.expand(shape)
    except RuntimeError:
        raise ValueError(f"{name} must broadcast to {tuple(shape)}, got {_shape(x)}") from None


def make_potentials(
    emissions: Tensor,
    transitions: Tensor,
    lengths: Tensor | None,
    start: Tensor | None,
    end: Tensor | None,
    *,
    batch_dims: int = 0,
) -> Potentials:
    """Check kinds and shapes, and find the batch shape and dtype that all have together.

    Half precision is computed in float32: sums over paths need the digits. `batch_dims` is how many
    dimensions the batch has at least, by what else there is.
    """
    scores = [("emissions", emissions), ("transitions", transitions)]
    if start is not None:
        scores.append(("start", start))
    if end is not None:
        scores.append(("end", end))
    dtype = torch.float32
    for name, x in scores:
        require_real(name, x, like=emissions)
        if x.dtype != dtype:
            dtype = torch.promote_types(dtype, x.dtype)
    batch_shape, event_shape = emissions.shape[:-2], emissions.shape[-2:]
    if len(event_shape) < 2 or 0 in event_shape:
        raise ValueError(
            f"emissions must be [*B, T, K] with T and K at least 1, got {_shape(emissions)}"
        )
    integers = integer_lengths(lengths, emissions)
    batch_dims = max(batch_dims, len(batch_shape), integers.dim())
    for name, x in scores[2:]:
        batch_dims = max(batch_dims, x.dim() - 1)
        if x.dim() < 1 or x.shape[-1] != event_shape[-1]:
            sizes = f"[K] or [*B, K] with K = {event_shape[-1]}"
            raise ValueError(f"{name} must be {sizes}, got {_shape(x)}")
    require_edge_shape("transitions", transitions, batch_dims, *event_shape)
    time_varying = transitions.dim() == batch_dims + 3
    if transitions.dim() > 2:
        batch_shape = _joined(batch_shape, "transitions", transitions, 3 if time_varying else 2)
    if lengths is not None:
        batch_shape = _joined(batch_shape, "lengths", integers, 0)
    for name, x in scores[2:]:
        batch_shape = _joined(batch_shape, name, x, 1)
    return Potentials(
        emissions,
        transitions,
        start,
        end,
        integers,
        time_varying,
        dtype,
        batch_shape,
        whole=lengths is None,
    )


def require_edge_shape(
    name: str, edges: Tensor, batch_dims: int, num_steps: int, num_states: int
) -> None:
    """Raise unless `edges` is [K, K], [*B, K, K] or [*B, T-1, K, K]."""
    fits = 2 <= edges.dim() <= batch_dims + 3 and edges.shape[-2:] == (num_states, num_states)
    if fits and edges.dim() == batch_dims + 3:
        fits = edges.shape[-3] == num_steps - 1
    if not fits:
        raise ValueError(
            f"{name} must be [K, K], [*B, K, K] or [*B, T-1, K, K] with K = {num_states}, "
            f"T - 1 = {num_steps - 1} and {batch_dims} batch dimensions at most, "
            f"got {_shape(edges)}"
        )


def _joined(batch_shape: torch.Size, name: str, x: Tensor, event_dims: int) -> torch.Size:
    """The batch shape of the arguments so far and of one more."""
    shape = x.shape[: x.dim() - event_dims]
    if not shape or shape == batch_shape:  # without a batch, or nothing new
        return batch_shape
    try:
        return torch.broadcast_shapes(batch_shape, shape) if batch_shape else shape
    except RuntimeError:
        raise ValueError(
            f"{name} has batch shape {tuple(shape)}, which does not broadcast with that of "
            f"the arguments before it, {tuple(batch_shape)}"
        ) from None


def _shape(x: Tensor) -> str:
    return str(tuple(x.shape))
