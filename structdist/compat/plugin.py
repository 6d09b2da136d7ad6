"""What the drop-ins for distributions of torch-struct share: one forward pass, and its answers.

A distribution of torch-struct is made of log potentials `[B, *event_shape]`, one of each *part*,
and answers in that shape. Here another structure of this package, which has the same paths, does
the work, and its events are turned into parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import torch
import torch_struct
from torch import Tensor
from torch.distributions import kl_divergence

from structdist import ops
from structdist.base import StructuredDistribution
from structdist.compat.computed import Computed, State, computed_once, computed_once_unless_graph


class TorchStructPlugin(torch_struct.StructDistribution):
    """A distribution of torch-struct whose answers are computed by this package."""

    arg_constraints: dict[str, torch.distributions.constraints.Constraint] = {}

    _counterpart: ClassVar[type]  # the class of torch-struct that this one stands in for
    _last_computed: Computed | None = None

    def __init__(
        self,
        log_potentials: Tensor,
        lengths: Tensor | None = None,
        args: Any = None,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self._require_shape(log_potentials)
        if validate_args is not None:
            self._validate_args = validate_args  # which torch's constructor leaves as it is
        super().__init__(log_potentials, lengths, {} if args is None else args)
        if lengths is not None:
            self.lengths = self._whole_lengths(lengths)
        self._computed()  # raises where arguments are wrong

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: everything but what can be computed again."""
        return {name: x for name, x in self.__dict__.items() if name != "_last_computed"}

    # What a structure says of itself -----------------------------------------------------------

    @staticmethod
    def _require_shape(log_potentials: Tensor) -> None:
        """Raise unless log potentials are floating point and of the right shape."""
        raise NotImplementedError

    def _structure(self) -> StructuredDistribution:
        """The distribution of this package that has the same paths and scores."""
        raise NotImplementedError

    def _parts_of(self, events: Tensor) -> Tensor:
        """[..., *event_shape]: the parts of events of that distribution, hard or relaxed."""
        raise NotImplementedError

    def _in_use(self, lengths: Tensor) -> Tensor:
        """Bool, broadcasts to [B, *event_shape]: which parts chains of these lengths can have."""
        raise NotImplementedError

    # The structure that answers ----------------------------------------------------------------

    @property
    def _crf(self) -> Any:
        """The distribution of this package that answers."""
        return self._computed().crf

    def _computed(self) -> Computed:
        """What holds of the present state: a structure without answers, if that is a new one."""
        last = self._last_computed
        if last is None or not (ops.numbers_are_hidden() or last.state == self._state()):
            last = self._last_computed = Computed(self._state(), self._make_crf(), {})
        return last

    def _state(self) -> State | None:
        """The present state; None inside a transform, which does not show it."""
        if ops.numbers_are_hidden():
            return None
        potentials = self.log_potentials
        version = None if potentials.is_inference() else potentials._version
        return State(version, potentials.requires_grad, ops.forced_backend())

    def _make_crf(self) -> StructuredDistribution:
        if self._validating:
            self._require_below_inf()
        # One made while gradients are off would be cut off from the graph of the log potentials
        # for good. This one is part of it, and each answer heeds the mode in which it is asked.
        with torch.inference_mode(False), torch.enable_grad():
            return self._structure()

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
            bad = bad & self._in_use(self.lengths)
        if bad.any():
            index = bad.nonzero()[0].tolist()
            raise ValueError(
                "log_potentials must be finite or -inf, got "
                f"{self.log_potentials[tuple(index)].item()} at index {index}"
            )

    @property
    def _node_lengths(self) -> Tensor:
        """[B]: the number of nodes of each chain."""
        if self.lengths is not None:
            return self.lengths
        full = self.event_shape[0] + 1
        return torch.full(self.batch_shape, full, device=self.log_potentials.device)

    # Properties ------------------------------------------------------------------------------

    @property
    @computed_once_unless_graph
    def partition(self) -> Tensor:
        """`[B]`: log of the sum of exp(score) over all paths."""
        return self._crf.log_partition

    @property
    @computed_once_unless_graph
    def entropy(self) -> Tensor:
        """`[B]`: in nats."""
        return self._crf.entropy()

    @property
    @computed_once
    def _best_path(self) -> Tensor:
        """`[B, T]`: the best path of the structure that answers."""
        return self._crf.argmax

    @property
    def argmax(self) -> Tensor:
        """`[B, *event_shape]`: the parts of the best path."""
        return self._parts_of(self._crf.event_of(self._best_path))

    @property
    def mode(self) -> Tensor:
        """`[B, *event_shape]`: the same as `argmax`."""
        return self.argmax

    @property
    @computed_once_unless_graph
    def max(self) -> Tensor:
        """`[B]`: the score of the best path, not normalised."""
        return self._crf.log_prob(self._best_path) + self.partition

    # Methods ---------------------------------------------------------------------------------

    def topk(self, k: int) -> Tensor:
        """`[k, B, *event_shape]`: the parts of the k best paths; zeros where there are fewer."""
        best = self._crf.topk(k)
        parts = self._parts_of(self._crf.event_of(best.paths))
        exists = (best.log_probs > -torch.inf).to(parts)
        return parts * exists.view(*exists.shape, *(1 for _ in self.event_shape))

    def kmax(self, k: int) -> Tensor:
        """`[k, B]`: the scores of the k best paths, not normalised; -inf where there are fewer."""
        return self._crf.topk(k).log_probs + self.partition

    def log_prob(self, value: Tensor) -> Tensor:
        """`[*S, B]`, of parts `[*S, B, *event_shape]`; leading dimensions broadcast with `[B]`.

        So the parts of one event are scored under each chain of the batch. The score is linear in
        the parts: relaxed ones are scored too, and gradients reach them.
        """
        self._require_parts(value)
        log_partition = self.partition
        in_use, dims = self._in_use(self._node_lengths), len(self.event_shape)
        value = torch.where(in_use, value.to(log_partition.dtype), 0.0)
        forbidden = in_use & (self.log_potentials == -torch.inf)
        scores = torch.where(in_use & ~forbidden, self.log_potentials, 0.0).to(value)
        impossible = (forbidden & (value != 0)).flatten(-dims).any(-1)
        total = (scores * value).flatten(-dims).sum(-1) - log_partition
        return torch.where(impossible, -torch.inf, total)

    def _require_parts(self, value: Tensor) -> None:
        dims = len(self.event_shape)
        leading, last = value.shape[:-dims], value.shape[-dims:]
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

    def cross_entropy(self, other: torch_struct.StructDistribution) -> Tensor:
        """`[B]`: -E_self[log other]. An `other` without lengths takes those of `self`."""
        return self._crf.cross_entropy(self._crf_of(other))

    def kl(self, other: torch_struct.StructDistribution) -> Tensor:
        """`[B]`: KL(self || other). An `other` without lengths takes those of `self`."""
        return kl_divergence(self._crf, self._crf_of(other))

    def _crf_of(self, other: torch_struct.StructDistribution) -> Any:
        """What answers for another distribution, with the lengths of this one if it has none."""
        require_struct("other", other, self._counterpart)
        theirs, ours = tuple(other.log_potentials.shape), tuple(self.log_potentials.shape)
        if theirs != ours:
            raise ValueError(f"other has log_potentials {theirs}, expected {ours}")
        if isinstance(other, TorchStructPlugin) and (
            other.lengths is not None or self.lengths is None
        ):
            return other._crf
        lengths = self.lengths if other.lengths is None else other.lengths
        return type(self)(other.log_potentials, lengths, validate_args=other._validate_args)._crf

    def sample(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator | None = None
    ) -> Tensor:
        """`[*S, B, *event_shape]`: the parts of exact, independent draws."""
        return self._parts_of(self._crf.sample(sample_shape, generator=generator))

    def gumbel_crf(
        self, temperature: float = 1.0, *, generator: torch.Generator | None = None
    ) -> Tensor:
        """`[B, *event_shape]`: straight-through Gumbel-CRF parts, as torch-struct's are.

        The value is the one-hot parts of a draw that is exact at every temperature and independent
        over the batch. The gradient is that of the relaxed parts, so a reward that is the same for
        all parts has gradient 0.
        """
        draw = self._crf.rsample(
            temperature=temperature, straight_through=True, generator=generator
        )
        return self._parts_of(draw)


def require_struct(name: str, dist: object, kind: type) -> None:
    """Raise unless a distribution has the structure of a class of torch-struct."""
    if getattr(dist, "struct", None) is not kind.struct:  # type: ignore[attr-defined]
        raise ValueError(
            f"{name} must be a torch_struct.{kind.__name__}, got {type(dist).__name__}"
        )


def require_floating_point(log_potentials: Tensor) -> None:
    if not log_potentials.is_floating_point():
        raise ValueError(f"log_potentials must be floating point, got {log_potentials.dtype}")
