"""What a template VAE is trained for: E_q[log p(x, z)] + beta H[q].

How templates are drawn and how the reward reaches q is up to one of `structdist.estimators`; what
the reward is, the entropy, and what schedules turn are said here.
"""

from __future__ import annotations

from dataclasses import dataclass, is_dataclass, replace
from typing import Any

from torch import Tensor

from models.config import Knobs, ObjectiveConfig
from models.data.batches import Batch
from models.vae.template_vae import TemplateVAE
from structdist import SemiMarkovCRF
from structdist.estimators import Estimator, estimator


@dataclass(frozen=True)
class Objective:
    """The likelihood of sentences, or a bound on it over templates that q draws.

    Without an estimator it is the likelihood that a model without templates has.

    An estimator that weighs templates by their reward counts a `target_gradient` share of log p(z)
    in it. With 0 that is less than the relaxed estimators have: there log p(z) still reaches q
    through the decoder's inputs. The decoder learns log p(z) whatever the share.

    While a phrase model teaches q (`phrase_model` above 0), that is all that q learns from.
    """

    estimator: Estimator | None = None

    @property
    def latent(self) -> bool:
        """Whether it needs a model with templates."""
        return self.estimator is not None

    def loss(self, model: TemplateVAE, batch: Batch, knobs: Knobs) -> Tensor:
        """A scalar, per sentence, whose gradient is the estimate (with its sign turned)."""
        if self.estimator is None:
            return -model.log_joint(batch, None, knobs).total().mean()
        posterior = model.posterior(batch, knobs)
        if knobs.phrase_model > 0 and isinstance(posterior, SemiMarkovCRF):
            joint = model.log_joint(batch, posterior.sample((1,)), knobs)
            assert model.phrase_teacher is not None
            lesson = model.phrase_teacher.lesson(batch, posterior)
            return knobs.phrase_model * lesson.mean() - joint.total().mean()
        estimator = self.estimator
        if "temperature" in estimator.settings:
            estimator = replace(estimator, temperature=knobs.temperature)  # type: ignore[type-var]
        weighs_by_reward = estimator.unbiased or not estimator.pathwise  # its value, that is
        share = knobs.target_gradient if weighs_by_reward else 1.0
        withheld: list[Tensor] = []  # by each call of the reward, of which the first has the draws

        def reward(events: Tensor) -> Tensor:
            """Log p(x, z) [S, B], with its gradient, less a share of log p(z) in its value."""
            joint = model.log_joint(batch, events, knobs)
            withheld.append((1 - share) * joint.states.detach())
            return joint.total() - withheld[-1]

        surrogate = estimator.estimate(posterior, reward).surrogate
        return -surrogate - withheld[0].mean() - knobs.beta * posterior.entropy().mean()

    def state_dict(self) -> dict[str, Any]:
        """The state of settings that adapt themselves, such as the step of adaptive I-MLE."""
        names = self.estimator.settings if self.estimator else ()
        values = {name: getattr(self.estimator, name) for name in names}
        return {name: dict(vars(value)) for name, value in values.items() if is_dataclass(value)}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave."""
        for name, learnt in state.items():
            vars(getattr(self.estimator, name)).update(learnt)


def build_objective(config: ObjectiveConfig) -> Objective:
    if not config.latent:
        return Objective()
    return Objective(estimator(config.estimator, **config.estimator_settings))
