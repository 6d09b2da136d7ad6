"""Results in the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from colorsys import hls_to_rgb

from rich.color import Color
from rich.style import Style
from rich.table import Table
from rich.text import Text

from models.evaluation import Scores
from models.generation.control import Control
from models.recovery import Recovery
from models.templates import segments

Row = tuple[str, float | int | None, str]  # a measure, its value, what it is

GOLDEN_ANGLE = 137.508  # degrees: hues of neighbouring states are far apart


def coloured(words: Sequence[str], states: Sequence[int]) -> Text:
    """A sentence in the colours of its states; each run of a state ends with its number."""
    text = Text()
    for state, run in segments(words, states):
        style = Style(color=Color.from_rgb(*_colour(state)))
        text.append(" ".join(run), style + Style(bold=True))
        text.append(f"/{state} ", style + Style(dim=True))
    text.rstrip()
    return text


def score_table(
    title: str, scores: Scores, recovery: Recovery | None = None, control: Control | None = None
) -> Table:
    table = Table("measure", "value", "what it is", title=title)
    for name, value, meaning in [*_rows(scores, recovery), *_control_rows(control)]:
        table.add_row(name, f"{value:.3f}" if isinstance(value, float) else str(value), meaning)
    return table


def _rows(scores: Scores, recovery: Recovery | None) -> list[Row]:
    exact = scores.neg_elbo is None
    rows: list[Row] = [
        ("NLL", scores.nll, f"nats per sentence, {'exact' if exact else 'importance-sampled'}"),
        ("PPL", scores.ppl, "exp(total NLL / total words), end marks counted"),
    ]
    if scores.neg_elbo is not None:
        rows += [
            ("neg. ELBO", scores.neg_elbo, "nats per sentence, exact hard templates"),
            ("entropy", scores.entropy, "of the posterior, nats per sentence"),
            ("states in use", scores.states_in_use, "with a thousandth of the words or more"),
        ]
    if recovery is not None:
        rows += [
            ("NMI", recovery.nmi, "of MAP states and true slots; also called V-measure"),
            ("homogeneity", recovery.homogeneity, "1 if each state means one slot"),
            ("completeness", recovery.completeness, "1 if each slot has one state"),
            ("many-to-one", recovery.many_to_one, "share of words, each state as its main slot"),
        ]
    return rows


def _control_rows(control: Control | None) -> list[Row]:
    if control is None:
        return []
    return [
        ("slot errors", control.slot_errors, f"per slot, {control.tables} tables, states free"),
        ("  under templates", control.slot_errors_under_templates, "three for each table"),
        ("adherence", control.adherence, "words in the state that the template asks for"),
        ("three orders", control.different_orders, "tables told in three different orders"),
    ]


def _colour(state: int) -> tuple[int, int, int]:
    """A bright hue, the same for the same state."""
    red, green, blue = hls_to_rgb(state * GOLDEN_ANGLE / 360 % 1, 0.6, 0.75)
    return round(255 * red), round(255 * green), round(255 * blue)
