"""`python -m models score`: the scores of a system's outputs, as a table and as JSON."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.markup import escape
from rich.table import Table as Grid

from models.data.errors import DataError
from models.data.tables import Table, parse_table
from models.metrics.e2e import score_e2e
from models.metrics.extra import MissingLibraryError
from models.metrics.java import JavaUnavailableError
from models.metrics.paraphrase import score_paraphrase
from models.metrics.report import Report, Score
from models.metrics.text_files import Items, check_counts, read_references, read_texts


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
    _check_writable(json)
    try:
        report = _report(protocol, outputs, references, inputs, java)
    except MissingLibraryError as error:
        raise DataError("score", str(error)) from error
    except JavaUnavailableError as error:
        raise DataError("--java", str(error)) from error
    _print(report)
    if json is not None:
        files = {"outputs": outputs, "references": references, "inputs": inputs}
        names = {name: str(path) for name, path in files.items() if path is not None}
        _write(json, report.as_json() | {"files": names})


def _report(
    protocol: Literal["e2e", "paraphrase"],
    outputs_path: Path,
    references_path: Path,
    inputs_path: Path | None,
    java: bool | None,
) -> Report:
    if protocol == "paraphrase" and inputs_path is None:
        raise DataError("--inputs", "paraphrases are compared with their inputs: name their file")
    outputs = read_texts(outputs_path, "output")
    instances = read_references(references_path)
    items = Items(outputs_path, "outputs", range(1, len(outputs) + 1))
    lines = [instance.line for instance in instances]
    check_counts(items, Items(references_path, "blocks of references", lines))
    references = [instance.texts for instance in instances]
    inputs = [] if inputs_path is None else _read_inputs(inputs_path, items)
    if protocol == "paraphrase":
        return score_paraphrase(outputs, references, inputs)
    tables = None if inputs_path is None else _parse_tables(inputs_path, inputs)
    return score_e2e(outputs, references, tables, java)


def _read_inputs(path: Path, outputs: Items) -> list[str]:
    inputs = read_texts(path, "input")
    check_counts(outputs, Items(path, "inputs", range(1, len(inputs) + 1)))
    return inputs


def _parse_tables(path: Path, texts: list[str]) -> list[Table]:
    tables = []
    for line, text in enumerate(texts, 1):
        try:
            tables.append(parse_table(text))
        except ValueError as error:
            raise DataError(path, str(error), line) from error
    return tables


def _check_writable(path: Path | None) -> None:
    """Before the work, not after it."""
    if path is not None and not path.parent.is_dir():
        raise DataError(path, "cannot be written: no such directory")
    if path is not None and path.is_dir():
        raise DataError(path, "cannot be written: a directory")


def _write(path: Path, content: dict[str, Any]) -> None:
    try:
        path.write_text(dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    except OSError as error:
        raise DataError(path, f"cannot be written: {error.strerror}") from error


def _print(report: Report) -> None:
    title = f"{report.protocol}: {report.instances:,} outputs, {report.references:,} references"
    grid = Grid("metric", title=title, title_justify="left")
    grid.add_column("score", justify="right")
    grid.add_column("computed by, from tokens")
    for entry in report.scores:
        grid.add_row(entry.name, *map(escape, _shown(entry)))
    Console().print(grid)


def _shown(entry: Score) -> tuple[str, str]:
    """The value, and the settings that tell most; all of them are in the JSON."""
    if entry.value is None:
        return "unavailable", entry.unavailable or ""
    value = str(entry.value) if isinstance(entry.value, int) else f"{entry.value:.4f}"
    settings = [entry.settings[key] for key in ("library", "tokens") if key in entry.settings]
    return value, ", ".join(settings)
