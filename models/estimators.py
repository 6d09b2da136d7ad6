"""Seven ways to the gradient of E_q[log p(x, z)] + beta H[q], behind one small interface.

All of them score templates with the same `log_joint`; they differ in where the templates come from,
and in how the reward reaches q.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

from torch import Tensor

from models.config import ObjectiveConfig
from models.data.batch import Batch
from models.decoder import LogJoint
from models.template_vae import TemplateVAE


@dataclass(frozen=True)
class Knobs:
    """What a schedule turns while training."""

    temperature: float = 1.0
    beta: float = 0.1  # weight of the entropy, per sentence
    word_dropout: float = 0.0
    context_dropout: float = 0.0
    target_gradient: float = 0.0  # see `Decoder.forward`


class Estimator(Protocol):
    @property
    def latent(self) -> bool:
        """Does it need a model with templates?"""
        ...

    def loss(self, model: TemplateVAE, batch: Batch, knobs: Knobs) -> Tensor:
        """A scalar, per sentence, whose gradient is the estimate (with its sign turned)."""
        ...


@dataclass(frozen=True)
class LanguageModel:
    """RNNLM: no templates."""

    latent: bool = False

    def loss(self, model: TemplateVAE, batch: Batch, knobs: Knobs) -> Tensor:
        return -model.log_joint(batch, word_dropout=knobs.word_dropout).total().mean()


@dataclass(frozen=True)
class Relaxed:
    """Gumbel-CRF or PM-MRF: gradients through a sample, relaxed or straight-through."""

    sampler: str  # a method of LinearChainCRF
    straight_through: bool
    latent: bool = True

    def loss(self, model: TemplateVAE, batch: Batch, knobs: Knobs) -> Tensor:
        posterior = model.posterior(batch, knobs.context_dropout)
        draw = getattr(posterior, self.sampler)
        states = draw((1,), temperature=knobs.temperature, straight_through=self.straight_through)
        reward = _log_joint(model, batch, states, knobs).total().mean()
        return -reward - knobs.beta * posterior.entropy().mean()


@dataclass(frozen=True)
class Reinforce:
    """REINFORCE-MS: the score function, each sample against the mean reward of the others.

    `constant` is taken off as well (REINFORCE-MS-C). The reward holds a `target_gradient`
    share of log p(z). With 0 that is less than the relaxed estimators have: there log p(z) still
    reaches q through the decoder's inputs.
    """

    num_samples: int = 5
    constant: float = 0.0
    reward_scale: float = 1.0
    latent: bool = True

    def __post_init__(self) -> None:
        if self.num_samples < 2:
            raise ValueError("REINFORCE-MS compares samples: num_samples must be at least 2")

    def loss(self, model: TemplateVAE, batch: Batch, knobs: Knobs) -> Tensor:
        posterior = model.posterior(batch, knobs.context_dropout)
        states = posterior.sample((self.num_samples,))
        joint = _log_joint(model, batch, states, knobs)  # [S, B]
        reward = joint.words + knobs.target_gradient * joint.states
        score = (self._advantage(reward.detach()) * posterior.log_prob(states)).mean()
        return -joint.total().mean() - score - knobs.beta * posterior.entropy().mean()

    def _advantage(self, reward: Tensor) -> Tensor:
        others = (reward.sum(0) - reward) / (self.num_samples - 1)
        return self.reward_scale * (reward - others - self.constant)


def _log_joint(model: TemplateVAE, batch: Batch, states: Tensor, knobs: Knobs) -> LogJoint:
    """[S, B]."""
    return model.log_joint(
        batch,
        states,
        word_dropout=knobs.word_dropout,
        context_dropout=knobs.context_dropout,
        target_gradient=knobs.target_gradient,
    )


ESTIMATORS: dict[str, Estimator] = {
    "rnnlm": LanguageModel(),
    "gumbel-crf": Relaxed("rsample", straight_through=False),
    "gumbel-crf-st": Relaxed("rsample", straight_through=True),
    "pm-mrf": Relaxed("perturb_and_map", straight_through=False),
    "pm-mrf-st": Relaxed("perturb_and_map", straight_through=True),
    "reinforce-ms": Reinforce(),
    "reinforce-ms-c": Reinforce(constant=0.1),
}


def build_estimator(objective: ObjectiveConfig) -> Estimator:
    """The estimator of that name, with the settings that concern it."""
    estimator = ESTIMATORS[objective.estimator]
    if not isinstance(estimator, Reinforce):
        return estimator
    return replace(
        estimator,
        num_samples=objective.num_samples,
        constant=objective.constant_baseline if estimator.constant else 0.0,
        reward_scale=objective.reward_scale,
    )
