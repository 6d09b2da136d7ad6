"""What a report can show; every part but the title may be missing."""

from __future__ import annotations

from dataclasses import dataclass

from models.templates.analysis import StateNGram, StateWords
from models.templates.segments import segments

Cell = str | float | int | None  # None: not measured


@dataclass(frozen=True)
class Curve:
    """One metric of one run."""

    run: str
    points: tuple[tuple[int, float], ...]  # step and value


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

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"row {row} has not the {len(self.columns)} cells of the header")

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers alone."""
        columns = zip(*self.rows, strict=True)
        return [not any(isinstance(cell, str) for cell in column) for column in columns]


@dataclass(frozen=True)
class Coloured:
    """A sentence with a state for each word."""

    words: tuple[str, ...]
    states: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.words) != len(self.states):
            raise ValueError(f"{len(self.words)} words with {len(self.states)} states")

    @property
    def runs(self) -> list[tuple[int, str]]:
        """State and words of each segment: a phrase, or a run of equal states."""
        return [(s.state, " ".join(self.words[s.start : s.end])) for s in segments(self.states)]


@dataclass(frozen=True)
class Output:
    """A sentence made under a template."""

    template: int  # index into `Browser.templates`
    text: str
    runs: list[tuple[int, str]]  # as of `Coloured`
    note: str


@dataclass(frozen=True)
class TableChoice:
    """A source table, and what was made of it under each template."""

    label: str
    outputs: tuple[Output, ...]


@dataclass(frozen=True)
class Browser:
    """Sentences by table and template."""

    templates: tuple[tuple[int, ...], ...]
    tables: tuple[TableChoice, ...]

    def __post_init__(self) -> None:
        for output in (output for table in self.tables for output in table.outputs):
            if output.template not in range(len(self.templates)):
                raise ValueError(f"no template {output.template} among {len(self.templates)}")


@dataclass(frozen=True)
class Report:
    title: str
    facts: tuple[tuple[str, str], ...] = ()
    charts: tuple[Chart, ...] = ()
    comparison: Grid | None = None
    sentences: tuple[Coloured, ...] = ()
    browser: Browser | None = None
    ngrams: tuple[StateNGram, ...] = ()
    states: tuple[StateWords, ...] = ()

    @property
    def colours(self) -> set[int]:
        """Every state that has a colour somewhere on the page."""
        templates = [sentence.states for sentence in self.sentences]
        templates += [ngram.states for ngram in self.ngrams]
        found = {state for states in templates for state in states}
        found |= {row.state for row in self.states}
        if self.browser is not None:
            found |= {state for template in self.browser.templates for state in template}
            outputs = [output for table in self.browser.tables for output in table.outputs]
            found |= {state for output in outputs for state, _ in output.runs}
        return found
