"""`python -m models evaluate`."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import torch
from jsonargparse import ArgumentParser
from jsonargparse.typing import NonNegativeInt, PositiveInt
from rich.console import Console
from rich.progress import track

from models.data.corpus import SPLITS, Example
from models.data.loader import encode, in_order
from models.display import coloured, score_table
from models.evaluation import Scores, evaluate
from models.recovery import Recovery, recovery
from models.runs import TrainedRun, load_run
from models.templates import map_templates
from models.training.checkpoints import BEST

USAGE = "evaluate RUN [options]"
DETAILS = """\
Prints the importance-sampled NLL, perplexity, negative ELBO, posterior entropy, the states in use
and, where the corpus knows the true slots, how well the states recover them."""

BATCH = 50


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("run", type=str, help="Folder of the run.")
    parser.add_argument("--split", type=Literal[SPLITS], default="test", help="Which sentences.")
    parser.add_argument(
        "--samples", type=PositiveInt, default=100, help="Importance samples a sentence."
    )
    parser.add_argument(
        "--checkpoint", type=Literal["best", "last"], default=BEST, help="By the dev set, or last."
    )
    parser.add_argument(
        "--limit", type=NonNegativeInt, default=0, help="Only so many sentences; 0 for all."
    )
    parser.add_argument(
        "--show", type=NonNegativeInt, default=5, help="Sentences to show with their states."
    )
    parser.add_argument("--seed", type=int, default=0, help="Of the samples.")
    parser.add_argument(
        "--threads", type=NonNegativeInt, default=0, help="CPU threads; 0: torch's choice."
    )
    parser.add_argument("--json", type=str | None, help="Also write the numbers to this file.")


def run(options: Any) -> None:
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    trained = load_run(Path(options.run), options.checkpoint)
    examples = trained.corpus().splits[options.split]
    examples = examples[: options.limit or len(examples)]
    console = Console()
    scores = evaluate_examples(trained, examples, options.samples, console)
    templates = (
        map_templates(trained.model, examples, trained.vocabulary) if scores.neg_elbo else []
    )
    recovered = recover_slots(templates, examples)
    title = f"{options.run}: {trained.config.objective.estimator}, {options.split}"
    console.print(score_table(title, scores, recovered))
    if scores.collapse:
        console.print(f"[bold red]posterior collapse[/], {scores.collapse}")
    for example, states in list(zip(examples, templates, strict=False))[: options.show]:
        console.print(coloured(example.words, states))
    if options.json:
        _write(Path(options.json), options, trained, len(examples), scores, recovered)


def evaluate_examples(
    trained: TrainedRun, examples: Sequence[Example], samples: int, console: Console
) -> Scores:
    sentences = encode([example.words for example in examples], trained.vocabulary)
    batches = in_order(sorted(sentences, key=len), BATCH)  # of similar lengths: little padding
    watched = track(batches, "evaluating", console=console, transient=True)
    return evaluate(trained.model, watched, samples)


def recover_slots(
    templates: Sequence[Sequence[int]], examples: Sequence[Example]
) -> Recovery | None:
    """Where the corpus knows the slots."""
    slots = [example.slots for example in examples if example.slots is not None]
    if not templates or len(slots) < len(examples):
        return None
    return recovery(templates, slots)


def _write(
    path: Path,
    options: Any,
    trained: TrainedRun,
    sentences: int,
    scores: Scores,
    recovered: Recovery | None,
) -> None:
    found = {
        "run": trained.config.as_dict(),
        "checkpoint": {"name": options.checkpoint, "step": trained.step},
        "split": options.split,
        "sentences": sentences,
        "samples": options.samples,
        "seed": options.seed,
        "scores": asdict(scores),
        "recovery": recovered and recovered._asdict(),
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(found, indent=2) + "\n")
