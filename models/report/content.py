"""What a report can show; every part but the title may be missing."""

from __future__ import annotations

from dataclasses import dataclass

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


@dataclass(frozen=True)
class Coloured:
    """A sentence with a state for each word."""

    words: tuple[str, ...]
    states: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.words) != len(self.states):
            raise ValueError(f"{len(self.words)} words with {len(self.states)} states")


@dataclass(frozen=True)
class Output:
    """A sentence made under a template."""

    template: int  # index into `Browser.templates`
    text: str
    sentence: Coloured
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
class NGram:
    """States in a row, how often they are, and the words they stand for."""

    states: tuple[int, ...]
    count: int
    segments: tuple[tuple[str, int], ...]  # words and how often


@dataclass(frozen=True)
class StateWords:
    """A state, its share of all words, and the words tied to it, with how closely."""

    state: int
    share: float
    words: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Report:
    title: str
    facts: tuple[tuple[str, str], ...] = ()
    scores: Grid | None = None
    charts: tuple[Chart, ...] = ()
    comparison: Grid | None = None
    sentences: tuple[Coloured, ...] = ()
    browser: Browser | None = None
    ngrams: tuple[NGram, ...] = ()
    states: tuple[StateWords, ...] = ()
