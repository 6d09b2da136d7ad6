"""Likelihood in the discrete setting: exact hard templates."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from models.data.batch import Batch
from models.template_vae import TemplateVAE


@torch.no_grad()
def importance_log_likelihood(
    model: TemplateVAE, batch: Batch, num_samples: int = 100, chunk: int = 10
) -> Tensor:
    """[B]: log p(x), as the log mean of p(x, z) / q(z | x) over samples of q.

    Samples are scored `chunk` at a time, so memory does not grow with their number.
    """
    posterior = model.posterior(batch)
    log_weights = []
    for done in range(0, num_samples, chunk):
        states = posterior.sample((min(chunk, num_samples - done),))
        log_p = model.log_joint(batch, states).total()
        log_weights.append(log_p - posterior.log_prob(states))
    return torch.cat(log_weights).logsumexp(0) - math.log(num_samples)
