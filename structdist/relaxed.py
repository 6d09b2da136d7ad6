"""Types that carry a temperature, so that wrappers need not pass one on.

As in `torch.distributions`, the relaxed and the straight-through draw are distributions of their
own: `Relaxed` lives on relaxed events, `StraightThrough` on the events themselves.

    dist.relaxed(0.5).rsample()            # relaxed rows
    dist.straight_through(0.5).rsample()   # one-hot rows with the relaxed gradient
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints

from structdist import ops
from structdist.checks import require_sample_shape
from structdist.relaxation import require_temperature

if TYPE_CHECKING:
    from structdist.base import StructuredDistribution


class _WithTemperature(Distribution):
    """A structured distribution whose `rsample` has its temperature with it."""

    has_rsample = True
    arg_constraints = {"temperature": constraints.positive}

    def __init__(
        self,
        base: StructuredDistribution,
        temperature: float | Tensor = 1.0,
        *,
        validate_args: bool | None = None,
    ) -> None:
        batch_shape = base.batch_shape
        require_temperature(temperature, batch_shape, (1, batch_shape.numel()), base._validating)
        self.base = base
        self.temperature = _as_tensor(temperature)
        if self.temperature.is_meta or ops.numbers_are_hidden():
            validate_args = False  # there is nothing to look at
        super().__init__(batch_shape, base.event_shape, validate_args=validate_args)

    def expand(self, batch_shape: Sequence[int], _instance: Any = None) -> Any:
        shape = torch.Size(batch_shape)
        if _instance is None:
            _instance = type(self).__new__(type(self))
            _instance.__dict__.update(self.__dict__)
        _instance.base, temperature = self.base.expand(shape), self.temperature
        _instance.temperature = temperature.expand(shape) if temperature.dim() > 0 else temperature
        Distribution.__init__(_instance, shape, self.event_shape, validate_args=False)
        _instance._validate_args = self._validate_args
        return _instance

    def _draw(self, sample_shape: Sequence[int], straight_through: bool) -> Tensor:
        return self.base.rsample(
            require_sample_shape(sample_shape),
            temperature=self.temperature,
            straight_through=straight_through,
        )

    def __repr__(self) -> str:
        temperature: object = self.temperature
        if self.temperature.dim() == 0 and not self.temperature.is_meta:
            temperature = self.temperature.item()
        return f"{type(self).__name__}({self.base!r}, temperature={temperature})"


def _as_tensor(temperature: float | Tensor) -> Tensor:
    """In floating point; numbers with all their digits."""
    if isinstance(temperature, Tensor) and temperature.is_floating_point():
        return temperature
    return torch.as_tensor(temperature, dtype=torch.float64)


class Relaxed(_WithTemperature):
    """Gumbel-FFBS draws, relaxed: rows that sum to one. Their density is not offered.

    Made by `dist.relaxed(temperature)`.

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> relaxed = LinearChainCRF(torch.zeros(4, 3), torch.zeros(3, 3)).relaxed(0.5)
        >>> relaxed
        Relaxed(LinearChainCRF(batch_shape=(), T=4, K=3), temperature=0.5)
        >>> torch.allclose(relaxed.rsample().sum(-1), torch.ones(4))
        True
    """

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        return self.base.relaxed_support

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """`[*S, *B, *event_shape]`: relaxed draws, whose hard choices are exact draws."""
        return self._draw(sample_shape, straight_through=False)

    def log_prob(self, value: Tensor) -> Tensor:
        """Not offered: relaxed rows are no outcomes."""
        raise NotImplementedError(
            "a relaxed draw has no log_prob here; ask base.log_prob for that of its hard path "
            "(rsample_with_paths gives both), or use straight_through() instead of relaxed()"
        )


class StraightThrough(_WithTemperature):
    """The distribution itself, with an `rsample` whose values are exact draws.

    Its gradient is that of the relaxation. Everything else is the base's. Made by
    `dist.straight_through(temperature)`.

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> dist = LinearChainCRF(torch.zeros(4, 3), torch.zeros(3, 3)).straight_through(0.5)
        >>> z = dist.rsample()
        >>> dist.support.check(z), (1 / dist.log_prob(z).exp()).round()
        (tensor(True), tensor(81.))
    """

    @property
    def has_enumerate_support(self) -> bool:  # type: ignore[override]
        """Whether the base can list its outcomes."""
        return self.base.has_enumerate_support

    @constraints.dependent_property(is_discrete=True)
    def support(self) -> Any:
        return self.base.support

    def rsample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        """`[*S, *B, *event_shape]`: exact draws with the gradient of their relaxation."""
        return self._draw(sample_shape, straight_through=True)

    def sample(self, sample_shape: Sequence[int] = ()) -> Tensor:
        return self.base.sample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        """`[*S, *B]`: the base's."""
        return self.base.log_prob(value)

    def entropy(self) -> Tensor:
        return self.base.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self.base.enumerate_support(expand)

    @property
    def mean(self) -> Tensor:
        return self.base.mean

    @property
    def mode(self) -> Tensor:
        return self.base.mode

    @property
    def variance(self) -> Tensor:
        return self.base.variance
