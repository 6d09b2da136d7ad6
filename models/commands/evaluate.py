"""`python -m models evaluate`."""

from __future__ import annotations

DESCRIPTION = """Evaluate."""


def add_arguments(parser):
    pass


def run(options):
    pass
