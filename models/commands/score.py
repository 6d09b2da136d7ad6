"""`python -m models score`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from jsonargparse import ArgumentParser
from rich.table import Table as Grid

from models.commands.options import plain_console
from models.data.tables import parse_table
from models.errors import DataError
from models.files import at_line, write_json
from models.metrics.e2e import score_e2e
from models.metrics.libraries import JavaUnavailableError, MissingLibraryError
from models.metrics.paraphrase import score_paraphrase
from models.metrics.scores import SystemScores
from models.metrics.text_files import Items, check_counts, read_references, read_texts

USAGE = "score --protocol P --outputs FILE --references FILE [options]"
DETAILS = """\
  python -m models score --protocol e2e --outputs outputs.txt --references references.txt
  python -m models score --protocol paraphrase --outputs o.txt --references r.txt --inputs i.txt"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_function_arguments(score)


def run(options: Any) -> None:
    score(**options)


def score(
    protocol: Literal["e2e", "paraphrase"],
    outputs: Path,
    references: Path,
    inputs: Path | None = None,
    json: Path | None = None,
    java: bool | None = None,
) -> None:
    """Score a system's outputs against references.

    The files are text in UTF-8, or the same compressed (.gz).

    Args:
        protocol: e2e (BLEU, NIST, METEOR, ROUGE-L and CIDEr as in the E2E challenge; detokenised
            text) or paraphrase (BLEU-n, ROUGE-n, iBLEU and self-BLEU; tokenised text).
        outputs: One output on each line.
        references: One reference on each line, with a blank line between instances.
        inputs: What each output was made from, one on each line. Paraphrase: the sentence, which
            is needed. E2E: the table, as name[The Vaults], eatType[pub]; adds the slot error rate.
        json: Where to write the scores and the settings of each.
        java: Whether to use Java, which METEOR needs. The default is to use it if it is there;
            true fails where it is not, false never uses it.
    """
    if json is not None and not json.parent.is_dir():  # before the work, not after it
        raise DataError(json, "cannot be written: no such directory")
    if json is not None and json.is_dir():
        raise DataError(json, "cannot be written: a directory")
    if protocol == "paraphrase" and inputs is None:
        raise DataError("--inputs", "paraphrases are compared with their inputs: name their file")
    texts, instances = read_texts(outputs, "output"), read_references(references)
    items = Items(outputs, "outputs", range(1, len(texts) + 1))
    lines = [instance.line for instance in instances]
    check_counts(items, Items(references, "blocks of references", lines))
    given = read_texts(inputs, "input") if inputs is not None else []
    if inputs is not None:
        check_counts(items, Items(inputs, "inputs", range(1, len(given) + 1)))
    theirs = [instance.texts for instance in instances]
    try:
        if protocol == "paraphrase":
            scores = score_paraphrase(texts, theirs, given)
        else:
            scores = score_e2e(texts, theirs, _tables(inputs, given), java)
    except MissingLibraryError as error:
        raise DataError("score", str(error)) from error
    except JavaUnavailableError as error:
        raise DataError("--java", str(error)) from error
    _print(scores)
    if json is not None:
        files = {"outputs": outputs, "references": references, "inputs": inputs}
        names = {name: str(path) for name, path in files.items() if path is not None}
        write_json(json, scores.as_json() | {"files": names})


def _tables(path: Path | None, texts: list[str]) -> list[Any] | None:
    if path is None:
        return None
    tables = []
    for line, text in enumerate(texts, 1):
        with at_line(path, line):
            tables.append(parse_table(text))
    return tables


def _print(scores: SystemScores) -> None:
    """The value of each score, and the settings that tell most; all of them are in the JSON."""
    title = f"{scores.protocol}: {scores.instances:,} outputs, {scores.references:,} references"
    grid = Grid("metric", title=title, title_justify="left")
    grid.add_column("score", justify="right")
    grid.add_column("computed by, from tokens")
    for entry in scores.scores:
        told = [entry.settings[key] for key in ("library", "tokens") if key in entry.settings]
        value, about = "unavailable", entry.unavailable or ", ".join(told)
        if entry.value is not None:
            value = str(entry.value) if isinstance(entry.value, int) else f"{entry.value:.4f}"
        grid.add_row(entry.name, value, about)
    plain_console().print(grid)
