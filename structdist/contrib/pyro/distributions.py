"""The distributions that Pyro is given, around those of this package."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from pyro.distributions import TorchDistribution
from torch import Tensor
from torch.distributions import constraints, kl_divergence, register_kl

import structdist
from structdist import ops
from structdist.contrib.pyro import multilinear

USE_DISCRETE = (
    "a site that has rsample cannot be enumerated: Pyro would take it for a pathwise one, and its "
    "answer would be wrong. Take structdist.contrib.pyro.Discrete instead"
)


class _Wrapped(TorchDistribution):
    """A distribution of this package, whose `log_prob` takes relaxed events as well.

    Attributes:
        drawn: what draws: a structured distribution, or one that carries a temperature.
    """

    arg_constraints: dict[str, constraints.Constraint] = {}
    drawn: Any

    def _hold(self, drawn: Any, validate_args: bool | None) -> None:
        self.drawn = drawn
        super().__init__(drawn.batch_shape, drawn.event_shape, validate_args=validate_args)

    @property
    def structure(self) -> multilinear.Structure:
        """The `LinearChainCRF` or `SemiMarkovCRF` inside."""
        return getattr(self.drawn, "base", self.drawn)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        """The same over a larger batch."""
        made = type(self).__new__(type(self)) if _instance is None else _instance
        made._hold(self.drawn.expand(torch.Size(batch_shape)), self._validate_args)
        return made

    @constraints.dependent_property
    def support(self) -> Any:
        """Where draws lie; `log_prob` takes relaxed events whatever it is."""
        return self.drawn.support

    def log_prob(self, value: Tensor) -> Tensor:
        """`[*S, *B]`, of events, exact or relaxed, `[*S, *B, *event_shape]`, or of integer paths.

        Gradients flow to relaxed events, as far as these have one. If a relaxed event has weight on
        moves that are forbidden, its log probability is -inf: take `StraightThrough` there.
        """
        if not value.is_floating_point():
            return self.structure.log_prob(value)
        if self._validate_args and not (value.is_meta or ops.numbers_are_hidden()):
            self._require_rows(value)
        return multilinear.log_prob(self.structure, value)

    def _require_rows(self, value: Tensor) -> None:
        support = self.structure.relaxed_support
        if not support.check(value).all():
            raise ValueError(f"value must lie in {support}, relaxed or exact, but does not")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.drawn!r})"


class Discrete(_Wrapped):
    """Exact draws without `rsample`: for priors, score functions and enumeration.

    Args:
        dist: a `LinearChainCRF` or a `SemiMarkovCRF`.

    Example:
        >>> import pyro, torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.contrib.pyro import Discrete
        >>> crf = LinearChainCRF(torch.zeros(4, 2), torch.zeros(2, 2))
        >>> with pyro.plate("sentences", 3):
        ...     z = pyro.sample("z", Discrete(crf))
        >>> z.shape
        torch.Size([3, 4, 2])
    """

    has_rsample = False
    has_enumerate_support = True

    def __init__(self, dist: multilinear.Structure, *, validate_args: bool | None = None) -> None:
        self._hold(dist, validate_args)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """`[*S, *B, *event_shape]`: exact, independent draws."""
        return self.structure.sample(sample_shape)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Every event, first dimension first; for chains of one length."""
        return self.structure.enumerate_support(expand)


class _Pathwise(_Wrapped):
    has_rsample = True
    has_enumerate_support = False
    _kind: type

    def __init__(
        self,
        dist: multilinear.Structure,
        temperature: float | Tensor = 1.0,
        *,
        validate_args: bool | None = None,
    ) -> None:
        self._hold(self._kind(dist, temperature, validate_args=validate_args), validate_args)

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """`[*S, *B, *event_shape]`: draws whose gradient is that of their relaxation."""
        drawn: Tensor = self.drawn.rsample(sample_shape)
        return drawn

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Refused."""
        raise NotImplementedError(USE_DISCRETE)


class Relaxed(_Pathwise):
    """Relaxed draws (Gumbel-FFBS): rows that sum to one, whose hard choices are exact draws.

    Args:
        dist: a `LinearChainCRF` or a `SemiMarkovCRF`.
        temperature: how soft the rows are; a number, or a tensor that broadcasts to `[*B]`.

    Example:
        >>> import pyro, torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.contrib.pyro import Relaxed
        >>> crf = LinearChainCRF(torch.zeros(4, 2), torch.zeros(2, 2))
        >>> z = pyro.sample("z", Relaxed(crf, temperature=0.5))
        >>> torch.allclose(z.sum(-1), torch.ones(4))
        True
    """

    _kind = structdist.Relaxed


class StraightThrough(_Pathwise):
    """Exact draws, with the gradient of their relaxation. The arguments are those of `Relaxed`.

    Example:
        >>> import pyro, torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.contrib.pyro import StraightThrough
        >>> crf = LinearChainCRF(torch.zeros(4, 2), torch.zeros(2, 2))
        >>> pyro.sample("z", StraightThrough(crf, temperature=0.5)).sum(-1)
        tensor([1., 1., 1., 1.])
    """

    _kind = structdist.StraightThrough


@register_kl(_Wrapped, _Wrapped)
def _kl(p: _Wrapped, q: _Wrapped) -> Tensor:
    """The exact one of the two structures."""
    return kl_divergence(p.structure, q.structure)
