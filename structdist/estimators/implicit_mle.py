"""Implicit maximum likelihood: how the best path moves once the reward has moved the scores."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from structdist.base import StructuredDistribution
from structdist.checks import require_number
from structdist.estimators.estimator import Estimate, Estimator, Reward
from structdist.estimators.score_function import score_term
from structdist.relaxation import given_or_drawn


@dataclass
class AdaptiveStep:
    """A step of `IMLE` that learns how far the target has to go for a draw to change.

    The target moves no score of a draw by more than `reach`, in units of the noise. After every
    estimate `reach` grows where fewer than `wanted_changes` entries of an event have changed, as a
    running mean over draws has it, and shrinks where more have. This is the one setting that has a
    state: keep the object from step to step, and with a checkpoint.

    Minervini, Franceschi and Niepert (2023), "Adaptive Perturbation-Based Gradient Estimation for
    Discrete Latent Variable Models", whose step is relative to the norm of the scores; that of a
    structure is no measure, since constants can be added to its scores that change nothing.

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.estimators import IMLE, AdaptiveStep
        >>> scores = torch.zeros(6, 4, requires_grad=True)
        >>> dist = LinearChainCRF(scores, torch.zeros(4, 4))
        >>> step = AdaptiveStep(reach=0.1)
        >>> imle = IMLE(step=step)
        >>> reward = lambda z: z[..., 0].sum(-1)
        >>> estimates = [imle.estimate(dist, reward) for _ in range(20)]
        >>> step.mean_changes is not None and step.reach != 0.1  # it has learnt
        True
    """

    reach: float = 1.0
    wanted_changes: float = 1.0
    rate: float = 0.05  # of change of log(reach), an estimate
    decay: float = 0.9  # of the running mean
    mean_changes: float | None = None

    def __post_init__(self) -> None:
        for name in ("reach", "wanted_changes", "rate"):
            _require_positive(name, getattr(self, name))

    def sizes(self, slopes: Tensor, event_dims: int) -> Tensor:
        """[S, *B]: steps along slopes [S, *B, *event_shape]."""
        largest = slopes.abs().flatten(-event_dims).amax(-1)
        return torch.where(largest > 0, self.reach / torch.where(largest > 0, largest, 1.0), 1.0)

    def observe(self, changed: Tensor, num_draws: int) -> None:
        """Learn from which entries of events [S, *B, *event_shape] have changed."""
        num_changes = changed.sum().item() / max(num_draws, 1)
        before = num_changes if self.mean_changes is None else self.mean_changes
        self.mean_changes = self.decay * before + (1 - self.decay) * num_changes
        self.reach *= math.exp(math.copysign(self.rate, self.wanted_changes - self.mean_changes))


@dataclass(frozen=True, kw_only=True)
class IMLE(Estimator):
    """I-MLE: (z' - z) / step, z being the best path under noise and z' that of the target. Biased.

    The target has the scores that a step along the slope of the reward at z leads to; the noise is
    the same. z' and z stand for what their scores are made of, transitions and durations included.
    The step (lambda in the paper) is a number, or an `AdaptiveStep`.

    Draws are those of Perturb-and-MAP, with Gumbel noise on every entry of the event, hence biased
    themselves. With `exact_draws` z is an exact draw by Gumbel-FFBS, and z' that of the target from
    the same noise: then only the finite step, and a reward that is not linear, leave a bias.

    S sweeps twice (one and S with `exact_draws`), no gradients of them, one call of the reward and
    its gradient, log p of 2 S paths. Niepert, Minervini and Franceschi (2021), "Implicit MLE:
    Backpropagating Through Discrete Exponential Family Distributions".

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.estimators import IMLE
        >>> scores = torch.zeros(6, 4, requires_grad=True)
        >>> dist = LinearChainCRF(scores, torch.zeros(4, 4))
        >>> reward = lambda z: z[..., 0].sum(-1) ** 2
        >>> imle = IMLE(num_samples=8, step=0.5, exact_draws=True)
        >>> imle.estimate(dist, reward).surrogate.backward()
        >>> scores.grad.shape
        torch.Size([6, 4])
    """

    pathwise = True

    num_samples: int = 1
    step: float | AdaptiveStep = 1.0
    exact_draws: bool = False

    def __post_init__(self) -> None:
        self._require_num_samples(self.num_samples)
        if not isinstance(self.step, AdaptiveStep):
            _require_positive("step", self.step)

    def _estimate(
        self, dist: StructuredDistribution, reward: Reward, generator: torch.Generator | None
    ) -> Estimate:
        one_draw = dist.noise_shape if self.exact_draws else dist.event_shape
        noise_shape = torch.Size([self.num_samples, *dist.batch_shape, *one_draw])
        noise = given_or_drawn(None, noise_shape, dist._parameters, generator)
        paths = self._paths(dist, noise, None)
        log_prob = dist._log_prob(paths)
        events = dist._events(paths).requires_grad_(log_prob.requires_grad)
        rewards = self._rewards(dist, reward, events)
        surrogate = rewards.mean()
        if log_prob.requires_grad:
            slopes = self._slopes(rewards, events)
            steps = self._steps(slopes, len(dist.event_shape))
            by_event = steps.view(*steps.shape, *[1] * len(dist.event_shape))
            target = self._paths(dist, noise, by_event * slopes)
            surrogate = surrogate + score_term(1 / steps, dist._log_prob(target) - log_prob)
            if isinstance(self.step, AdaptiveStep):
                self.step.observe(dist._events(target) != events, steps.numel())
        return Estimate(surrogate, rewards.detach(), events.detach())

    def _steps(self, slopes: Tensor, event_dims: int) -> Tensor:
        """[S, *B]: how far each target is from its draw, along the slope."""
        if isinstance(self.step, AdaptiveStep):
            return self.step.sizes(slopes, event_dims)
        return slopes.new_full(slopes.shape[: slopes.dim() - event_dims], self.step)

    @torch.no_grad()
    def _paths(self, dist: StructuredDistribution, noise: Tensor, shift: Tensor | None) -> Tensor:
        """[S, *B, T]: the draws of given noise, from scores that may have moved by a shift."""
        if not self.exact_draws:
            return dist._shifted(noise if shift is None else noise + shift).argmax
        if shift is None:
            return dist.rsample_with_paths((self.num_samples,), noise=noise).paths
        return dist._shifted(shift).rsample_with_paths(noise=noise).paths


def _require_positive(name: str, value: float) -> None:
    if not (require_number(name, value) > 0 and math.isfinite(value)):
        raise ValueError(f"{name} must be positive and finite, got {value}")
