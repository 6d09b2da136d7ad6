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

from models.data.corpus import SPLITS, Example, spread
from models.data.loader import Sentence, in_order
from models.data.tasks import encode_task
from models.display import coloured, score_table
from models.errors import SettingError
from models.evaluation import Scores, evaluate
from models.generation.control import Control, measure_control
from models.generation.writer import Writer
from models.recovery import Recovery, recovery
from models.run_templates import run_templates
from models.runs import TrainedRun, load_run
from models.templates import map_templates
from models.training.checkpoints import BEST

USAGE = "evaluate RUN [options]"
DETAILS = """\
Prints the importance-sampled NLL, perplexity, negative ELBO, posterior entropy, the states in use
and, where the corpus knows the true slots, how well the states recover them."""

BATCH = 50
CONTROL_HELP = (
    "Of a data2text run: so many tables to write from, freely and under three templates each, for "
    "the slot error rate, the adherence to templates and the orders they make."
)


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
    parser.add_argument("--control", type=NonNegativeInt, default=0, help=CONTROL_HELP)
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
    if options.control:
        check_control(trained)
    examples = trained.corpus().splits[options.split]
    sentences = encode_task(trained.config.task, examples, trained.vocabulary)
    sentences = sentences[: options.limit or len(sentences)]
    examples = examples[: options.limit or len(examples)]
    console = Console()
    scores = evaluate_sentences(trained, sentences, options.samples, console)
    templates = (
        map_templates(trained.model, examples, trained.vocabulary.words) if scores.neg_elbo else []
    )
    recovered = recover_slots(templates, examples)
    control = control_of(trained, options.control, options.split) if options.control else None
    title = f"{options.run}: {trained.config.objective.estimator}, {options.split}"
    console.print(score_table(title, scores, recovered, control))
    if scores.collapse:
        console.print(f"[bold red]posterior collapse[/], {scores.collapse}")
    for example, states in list(zip(examples, templates, strict=False))[: options.show]:
        console.print(coloured(example.words, states))
    if options.json:
        found = {
            "sentences": len(sentences),
            "scores": asdict(scores),
            "recovery": recovered and recovered._asdict(),
            "control": control and asdict(control),
        }
        _write(Path(options.json), options, trained, found)


def evaluate_sentences(
    trained: TrainedRun, sentences: Sequence[Sentence], samples: int, console: Console
) -> Scores:
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


def check_control(trained: TrainedRun) -> None:
    """Before any work is done."""
    if trained.config.task != "data2text" or not trained.model.latent:
        raise SettingError("--control is for data2text runs with templates")


def control_of(trained: TrainedRun, number: int, split: str) -> Control:
    """On so many different tables of the split, evenly spread."""
    corpus = trained.corpus()
    tables = list(dict.fromkeys(example.table for example in corpus.splits[split]))
    bank = run_templates(trained, corpus)
    return measure_control(Writer(trained), bank, spread(tables, number))


def _write(path: Path, options: Any, trained: TrainedRun, found: dict[str, Any]) -> None:
    about = {
        "run": trained.config.as_dict(),
        "checkpoint": {"name": options.checkpoint, "step": trained.step},
        "split": options.split,
        "samples": options.samples,
        "seed": options.seed,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(about | found, indent=2) + "\n")
