"""The score function: rewards times the gradient of log p. It needs nothing of the reward."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from structdist.base import StructuredDistribution
from structdist.checks import require_number
from structdist.estimators.estimator import Estimate, Estimator, Reward


@dataclass(frozen=True, kw_only=True)
class Reinforce(Estimator):
    """REINFORCE: (f(z) - baseline) times the gradient of log p(z), over exact draws. Unbiased.

    The baseline is a `constant` (REINFORCE-C), the mean reward of the other draws of the same
    structure (`leave_one_out`, REINFORCE-MS; at least two draws), both (REINFORCE-MS-C), or
    nothing. `reward_scale` multiplies the estimate that reaches the distribution, not the reward's
    own gradient; with 1 the estimate is that of the mean reward.

    One sweep, the gradient of log p, S draws, one call of the reward. Williams (1992); the
    leave-one-out mean is that of Kool et al. (2019), known as RLOO. It is VarGrad (Richter et al.
    2020) as well: the sample covariance of f and the gradient of log p, S - 1 in the denominator,
    is the same number, draw by draw. Where the reward holds -log p(z) itself, detach that part to
    have VarGrad: its own gradient is noise around 0.

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.estimators import Reinforce
        >>> scores = torch.zeros(6, 4, requires_grad=True)
        >>> dist = LinearChainCRF(scores, torch.zeros(4, 4))
        >>> def reward(z):  # counts of state 0, without a gradient
        ...     return (z.argmax(-1) == 0).sum(-1).float()
        >>> estimate = Reinforce(num_samples=5, leave_one_out=True).estimate(dist, reward)
        >>> estimate.surrogate.backward()
        >>> bool(estimate.surrogate == estimate.rewards.mean()), scores.grad.shape
        (True, torch.Size([6, 4]))
    """

    unbiased = True

    num_samples: int = 1
    leave_one_out: bool = False
    constant: float = 0.0
    reward_scale: float = 1.0

    def __post_init__(self) -> None:
        self._require_num_samples(self.num_samples)
        require_number("constant", self.constant)
        require_number("reward_scale", self.reward_scale)

    @property
    def fewest_samples(self) -> int:
        return 2 if self.leave_one_out else 1

    def _estimate(
        self, dist: StructuredDistribution, reward: Reward, generator: torch.Generator | None
    ) -> Estimate:
        paths, log_prob = dist.sample_with_log_prob((self.num_samples,), generator=generator)
        events = dist._events(paths)
        rewards = self._rewards(dist, reward, events)
        surrogate = rewards.mean() + score_term(self._advantage(rewards.detach()), log_prob)
        return Estimate(surrogate, rewards.detach(), events)

    def _advantage(self, rewards: Tensor) -> Tensor:
        """[S, *B]: the rewards above their baseline."""
        baseline = others_mean(rewards) if self.leave_one_out else 0.0
        return self.reward_scale * (rewards - baseline - self.constant)


def others_mean(rewards: Tensor) -> Tensor:
    """[S, *B]: for each draw the mean reward of the other draws of its structure."""
    return (rewards.sum(0) - rewards) / (len(rewards) - 1)


def score_term(advantage: Tensor, log_prob: Tensor) -> Tensor:
    """[]: 0, with the gradient of the mean of an advantage [S, *B] times log p [S, *B]."""
    return (advantage * (log_prob - log_prob.detach())).mean()
