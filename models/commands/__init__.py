"""The command line: `python -m models train|evaluate|data|score`.

Each command is a module with `DESCRIPTION`, `add_arguments(parser)` and `run(options)`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from jsonargparse import ArgumentParser

from models.commands import data, evaluate, score, train
from models.data.download import DownloadError
from models.data.errors import DataError
from models.errors import SettingError
from models.training.fit import RunError
from models.training.module import TrainingDivergedError

COMMANDS = {"train": train, "evaluate": evaluate, "data": data, "score": score}
USER_ERRORS = (DataError, RunError, SettingError)  # what the user gave cannot be used: exit code 2
FAILURES = (DownloadError, TrainingDivergedError)  # it did not work out: exit code 1


def main(arguments: Sequence[str] | None = None) -> None:
    parser = ArgumentParser(
        prog="python -m models",
        description="Latent-template VAEs: train them, evaluate them, prepare data, score texts.",
    )
    commands = parser.add_subcommands(dest="command", title="commands")
    for name, command in COMMANDS.items():
        one = ArgumentParser(description=command.DESCRIPTION)
        command.add_arguments(one)
        commands.add_subcommand(name, one, help=command.DESCRIPTION.splitlines()[0])
    try:
        options = parser.instantiate_classes(parser.parse_args(arguments))
        COMMANDS[options.command].run(options[options.command])
    except USER_ERRORS as error:
        _stop(error, 2)
    except FAILURES as error:
        _stop(error, 1)


def _stop(error: Exception, code: int) -> None:
    print(f"error: {error}", file=sys.stderr)
    sys.exit(code)
