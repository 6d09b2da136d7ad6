"""Every estimator gives a finite loss and reaches the parameters it should; REINFORCE is unbiased.

The statistical test has a fixed seed; its estimate is off by 5 standard errors with p < 1e-5.
"""

from __future__ import annotations

import pytest
import torch

from models.data.batch import Batch
from models.estimators import ESTIMATORS, Knobs
from models.template_vae import TemplateVAE
from tests.models.conftest import CONFIG, VOCABULARY_SIZE
from tests.models.test_template_vae import all_templates

LATENT = [name for name, estimator in ESTIMATORS.items() if estimator.latent]


def gradients(model: TemplateVAE) -> dict[str, torch.Tensor | None]:
    return {name: parameter.grad for name, parameter in model.named_parameters()}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_gradients_reach_every_parameter(name, batch):
    torch.manual_seed(0)
    estimator = ESTIMATORS[name]
    model = TemplateVAE(CONFIG, VOCABULARY_SIZE, latent=estimator.latent)
    loss = estimator.loss(model, batch, Knobs(temperature=0.5, word_dropout=0.3))
    loss.backward()
    assert loss.isfinite()
    for parameter, grad in gradients(model).items():
        assert grad is not None, parameter
        assert grad.isfinite().all(), parameter
        assert (grad != 0).any(), parameter


@pytest.mark.parametrize("name", ["gumbel-crf", "gumbel-crf-st", "pm-mrf", "pm-mrf-st"])
def test_a_fixed_target_keeps_the_prior_from_pulling_at_the_states(name, model, batch):
    """Only log p(z)'s own gradient differs between the two: the loss is the same number."""
    losses, grads = [], []
    for share in (0.0, 1.0):
        torch.manual_seed(0)
        model.zero_grad()
        loss = ESTIMATORS[name].loss(model, batch, Knobs(target_gradient=share))
        loss.backward()
        losses.append(loss.item())
        grads.append(model.inference_network.scores.weight.grad.clone())
    assert losses[0] == losses[1]
    assert not torch.allclose(grads[0], grads[1])


@pytest.mark.parametrize("name", ["reinforce-ms", "reinforce-ms-c"])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_reinforce_is_unbiased(name, share, model):
    """Against the gradient of the exact objective, by enumeration of all templates."""
    batch = Batch(torch.tensor([[4, 5, 2]]), torch.tensor([3]))
    knobs = Knobs(beta=0.2, target_gradient=share)
    weight = model.inference_network.scores.weight
    (exact,) = torch.autograd.grad(-exact_objective(model, batch, knobs), weight)
    torch.manual_seed(0)
    draws = []
    for _ in range(150):
        loss = ESTIMATORS[name].loss(model, batch.repeat(20), knobs)
        draws.append(torch.autograd.grad(loss, weight)[0])
    estimates = torch.stack(draws)
    error = estimates.std(0) / len(draws) ** 0.5
    assert ((estimates.mean(0) - exact).abs() <= 5 * error + 1e-9).all()


def exact_objective(model: TemplateVAE, batch: Batch, knobs: Knobs) -> torch.Tensor:
    """E_q[log p(x, z)] + beta H[q] of one sentence, with a share of log p(z)."""
    posterior = model.posterior(batch)
    templates = all_templates(3, 3).unsqueeze(1)  # [S, 1, T, K]
    with torch.no_grad():
        joint = model.log_joint(batch, templates)
        reward = (joint.words + knobs.target_gradient * joint.states)[:, 0]
    probs = posterior.log_prob(templates)[:, 0].exp()
    return (probs * reward).sum() + knobs.beta * posterior.entropy()[0]
