"""What an estimator is: the gradient of E[f(z)] as that of one scalar."""

from __future__ import annotations

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from structdist.base import StructuredDistribution

Reward = Callable[[Tensor], Tensor]  #: Of events `[S, *B, *event_shape]`, giving `[S, *B]`.


class Estimate(NamedTuple):
    """What `Estimator.estimate` gives."""

    surrogate: Tensor  #: `[]`: its value is the mean reward, its gradient is the estimate
    rewards: Tensor  #: `[S, *B]`, without a graph
    draws: Tensor  #: `[S, *B, *event_shape]`: what the reward was given, without a graph


class Estimator(ABC):
    """One way to the gradient of E[f(z)], the mean over the batch of what a reward f pays.

    Subclasses are frozen dataclasses of their settings. What drivers ask about them stands here.

    Example:
        >>> from structdist.estimators import estimator
        >>> reinforce = estimator("reinforce-ms", num_samples=3)
        >>> reinforce.pathwise, reinforce.unbiased, reinforce.fewest_samples
        (False, True, 2)
        >>> reinforce.settings
        ('num_samples', 'leave_one_out', 'constant', 'reward_scale')
    """

    pathwise: ClassVar[bool] = False
    """Does it need a reward that is differentiable in its events?"""

    unbiased: ClassVar[bool] = False
    """Is the expected estimate the gradient itself, whatever the reward?"""

    @property
    def relaxed(self) -> bool:
        """Is the reward given relaxed events, and not outcomes alone?"""
        return False

    @property
    def fewest_samples(self) -> int:
        """What `num_samples` must be at least."""
        return 1

    @property
    def settings(self) -> tuple[str, ...]:
        """The names of its settings: of those with a temperature, "temperature" is one."""
        return tuple(field.name for field in dataclasses.fields(self))  # type: ignore[arg-type]

    def estimate(
        self,
        dist: StructuredDistribution,
        reward: Reward,
        *,
        generator: torch.Generator | None = None,
    ) -> Estimate:
        """A scalar for `backward`, and what one logs.

        `reward` takes events `[S, *B, *event_shape]` and gives `[S, *B]`. The gradient reaches the
        parameters of `dist` and those of the reward itself (a decoder's, say): of these it is the
        gradient of the mean reward.
        """
        if not isinstance(dist, StructuredDistribution):
            raise ValueError(
                f"dist must be a StructuredDistribution, got {type(dist).__name__}"
                + (" (take its .base)" if hasattr(dist, "base") else "")
            )
        return self._estimate(dist, reward, generator)

    @abstractmethod
    def _estimate(
        self, dist: StructuredDistribution, reward: Reward, generator: torch.Generator | None
    ) -> Estimate:
        """The same, once the arguments are known to be right."""

    def _require_num_samples(self, num_samples: object) -> None:
        fewest = self.fewest_samples
        if isinstance(num_samples, bool) or not isinstance(num_samples, int):
            raise ValueError(f"num_samples must be an integer, got {num_samples!r}")
        if num_samples < fewest:
            raise ValueError(
                f"num_samples must be at least {fewest} for {type(self).__name__}"
                f"{' with a leave-one-out mean' if fewest > 1 else ''}, got {num_samples}"
            )

    def _rewards(self, dist: StructuredDistribution, reward: Reward, events: Tensor) -> Tensor:
        """[S, *B]: what the reward pays for events [S, *B, *event_shape], checked."""
        rewards = reward(events)
        shape = events.shape[: events.dim() - len(dist.event_shape)]
        if not isinstance(rewards, Tensor) or not rewards.is_floating_point():
            got = rewards.dtype if isinstance(rewards, Tensor) else type(rewards).__name__
            raise ValueError(f"reward must give a floating-point tensor, got {got}")
        if rewards.shape != shape:
            raise ValueError(
                f"reward must give one number for each draw, {tuple(shape)}, "
                f"got {tuple(rewards.shape)}"
            )
        if events.requires_grad and not rewards.requires_grad:
            raise self._not_differentiable()
        return rewards

    def _slopes(self, rewards: Tensor, events: Tensor) -> Tensor:
        """[S, *B, *event_shape]: the gradient of each reward by its own event."""
        (slopes,) = torch.autograd.grad(rewards.sum(), events, retain_graph=True, allow_unused=True)
        if slopes is None:
            raise self._not_differentiable()
        return slopes

    def _not_differentiable(self) -> ValueError:
        return ValueError(
            f"reward must be differentiable in its events for {type(self).__name__}, but what it "
            "gave does not depend on them by a graph (Reinforce does without)"
        )
