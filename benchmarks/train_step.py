"""`python -m benchmarks train-step`: what a training step of the template VAE costs.

A step is loss, gradient, clipping and an Adam update on sentences of full length, as in Table 4 of
the paper. `importance-nll` is the evaluation of a few sentences with many samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial

import torch
from torch import nn

from benchmarks.memory import peak_bytes
from benchmarks.results import Record
from benchmarks.timing import Limits, Stopwatch, Timing, race
from models.config import Knobs, ModelConfig, ObjectiveConfig
from models.data.batches import Batch
from models.data.vocabulary import UNKNOWN
from models.vae.likelihood import Estimates, importance_estimates
from models.vae.objective import Objective, build_objective
from models.vae.template_vae import TemplateVAE

EVALUATION = "importance-nll"
WORK = [
    "rnnlm",
    "gumbel-crf",
    "gumbel-crf-st",
    "pm-mrf",
    "pm-mrf-st",
    "reinforce-ms",
    "reinforce-ms-c",
    EVALUATION,
]
EVALUATED_SENTENCES, EVALUATION_SAMPLES = 10, 100
KNOBS = Knobs(temperature=0.5)


@dataclass(frozen=True)
class Plan:
    work: Sequence[str]  # names of estimators, or EVALUATION
    batch: int
    length: int
    states: int
    hidden: int
    vocabulary: int

    def model(self, latent: bool = True) -> TemplateVAE:
        config = ModelConfig(num_states=self.states, hidden_size=self.hidden)
        return TemplateVAE(config, self.vocabulary, latent)


@dataclass(frozen=True)
class Row:
    work: str
    batch: int
    length: int
    states: int
    hidden: int
    vocabulary: int
    time: Timing
    tokens_per_second: float
    bytes: int


class Trainer:
    """A model, its optimiser, and one step of training."""

    def __init__(self, plan: Plan, objective: Objective, device: torch.device) -> None:
        self.objective = objective
        self.model = plan.model(objective.latent).to(device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3)

    def step(self, batch: Batch) -> None:
        self.optimizer.zero_grad()
        self.objective.loss(self.model, batch, KNOBS).backward()
        nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()


def run(
    plan: Plan,
    device: torch.device,
    limits: Limits,
    progress: Callable[[str], object] = lambda _: None,
) -> list[Record]:
    """Rows, as plain records. `progress` hears of each piece of work before it starts."""
    rows = []
    for name in plan.work:
        progress(name)
        rows.append(asdict(measure(name, plan, device, limits)))
    return rows


def measure(name: str, plan: Plan, device: torch.device, limits: Limits) -> Row:
    torch.manual_seed(0)
    sentences = EVALUATED_SENTENCES if name == EVALUATION else plan.batch
    prepare = partial(random_batch, sentences, plan, device)
    work = _evaluation(plan, device) if name == EVALUATION else _training(name, plan, device)
    time = race({name: work}, prepare, Stopwatch(device), limits)[name]
    peak = peak_bytes(lambda: work(prepare(0)), device)
    tokens = sentences * plan.length / time.median
    sizes = plan.length, plan.states, plan.hidden, plan.vocabulary
    return Row(name, sentences, *sizes, time, tokens, peak)


def _training(name: str, plan: Plan, device: torch.device) -> Callable[[Batch], object]:
    return Trainer(plan, build_objective(ObjectiveConfig(name)), device).step


def _evaluation(plan: Plan, device: torch.device) -> Callable[[Batch], object]:
    model = plan.model().to(device).eval()

    @torch.no_grad()
    def evaluate(batch: Batch) -> Estimates:
        posterior = model.posterior(batch)
        return importance_estimates(model, batch, posterior, EVALUATION_SAMPLES)

    return evaluate


def random_batch(sentences: int, plan: Plan, device: torch.device, seed: int) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    shape = sentences, plan.length
    words = torch.randint(UNKNOWN + 1, plan.vocabulary, shape, generator=generator)
    lengths = torch.full((sentences,), plan.length)
    return Batch(words.to(device), lengths.to(device))
