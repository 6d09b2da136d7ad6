"""Options that several commands share and what they do, results and progress in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jsonargparse import ArgumentParser
from jsonargparse.typing import NonNegativeInt
from rich.color import Color
from rich.console import Console
from rich.progress import track
from rich.style import Style
from rich.text import Text

from models.report import content
from models.report.colours import rgb

if TYPE_CHECKING:
    from models.runs import TrainedRun


def add_run(parser: ArgumentParser, draws: bool = False) -> None:
    """The folder of a run, which of its checkpoints and, if it draws, from which seed."""
    which: Any = Literal["best", "last"]
    parser.add_argument("run", type=str, help="Folder of the run.")
    parser.add_argument(
        "--checkpoint", type=which, default="best", help="The best by the dev set, or the last."
    )
    if draws:
        threads = "CPU threads; 0: torch's choice."
        parser.add_argument("--seed", type=int, default=0, help="Seed of what is drawn.")
        parser.add_argument("--threads", type=NonNegativeInt, default=0, help=threads)


def load(options: Any) -> TrainedRun:
    """The run of these options; draws begin."""
    import torch

    from models.runs import load_run

    if options.get("threads"):
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.get("seed", 0))
    return load_run(Path(options.run), options.checkpoint)


def plain_console() -> Console:
    """Prints what it is given: no square bracket is markup, and no :word: becomes a picture."""
    return Console(markup=False, emoji=False)


def watched(values: Sequence[Any], what: str) -> Iterable[Any]:
    """The values, with a bar in a terminal, or with a line where it would be lost."""
    console = Console(stderr=True)
    if not console.is_terminal:
        print(f"{what}: {len(values):,}", file=sys.stderr, flush=True)
        return values
    return track(values, what, console=console, transient=True)


def coloured(words: Sequence[str], states: Sequence[int]) -> Text:
    """A sentence in the colours of its states; each segment ends with its state's number."""
    text = Text()
    for state, segment in content.coloured(words, states):
        style = Style(color=Color.from_rgb(*rgb(state, 0.6, 0.75)))
        text.append(segment, style + Style(bold=True))
        text.append(f"/{state} ", style + Style(dim=True))
    text.rstrip()
    return text
