"""What a template VAE is trained for: E_q[log p(x, z)] + beta H[q].

How templates are drawn and how the reward reaches q is up to one of `structdist.estimators`; what
the reward is, the entropy, and what schedules turn are said here.
"""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Protocol

from torch import Tensor

from models.config import ObjectiveConfig
from models.data.batch import Batch
from models.estimator_settings import LANGUAGE_MODEL
from models.template_vae import TemplateVAE
from structdist.estimators import Estimator, estimator


@dataclass(frozen=True)
class Knobs:
    """What a schedule turns while training."""

    temperature: float = 1.0
    beta: float = 0.1  # weight of the entropy, per sentence
    word_dropout: float = 0.0
    context_dropout: float = 0.0
    target_gradient: float = 0.0  # see `Decoder.forward`


class Objective(Protocol):
    @property
    def latent(self) -> bool:
        """Does it need a model with templates?"""
        ...

    def loss(self, model: TemplateVAE, batch: Batch, knobs: Knobs) -> Tensor:
        """A scalar, per sentence, whose gradient is the estimate (with its sign turned)."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What it has learnt, of plain types."""
        ...

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        ...


@dataclass(frozen=True)
class LanguageModel:
    """RNNLM: no templates."""

    latent: bool = False

    def loss(self, model: TemplateVAE, batch: Batch, knobs: Knobs) -> Tensor:
        return -model.log_joint(batch, word_dropout=knobs.word_dropout).total().mean()

    def state_dict(self) -> dict[str, Any]:
        return {}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        pass


@dataclass(frozen=True)
class Templates:
    """A bound on the likelihood of sentences, over templates that q draws.

    An estimator that weighs templates by their reward counts a `target_gradient` share of log p(z)
    in it. With 0 that is less than the relaxed estimators have: there log p(z) still reaches q
    through the decoder's inputs. The decoder learns log p(z) whatever the share.
    """

    estimator: Estimator
    latent: bool = True

    def loss(self, model: TemplateVAE, batch: Batch, knobs: Knobs) -> Tensor:
        posterior = model.posterior(batch, knobs.context_dropout)
        share = knobs.target_gradient if self._weighs_by_reward else 1.0

        def reward(states: Tensor) -> Tensor:
            """Log p(x, z) [S, B], with its gradient, less a share of log p(z) in its value."""
            joint = model.log_joint(
                batch,
                states,
                word_dropout=knobs.word_dropout,
                context_dropout=knobs.context_dropout,
                target_gradient=knobs.target_gradient,
            )
            return joint.total() - (1 - share) * joint.states.detach()

        estimate = self._at(knobs.temperature).estimate(posterior, reward)
        return -estimate.surrogate - knobs.beta * posterior.entropy().mean()

    def state_dict(self) -> dict[str, Any]:
        """Of settings that adapt themselves, such as the step of adaptive I-MLE."""
        values = {name: getattr(self.estimator, name) for name in self.estimator.settings}
        return {name: dict(vars(value)) for name, value in values.items() if is_dataclass(value)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        for name, learnt in state.items():
            vars(getattr(self.estimator, name)).update(learnt)

    @property
    def _weighs_by_reward(self) -> bool:
        """Does the value of a reward matter, and not its gradient alone?"""
        return self.estimator.unbiased or not self.estimator.pathwise

    def _at(self, temperature: float) -> Estimator:
        if "temperature" not in self.estimator.settings:
            return self.estimator
        return replace(self.estimator, temperature=temperature)  # type: ignore[type-var]


def build_objective(config: ObjectiveConfig) -> Objective:
    if config.estimator == LANGUAGE_MODEL:
        return LanguageModel()
    return Templates(estimator(config.estimator, **config.estimator_settings))
