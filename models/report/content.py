"""What a report can show; every part but the title may be missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from models.templates.analysis import StateNGram, StateWords
from models.templates.segments import segments

Cell = str | float | int | None  # None: not measured
Points = Sequence[tuple[int, float]]  # step and value
Coloured = list[tuple[int, str]]  # a sentence: state and words of each of its segments


def coloured(words: Sequence[str], states: Sequence[int]) -> Coloured:
    """The words of each phrase, or of each run of equal states."""
    if len(words) != len(states):
        raise ValueError(f"{len(words)} words with {len(states)} states")
    return [(state, " ".join(words[start:end])) for state, start, end in segments(states)]


@dataclass(frozen=True)
class Curve:
    """One metric of one run."""

    run: str
    points: Points


@dataclass(frozen=True)
class Chart:
    """One metric, of one or several runs."""

    title: str
    meaning: str
    curves: tuple[Curve, ...]


@dataclass(frozen=True)
class Grid:
    """A table of numbers; the first column names the rows."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers alone."""
        columns = zip(self.columns, *self.rows, strict=True)
        return [not any(isinstance(cell, str) for cell in column[1:]) for column in columns]


@dataclass(frozen=True)
class Output:
    """A sentence made under a template."""

    template: tuple[int, ...]
    text: str
    runs: Coloured
    note: str


@dataclass(frozen=True)
class TableChoice:
    """A source table, and what was made of it under each template."""

    label: str
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Report:
    title: str
    facts: tuple[tuple[str, str], ...] = ()
    charts: tuple[Chart, ...] = ()
    comparison: Grid | None = None
    sentences: tuple[Coloured, ...] = ()
    browser: tuple[TableChoice, ...] = ()
    ngrams: tuple[StateNGram, ...] = ()
    states: tuple[StateWords, ...] = ()

    @property
    def outputs(self) -> list[Output]:
        """All sentences that can be browsed."""
        return [output for table in self.browser for output in table.outputs]

    @property
    def templates(self) -> list[tuple[int, ...]]:
        """Theirs, each once."""
        return list(dict.fromkeys(output.template for output in self.outputs))

    @property
    def colours(self) -> set[int]:
        """Every state that has a colour somewhere on the page."""
        sentences = [*self.sentences, *(output.runs for output in self.outputs)]
        templates = [*self.templates, *(ngram.states for ngram in self.ngrams)]
        found = {state for runs in sentences for state, _ in runs}
        found |= {state for states in templates for state in states}
        return found | {row.state for row in self.states}
