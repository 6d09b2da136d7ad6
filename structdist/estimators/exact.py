"""The exact gradient, by enumeration: the truth that estimators are held to."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from structdist.base import StructuredDistribution
from structdist.checks import require_count
from structdist.estimators.estimator import Estimate, Estimator, Reward


@dataclass(frozen=True, kw_only=True)
class Exact(Estimator):
    """E[f(z)] itself, summed over every outcome that is allowed. Neither bias nor variance.

    For small structures: more than `max_outcomes` are an error. Its draws are all outcomes, the
    most probable first, and its rewards those of each, 0 where a structure of the batch has fewer.

    The best P paths of every structure, P being the largest number of outcomes, and their log p;
    one call of the reward, for P events of every structure.

    Example:
        >>> import torch
        >>> from structdist import LinearChainCRF
        >>> from structdist.estimators import Exact
        >>> scores = torch.zeros(6, 4, requires_grad=True)
        >>> dist = LinearChainCRF(scores, torch.zeros(4, 4))
        >>> reward = lambda z: z[..., 0].sum(-1) ** 2
        >>> round(Exact().estimate(dist, reward).surrogate.item(), 3)  # E[n^2], n of 6 with p = 1/4
        3.375
    """

    unbiased = True

    max_outcomes: int = 10_000

    def __post_init__(self) -> None:
        require_count("max_outcomes", self.max_outcomes)

    def _estimate(
        self, dist: StructuredDistribution, reward: Reward, generator: torch.Generator | None
    ) -> Estimate:
        paths, log_probs = dist.topk(self._num_outcomes(dist))
        events = dist._events(paths)
        is_outcome = log_probs > -torch.inf
        rewards = torch.where(is_outcome, self._rewards(dist, reward, events), 0.0)
        mean = (_probs(log_probs, is_outcome) * rewards).sum(0).mean()
        return Estimate(mean, rewards.detach(), events)

    def _num_outcomes(self, dist: StructuredDistribution) -> int:
        """The largest number of outcomes that a structure of the batch allows."""
        log_counts = dist.renyi_entropy(0)
        most = log_counts.double().exp().max().item() if log_counts.numel() else 1.0
        if most > self.max_outcomes + 0.5:
            raise ValueError(
                f"dist allows {most:.3g} outcomes, too many to enumerate (max_outcomes is "
                f"{self.max_outcomes})"
            )
        return round(most)


def _probs(log_probs: Tensor, is_outcome: Tensor) -> Tensor:
    return torch.where(is_outcome, torch.where(is_outcome, log_probs, 0.0).exp(), 0.0)
