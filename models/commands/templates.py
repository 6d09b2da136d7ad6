"""`python -m models templates`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from jsonargparse.typing import NonNegativeInt
from rich.table import Table
from rich.text import Text

from models.commands.options import add_run, coloured, load, plain_console, watched
from models.errors import SettingError
from models.files import write_json

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
    add_run(parser)
    add("--keys", type=str | None, help="Only of tables with just these keys, separated by commas.")
    add("--length", type=str | None, help="Only of so many words: 9, or 8-12.")
    add("--pattern", type=str | None, help="Only with states like these, see above.")
    add("--limit", type=NonNegativeInt, default=10, help="How many to show; 0 for all.")
    add("--json", type=str | None, help="Write the analysis of states and n-grams to this file.")


def run(options: Any) -> None:
    from models.templates.of_runs import analyse_run, run_templates

    length = _length(options.length)
    asked = options["keys"]  # `options.keys` is a method
    keys = None if asked is None else [key.strip() for key in asked.split(",")]
    trained = load(options)
    corpus = trained.corpus()
    bank = run_templates(trained, corpus, watched)
    if keys is not None and not {*keys} <= {*bank.key_names}:
        known = ", ".join(bank.key_names) or "none"
        raise SettingError(f"unknown keys among {asked}; the tables have: {known}")
    found = bank.search(keys, length, options.pattern, options.limit or None)
    analysis = analyse_run(bank, corpus)
    longer = [ngram for ngram in analysis.ngrams if len(ngram.states) > 1]
    frequent = sorted(longer, key=lambda ngram: -ngram.count)[:SHOWN_NGRAMS]
    console = plain_console()
    console.print(f"{len(bank):,} templates of {len(bank.sentences):,} sentences", style="bold")
    for template in found:
        times = f" ({template.count} times)" if template.count > 1 else ""
        shown = coloured(corpus.splits["train"][template.example].words, template.states)
        console.print(Text.assemble(f"@{template.number}{times} ", shown))
    if not found:
        hint = " ".join(map(str, frequent[0].states)) if frequent else ""
        hint = f"; a pattern that many match: --pattern '* {hint} *'" if hint else ""
        console.print("none is like that" + hint)
    table = Table("states", "count", "what they stand for", title="Frequent states in a row")
    for ngram in frequent:
        segments = "; ".join(f"{text} ({count})" for text, count in ngram.segments)
        table.add_row(" ".join(map(str, ngram.states)), f"{ngram.count:,}", segments)
    console.print(table)
    if options.json:
        write_json(Path(options.json), analysis.as_json(), indent=1)
        console.print(f"analysis: {options.json}")


def _length(text: str | None) -> tuple[int, int] | None:
    if text is None:
        return None
    match = LENGTH.fullmatch(text.strip())
    if match is None:
        raise SettingError(f"{text!r} is no length: write 9, or 8-12")
    return int(match[1]), int(match[2] or match[1])
