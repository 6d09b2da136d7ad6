"""`python -m models templates`."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

from jsonargparse import ArgumentParser
from jsonargparse.typing import NonNegativeInt
from rich.console import Console
from rich.table import Table
from rich.text import Text

from models.data.corpus import Example
from models.display import coloured
from models.errors import SettingError
from models.run_templates import analyse_run, run_templates
from models.runs import load_run
from models.template_analysis import TemplateAnalysis
from models.template_bank import StoredTemplate
from models.training.checkpoints import BEST
from models.training.files import replacing

USAGE = "templates RUN [options]"
DETAILS = """\
The templates are the most likely states of all training sentences. This finds them by the keys of
their table, by length or by a pattern of states, and shows an example of each, and what states
stand for.
  python -m models templates RUN --keys name,food,area --pattern '* 4 7 *' --length 8-12
A pattern is over states with runs of equal ones as one: 3 is a state, 3|5 either, !3 any other,
? any one, * any or none. The number after @ is for `python -m models generate --template`."""

SHOWN_NGRAMS = 12
LENGTH = re.compile(r"(\d+)(?:-(\d+))?")


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("run", type=str, help="Folder of the run.")
    add("--keys", type=str | None, help="Of tables with just these keys, separated by commas.")
    add("--length", type=str | None, help="In words: 9, or 8-12.")
    add("--pattern", type=str | None, help="Of states, see above.")
    add("--limit", type=NonNegativeInt, default=10, help="How many to show; 0 for all.")
    add("--json", type=str | None, help="Write the analysis of states and n-grams to this file.")
    add("--checkpoint", type=Literal["best", "last"], default=BEST, help="By the dev set, or last.")


def run(options: Any) -> None:
    length = _length(options.length)
    asked = options["keys"]  # `options.keys` is a method
    keys = None if asked is None else [key.strip() for key in asked.split(",")]
    trained = load_run(Path(options.run), options.checkpoint)
    corpus = trained.corpus()
    bank = run_templates(trained, corpus)
    if keys is not None and not {*keys} <= {*bank.key_names.tolist()}:
        known = ", ".join(bank.key_names.tolist()) or "none"
        raise SettingError(f"unknown keys among {asked}; the tables have: {known}")
    found = bank.search(keys, length, options.pattern, options.limit or None)
    console = Console()
    console.print(f"{len(bank):,} templates of {len(bank.sentences):,} sentences", style="bold")
    for template in found:
        console.print(_shown(template, corpus.splits["train"][template.example]))
    if not found:
        console.print("none is like that")
    analysis = analyse_run(bank, corpus)
    console.print(_ngram_table(analysis))
    if options.json:
        path = Path(options.json)
        with replacing(path) as unfinished:
            text = json.dumps(analysis.as_json(), indent=1, ensure_ascii=False)
            unfinished.write_text(text + "\n", encoding="utf-8")
        console.print(f"analysis: {path}")


def _length(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = LENGTH.fullmatch(text.strip())
    if match is None:
        raise SettingError(f"{text!r} is no length: write 9, or 8-12")
    return int(match[1]), int(match[2] or match[1])


def _shown(template: StoredTemplate, example: Example) -> Text:
    times = f" ({template.count} times)" if template.count > 1 else ""
    return Text.assemble(f"@{template.number}{times} ", coloured(example.words, template.states))


def _ngram_table(analysis: TemplateAnalysis) -> Table:
    table = Table("states", "count", "what they stand for", title="Frequent states in a row")
    longer = [ngram for ngram in analysis.ngrams if len(ngram.states) > 1]
    for ngram in sorted(longer, key=lambda ngram: -ngram.count)[:SHOWN_NGRAMS]:
        segments = "; ".join(f"{text} ({count})" for text, count in ngram.segments)
        table.add_row(" ".join(map(str, ngram.states)), f"{ngram.count:,}", segments)
    return table
