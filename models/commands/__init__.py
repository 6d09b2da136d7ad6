"""The command line: `python -m models train|evaluate|generate|...`.

Each command is a module with `USAGE`, `DETAILS`, `add_arguments(parser)` and `run(options)`; only
the one that is called is imported.
"""

from __future__ import annotations

import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module

from jsonargparse import ArgumentParser, DefaultHelpFormatter

from models.data.errors import DataError, DownloadError
from models.errors import RunError, SettingError, TrainingDivergedError

COMMANDS = {
    "train": "Train a template VAE, or the language model to compare it with.",
    "evaluate": "Evaluate a trained run with exact, discrete templates.",
    "data": "Prepare a corpus of real text, or look at the built-in one.",
    "generate": "Write sentences from tables or sentences, under templates if asked.",
    "templates": "Look up the templates of a run, and what its states stand for.",
    "report": "Write a page about a run: curves, templates, sentences.",
    "score": "Score generated texts with the official metrics.",
}
USER_ERRORS = (DataError, RunError, SettingError)  # what the user gave cannot be used: exit code 2
FAILURES = (DownloadError, TrainingDivergedError)  # it did not work out: exit code 1


class HelpFormatter(RawDescriptionHelpFormatter, DefaultHelpFormatter):
    """Leaves the lines of a description as they are."""


def main(arguments: Sequence[str] | None = None) -> None:
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    called = arguments[0] if arguments and arguments[0] in COMMANDS else None
    parser = ArgumentParser(
        prog="python -m models",
        formatter_class=HelpFormatter,
        description="Latent-template VAEs: train them, evaluate them, write with them.",
    )
    commands = parser.add_subcommands(dest="command", title="commands")
    for name, summary in COMMANDS.items():
        one = ArgumentParser()
        if name == called:
            command = import_module(f"models.commands.{name}")
            one.usage = f"python -m models {command.USAGE}"
            one.description = f"{summary}\n\n{command.DETAILS}"
            command.add_arguments(one)
        commands.add_subcommand(name, one, help=summary)
    try:
        options = parser.instantiate(parser.parse_args(arguments))
        command.run(options[options.command])
    except USER_ERRORS as error:
        _stop(error, 2)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError) as error:
        _stop(error, 2)
    except FAILURES as error:
        _stop(error, 1)


def _stop(error: Exception, code: int) -> None:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(code)
