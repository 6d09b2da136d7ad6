"""`python -m models evaluate`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jsonargparse import ArgumentParser
from jsonargparse.typing import NonNegativeInt, PositiveInt
from rich.table import Table

from models.commands.options import add_run, coloured, load, plain_console, watched
from models.data.corpus import SPLITS, spread
from models.errors import SettingError
from models.files import write_json
from models.metrics.boundaries import boundary_recovery
from models.metrics.recovery import recovery
from models.templates.segments import segment_starts

if TYPE_CHECKING:
    from models.generation.control import Control
    from models.runs import TrainedRun

USAGE = "evaluate RUN [options]"
DETAILS = """\
Prints the importance-sampled NLL, perplexity, negative ELBO, posterior entropy, the states in use
and, where the corpus knows the true slots, how well the states recover them."""

BATCH = 50
CONTROL_HELP = (
    "How many tables a data2text run writes from, freely and under three templates each, for "
    "the slot error rate, the adherence to templates and the orders they make."
)
MEASURES = {  # parts of an evaluation: what tables call them, and what they are
    "scores.nll": ("NLL", "nats per sentence, {how}"),
    "scores.ppl": ("PPL", "exp(total NLL / total words), end marks counted"),
    "scores.neg_elbo": ("neg. ELBO", "nats per sentence, exact hard templates"),
    "scores.entropy": ("entropy", "of the posterior, nats per sentence"),
    "scores.states_in_use": ("states in use", "with a thousandth of the words or more"),
    "recovery.v_measure": ("NMI", "of MAP states and true slots; also called V-measure"),
    "recovery.homogeneity": ("homogeneity", "1 if each state means one slot"),
    "recovery.completeness": ("completeness", "1 if each slot has one state"),
    "recovery.many_to_one": ("many-to-one", "share of words, each state as its main slot"),
    "boundaries.f1": ("boundary F1", "starts of segments, against changes of true slots"),
    "boundaries.precision": ("  precision", "share of the starts of segments that are true"),
    "boundaries.recall": ("  recall", "share of the changes of slots that are found"),
    "control.slot_errors": ("slot errors", "per slot, {tables} tables, states free"),
    "control.slot_errors_under_templates": ("  under templates", "three for each table"),
    "control.adherence": ("adherence", "words in the state that the template asks for"),
    "control.different_orders": ("three orders", "tables told in three different orders"),
}


def add_arguments(parser: ArgumentParser) -> None:
    add, split = parser.add_argument, Literal[SPLITS]
    add_run(parser, draws=True)
    add("--split", type=split, default="test", help="Which sentences.")
    add("--samples", type=PositiveInt, default=100, help="Importance samples a sentence.")
    add("--limit", type=NonNegativeInt, default=0, help="Only so many sentences; 0 for all.")
    add("--show", type=NonNegativeInt, default=5, help="Sentences to show with their states.")
    add("--control", type=NonNegativeInt, default=0, help=CONTROL_HELP)
    add("--json", type=str | None, help="Also write the numbers to this file.")


def run(options: Any) -> None:
    from models.data.batches import in_order
    from models.data.tasks import encode_task
    from models.templates.of_runs import map_templates
    from models.vae.likelihood import evaluate

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
    starts = [segment_starts(states) for states in templates]
    boundaries = boundary_recovery(starts, slots) if known else None
    found = {
        "run": trained.config.as_dict(),
        "checkpoint": {"name": options.checkpoint, "step": trained.step},
        **{name: options[name] for name in ("split", "samples", "seed")},
        "sentences": len(sentences),
        "scores": asdict(scores),
        "recovery": recovery(templates, slots)._asdict() if known else None,
        "boundaries": boundaries and {**boundaries._asdict(), "f1": boundaries.f1},
        "control": asdict(_control(trained, options)) if options.control else None,
    }
    console = plain_console()
    console.print(_table(found, f"{options.run}: {trained.config.objective.estimator}"))
    if scores.collapse:
        console.print(f"posterior collapse, {scores.collapse}", style="bold red")
    for example, states in list(zip(examples, templates, strict=False))[: options.show]:
        console.print(coloured(example.words, states))
    if options.json:
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


def _table(found: dict[str, Any], title: str) -> Table:
    """Everything that was measured, with what it is."""
    table = Table("measure", "value", "what it is", title=f"{title}, {found['split']}")
    how = "exact" if found["scores"]["neg_elbo"] is None else "importance-sampled"
    for place, (name, meaning) in MEASURES.items():
        part, key = place.split(".")
        value = (found[part] or {}).get(key)
        if value is not None:
            shown = f"{value:.3f}" if isinstance(value, float) else str(value)
            table.add_row(name, shown, meaning.format(how=how, **found["control"] or {}))
    return table
