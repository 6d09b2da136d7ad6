"""Options that several commands share, and what they do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jsonargparse import ArgumentParser
from jsonargparse.typing import NonNegativeInt

if TYPE_CHECKING:
    from models.runs import TrainedRun


def add_run(parser: ArgumentParser) -> None:
    """The folder of a run, and which of its checkpoints."""
    which: Any = Literal["best", "last"]
    parser.add_argument("run", type=str, help="Folder of the run.")
    parser.add_argument(
        "--checkpoint", type=which, default="best", help="The best by the dev set, or the last."
    )


def add_draws(parser: ArgumentParser) -> None:
    """The seed of what is drawn, and how many threads there are."""
    threads = "CPU threads; 0: torch's choice."
    parser.add_argument("--seed", type=int, default=0, help="Seed of what is drawn.")
    parser.add_argument("--threads", type=NonNegativeInt, default=0, help=threads)


def start_draws(options: Any) -> None:
    import torch

    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)


def load(options: Any) -> TrainedRun:
    from models.runs import load_run

    return load_run(Path(options.run), options.checkpoint)
