"""Gradients through a draw: the reward is given events that carry a gradient.

What those are is all that sets these estimators apart.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import torch
from torch import Tensor

from structdist.base import StructuredDistribution
from structdist.estimators.estimator import Estimate, Estimator, Reward
from structdist.relaxation import require_temperature


@dataclass(frozen=True, kw_only=True)
class ThroughDraws(Estimator):
    """The mean reward of events that a subclass draws, differentiated through them."""

    pathwise = True

    num_samples: int = 1

    def __post_init__(self) -> None:
        self._require_num_samples(self.num_samples)

    @abstractmethod
    def _draw(self, dist: StructuredDistribution, generator: torch.Generator | None) -> Tensor:
        """[S, *B, *event_shape]: with a gradient."""

    def _estimate(
        self, dist: StructuredDistribution, reward: Reward, generator: torch.Generator | None
    ) -> Estimate:
        events = self._draw(dist, generator)
        rewards = self._rewards(dist, reward, events)
        return Estimate(rewards.mean(), rewards.detach(), events.detach())


@dataclass(frozen=True, kw_only=True)
class WithTemperature(ThroughDraws):
    """Those whose draws are relaxed at a temperature, a number or a tensor like `rsample`'s."""

    temperature: float | Tensor = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.temperature, Tensor):
            require_temperature(self.temperature, torch.Size(), (1, 1), validate=True)


@dataclass(frozen=True, kw_only=True)
class RelaxedOrHard(WithTemperature):
    """Those whose reward is given the relaxed draws, or hard ones with the relaxed gradient."""

    straight_through: bool = False

    @property
    def relaxed(self) -> bool:
        return not self.straight_through


@dataclass(frozen=True, kw_only=True)
class GumbelCRF(RelaxedOrHard):
    """Gumbel-CRF: exact draws by Gumbel-FFBS, relaxed step by step. Biased.

    With `straight_through` the reward is given the hard draws, and the gradient is that of their
    relaxation (Gumbel-CRF-ST). One sweep and its gradient, S draws, one call of the reward.
    Fu et al. (2020), "Latent Template Induction with Gumbel-CRFs", Algorithm 2.

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.estimators import GumbelCRF
        >>> scores = torch.zeros(6, 4, requires_grad=True)
        >>> dist = LinearChainCRF(scores, torch.zeros(4, 4))
        >>> reward = lambda z: z[..., 0].sum(-1) ** 2  # events [S, T, K] to [S]
        >>> estimate = GumbelCRF(num_samples=8, temperature=0.5).estimate(dist, reward)
        >>> estimate.surrogate.backward()
        >>> scores.grad.shape, estimate.rewards.shape, estimate.draws.shape
        (torch.Size([6, 4]), torch.Size([8]), torch.Size([8, 6, 4]))
    """

    def _draw(self, dist: StructuredDistribution, generator: torch.Generator | None) -> Tensor:
        return dist.rsample(
            (self.num_samples,),
            temperature=self.temperature,
            straight_through=self.straight_through,
            generator=generator,
        )


@dataclass(frozen=True, kw_only=True)
class PerturbAndMAP(RelaxedOrHard):
    """PM-MRF: the best path under local Gumbel noise, relaxed step by step. Biased.

    So are its draws, at every temperature: they do not follow the distribution. With
    `straight_through` the reward is given the best paths themselves (PM-MRF-ST). S sweeps (each
    draw has scores of its own) and their gradients, one call of the reward. Papandreou and Yuille
    (2011), relaxed as in Fu et al. (2020), appendix.

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.estimators import PerturbAndMAP
        >>> scores = torch.zeros(6, 4, requires_grad=True)
        >>> dist = LinearChainCRF(scores, torch.zeros(4, 4))
        >>> reward = lambda z: z[..., 0].sum(-1) ** 2
        >>> estimate = PerturbAndMAP(straight_through=True).estimate(dist, reward)
        >>> estimate.draws.sum(-1)  # one-hot rows
        tensor([[1., 1., 1., 1., 1., 1.]])
        >>> estimate.surrogate.backward()
    """

    def _draw(self, dist: StructuredDistribution, generator: torch.Generator | None) -> Tensor:
        return dist.perturb_and_map(
            (self.num_samples,),
            temperature=self.temperature,
            straight_through=self.straight_through,
            generator=generator,
        )
