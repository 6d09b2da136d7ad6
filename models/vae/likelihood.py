"""How good a model is, in the discrete setting: exact hard templates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence

from models.data.batches import Batch
from models.vae.phrases import word_states
from models.vae.template_vae import Posterior, TemplateVAE

CHUNK = 10  # samples scored at a time: memory does not grow with their number
IN_USE = 1e-3  # a state is in use if it has this share of the words, end marks left out
NEARLY_UNIFORM = 0.95  # of the largest entropy a posterior can have
NEARLY_CONSTANT = 0.05  # of the largest entropy the state at a position can have
LARGEST_EXPONENT = 700.0  # a perplexity beyond its exp is infinite


class Estimates(NamedTuple):
    """Per sentence [B]."""

    log_likelihood: Tensor  # log mean of p(x, z) / q(z | x): importance sampling
    words: Tensor  # mean of log p(x | z)
    states: Tensor  # mean of log p(z)
    entropy: Tensor  # H[q]

    @property
    def elbo(self) -> Tensor:
        return self.words + self.states + self.entropy


@torch.no_grad()
def importance_estimates(
    model: TemplateVAE, batch: Batch, posterior: Posterior, num_samples: int
) -> Estimates:
    """Estimates log p(x) and the parts of the bound on it from the same samples of q."""
    log_sum = torch.full(batch.lengths.shape, -math.inf, device=batch.lengths.device)
    words = states = torch.zeros_like(log_sum)
    for done in range(0, num_samples, CHUNK):
        templates = posterior.sample((min(CHUNK, num_samples - done),))
        joint = model.log_joint(batch, templates)  # [S, B]
        log_weights = joint.total() - posterior.log_prob(templates)
        log_sum = torch.logaddexp(log_sum.to(log_weights.dtype), log_weights.logsumexp(0))
        words, states = words + joint.words.sum(0), states + joint.states.sum(0)
    means = words / num_samples, states / num_samples
    return Estimates(log_sum - math.log(num_samples), *means, posterior.entropy())


@dataclass(frozen=True)
class Scores:
    """Per sentence, in nats; words count with the end mark."""

    nll: float
    ppl: float  # exp(total NLL / total words)
    neg_elbo: float | None = None  # without templates there is none, nor what follows
    word_nats: float | None = None  # -log p(x | z); the bound has these two, less the entropy
    state_nats: float | None = None  # -log p(z)
    entropy: float | None = None
    entropy_share: float | None = None  # of the largest possible entropy, n log(choices a word)
    position_entropy_share: float | None = None  # of the MAP state at a position, of log K
    states_in_use: int | None = None

    @property
    def bound(self) -> float:
        """What validation goes by: the smallest upper bound on the NLL that is cheap."""
        return self.nll if self.neg_elbo is None else self.neg_elbo

    @property
    def collapse(self) -> str | None:
        """Either kind of posterior collapse, in words."""
        if self.entropy_share is None or self.position_entropy_share is None:
            return None
        if self.entropy_share > NEARLY_UNIFORM:
            return "uniform: q ignores the sentence, all templates are alike to it; lower beta"
        if self.position_entropy_share < NEARLY_CONSTANT:
            return "constant: q gives every sentence the same template; raise beta"
        return None


class Tally:
    """Sums over sentences, from which `Scores` are made."""

    def __init__(self) -> None:
        self.sentences = self.words = 0
        self.sums = Estimates(*torch.zeros(4, dtype=torch.double))
        self.largest_entropy = 0.0
        self.states: list[Tensor] = []  # counts of MAP states at each position [T, K], by batch

    @torch.no_grad()
    def add(self, model: TemplateVAE, batch: Batch, num_samples: int) -> None:
        self.sentences += len(batch.lengths)
        self.words += int(batch.lengths.sum())
        if model.latent:
            posterior = model.posterior(batch)
            found = importance_estimates(model, batch, posterior, num_samples)
            choices = posterior.event_shape[-1] + model.has_phrases  # states, and to go on
            self.largest_entropy += float(batch.lengths.sum()) * math.log(choices)
            words = pad(batch.active[:, 1:], (0, 1))  # where something follows: no end marks
            states = word_states(posterior.mode) if model.has_phrases else posterior.mode
            self.states.append((states * words.unsqueeze(-1)).sum(0).cpu())
        else:
            joint = model.log_joint(batch)
            found = Estimates(joint.total(), *joint, torch.zeros_like(joint.words))
        both = zip(self.sums, found, strict=True)
        self.sums = Estimates(*(total + own.double().sum().cpu() for total, own in both))

    def scores(self) -> Scores:
        if not self.sentences:
            raise ValueError("no sentences to evaluate")
        log_likelihood, words, states, entropy = (float(x / self.sentences) for x in self.sums)
        per_word = float(-self.sums.log_likelihood / self.words)
        ppl = math.exp(per_word) if per_word < LARGEST_EXPONENT else math.inf
        if not self.states:
            return Scores(-log_likelihood, ppl)
        counts = pad_sequence(self.states).sum(1)  # [T, K]
        weights = counts.sum(-1)
        entropies = torch.special.entr(counts / weights.clamp(min=1).unsqueeze(-1)).sum(-1)
        position_entropy = (weights * entropies).sum() / weights.sum()
        return Scores(
            -log_likelihood,
            ppl,
            float(-self.sums.elbo / self.sentences),
            -words,
            -states,
            entropy,
            float(self.sums.entropy / self.largest_entropy),
            float(position_entropy / math.log(counts.shape[-1])),
            int((counts.sum(0) / weights.sum() >= IN_USE).sum()),
        )


def evaluate(model: TemplateVAE, batches: Iterable[Batch], num_samples: int = 100) -> Scores:
    """Scores of whole batches; dropout should be off."""
    tally = Tally()
    for batch in batches:
        tally.add(model, batch, num_samples)
    return tally.scores()
