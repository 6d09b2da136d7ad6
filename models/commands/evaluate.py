"""`python -m models evaluate`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jsonargparse import ArgumentParser
from jsonargparse.typing import NonNegativeInt, PositiveInt
from rich.table import Table

from models.commands.options import (
    add_draws,
    add_run,
    coloured,
    load,
    plain_console,
    start_draws,
    watched,
)
from models.data.corpus import SPLITS, spread
from models.errors import SettingError
from models.files import write_json
from models.metrics.boundaries import Boundaries, boundary_recovery
from models.metrics.recovery import Recovery, recovery
from models.templates.segments import segment_starts

if TYPE_CHECKING:
    from models.generation.control import Control
    from models.runs import TrainedRun
    from models.vae.likelihood import Scores

USAGE = "evaluate RUN [options]"
DETAILS = """\
Prints the importance-sampled NLL, perplexity, negative ELBO, posterior entropy, the states in use
and, where the corpus knows the true slots, how well the states recover them."""

BATCH = 50
CONTROL_HELP = (
    "How many tables a data2text run writes from, freely and under three templates each, for "
    "the slot error rate, the adherence to templates and the orders they make."
)


def add_arguments(parser: ArgumentParser) -> None:
    add, split = parser.add_argument, Literal[SPLITS]
    add_run(parser)
    add("--split", type=split, default="test", help="Which sentences.")
    add("--samples", type=PositiveInt, default=100, help="Importance samples a sentence.")
    add("--limit", type=NonNegativeInt, default=0, help="Only so many sentences; 0 for all.")
    add("--show", type=NonNegativeInt, default=5, help="Sentences to show with their states.")
    add("--control", type=NonNegativeInt, default=0, help=CONTROL_HELP)
    add("--json", type=str | None, help="Also write the numbers to this file.")
    add_draws(parser)


def run(options: Any) -> None:
    from models.data.batches import in_order
    from models.data.tasks import encode_task
    from models.templates.of_runs import map_templates
    from models.vae.likelihood import evaluate

    start_draws(options)
    trained = load(options)
    if options.control and (trained.config.task != "data2text" or not trained.model.latent):
        raise SettingError("--control is for data2text runs with templates")
    examples = trained.corpus().splits[options.split]
    sentences = encode_task(trained.config.task, examples, trained.vocabulary)
    sentences = sentences[: options.limit or len(sentences)]
    examples = examples[: options.limit or len(examples)]
    batches = in_order(sorted(sentences, key=len), BATCH)  # of similar lengths: little padding
    scores = evaluate(trained.model, watched(batches, "batches to evaluate"), options.samples)
    templates = map_templates(trained, examples) if trained.model.latent else []
    slots = [example.slots for example in examples if example.slots is not None]
    known = bool(templates) and len(slots) == len(examples)  # as in the built-in corpus
    recovered = recovery(templates, slots) if known else None
    starts = [segment_starts(states) for states in templates]
    boundaries = boundary_recovery(starts, slots) if known else None
    control = _control(trained, options) if options.control else None
    console = plain_console()
    title = f"{options.run}: {trained.config.objective.estimator}, {options.split}"
    table = Table("measure", "value", "what it is", title=title)
    for name, value, meaning in _rows(scores, recovered, boundaries, control):
        table.add_row(name, f"{value:.3f}" if isinstance(value, float) else str(value), meaning)
    console.print(table)
    if scores.collapse:
        console.print(f"posterior collapse, {scores.collapse}", style="bold red")
    for example, states in list(zip(examples, templates, strict=False))[: options.show]:
        console.print(coloured(example.words, states))
    if options.json:
        found = {
            "run": trained.config.as_dict(),
            "checkpoint": {"name": options.checkpoint, "step": trained.step},
            **{name: options[name] for name in ("split", "samples", "seed")},
            "sentences": len(sentences),
            "scores": asdict(scores),
            "recovery": recovered and recovered._asdict(),
            "boundaries": boundaries and {**boundaries._asdict(), "f1": boundaries.f1},
            "control": control and asdict(control),
        }
        write_json(Path(options.json), found)


def _control(trained: TrainedRun, options: Any) -> Control:
    """Measured on as many different tables of the split as asked for, evenly spread."""
    from models.generation.control import measure_control
    from models.generation.writer import Writer
    from models.templates.of_runs import run_templates

    corpus = trained.corpus()
    tables = list(dict.fromkeys(example.table for example in corpus.splits[options.split]))
    bank = run_templates(trained, corpus, watched)
    return measure_control(Writer(trained), bank, spread(tables, options.control), watched)


def _rows(
    scores: Scores,
    recovered: Recovery | None,
    boundaries: Boundaries | None,
    control: Control | None,
) -> Iterator[tuple[str, float | int | None, str]]:
    """Measures, their values, and what they are."""
    exact = scores.neg_elbo is None
    yield "NLL", scores.nll, f"nats per sentence, {'exact' if exact else 'importance-sampled'}"
    yield "PPL", scores.ppl, "exp(total NLL / total words), end marks counted"
    if not exact:
        yield "neg. ELBO", scores.neg_elbo, "nats per sentence, exact hard templates"
        yield "entropy", scores.entropy, "of the posterior, nats per sentence"
        yield "states in use", scores.states_in_use, "with a thousandth of the words or more"
    if recovered is not None:
        yield "NMI", recovered.v_measure, "of MAP states and true slots; also called V-measure"
        yield "homogeneity", recovered.homogeneity, "1 if each state means one slot"
        yield "completeness", recovered.completeness, "1 if each slot has one state"
        yield "many-to-one", recovered.many_to_one, "share of words, each state as its main slot"
    if boundaries is not None:
        yield "boundary F1", boundaries.f1, "starts of segments, against changes of true slots"
        yield "  precision", boundaries.precision, "share of the starts of segments that are true"
        yield "  recall", boundaries.recall, "share of the changes of slots that are found"
    if control is not None:
        yield "slot errors", control.slot_errors, f"per slot, {control.tables} tables, states free"
        yield "  under templates", control.slot_errors_under_templates, "three for each table"
        yield "adherence", control.adherence, "words in the state that the template asks for"
        yield "three orders", control.different_orders, "tables told in three different orders"
