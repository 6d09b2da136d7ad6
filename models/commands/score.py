"""`python -m models score`."""

from __future__ import annotations

from typing import Any

from jsonargparse import ArgumentParser

from models.metrics.command import score

USAGE = "score --protocol P --outputs FILE --references FILE [options]"
DETAILS = """\
  python -m models score --protocol e2e --outputs outputs.txt --references references.txt
  python -m models score --protocol paraphrase --outputs o.txt --references r.txt --inputs i.txt"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_function_arguments(score)


def run(options: Any) -> None:
    score(**options)
