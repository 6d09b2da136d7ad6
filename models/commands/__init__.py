"""The command line: `python -m models train|evaluate|generate|...`.

Each command is a module with `USAGE`, `DETAILS`, `add_arguments(parser)` and `run(options)`. Only
the one that is called is imported, and what takes long to import only when it runs.
"""

from __future__ import annotations

import re
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Sequence
from importlib import import_module
from signal import SIGINT
from typing import Any, NoReturn

from jsonargparse import ArgumentParser, DefaultHelpFormatter

from models import errors
from models.errors import SettingError, meant

COMMANDS = {
    "train": "Train a template VAE, or the language model to compare it with.",
    "study": "Train and evaluate many runs, and compare them: estimators, seeds, settings.",
    "evaluate": "Evaluate a trained run with exact, discrete templates.",
    "data": "Prepare a corpus of real text, or look at the built-in one.",
    "generate": "Write sentences from tables or sentences, under templates if asked.",
    "templates": "Look up the templates of a run, and what its states stand for.",
    "report": "Write a page about a run: curves, templates, sentences.",
    "score": "Score generated texts with the official metrics.",
}
PROGRAM = "python -m models"
HELP = f"""\
usage: {PROGRAM} COMMAND ...

Latent-template VAEs: train them, evaluate them, write with them.

commands:
{chr(10).join(f"  {name:<10} {summary}" for name, summary in COMMANDS.items())}

`{PROGRAM} COMMAND --help` tells more of each."""
# What was given cannot be used: code 2. It did not work out: code 1.
USER_ERRORS = (errors.DataError, errors.RunError, SettingError, OSError)
FAILURES = (errors.DownloadError, errors.StudyFailedError, errors.TrainingDivergedError)


def main(arguments: Sequence[str] | None = None) -> None:
    name, *rest = (sys.argv[1:] if arguments is None else list(arguments)) or [""]
    if name in ("-h", "--help"):
        print(HELP)
        return
    if name not in COMMANDS:
        problem = f"there is no command {name!r}{meant(name, COMMANDS)}" if name else "no command"
        stop(f"{problem}\n\n{HELP}", 2)
    command = import_module(f"models.commands.{name}")
    parser = Parser(
        given=rest,
        prog=f"{PROGRAM} {name}",
        usage=f"{PROGRAM} {command.USAGE}",
        description=f"{COMMANDS[name]}\n\n{command.DETAILS}",
        formatter_class=HelpFormatter,
    )
    try:
        command.add_arguments(parser)
        command.run(parser.instantiate(parser.parse_args(rest)))
    except USER_ERRORS as error:
        stop(str(error), 2)
    except FAILURES as error:
        stop(str(error), 1)
    except errors.StoppedError as error:
        print(error, file=sys.stderr)
        sys.exit(error.exit_code)
    except KeyboardInterrupt:
        stop("interrupted", 128 + SIGINT)


class HelpFormatter(RawDescriptionHelpFormatter, DefaultHelpFormatter):
    """Leaves the lines of a description as they are."""


class Parser(ArgumentParser):
    """Says what is wrong in a user's words, and what was probably meant.

    `given` are the arguments that it will parse, for options whose defaults depend on others. With
    `exit_on_error=False`, what is wrong is a `SettingError` of one line.
    """

    def __init__(self, *args: Any, given: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*args, allow_abbrev=False, **options)
        self.given = given

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        message = re.sub(r'Parser key "([^"]+)"', r"--\1", message)
        required = re.fullmatch(r"the following arguments are required: (.+)", message)
        if required:
            message = f"{required[1].upper()} is missing"
        unknown = re.match(r"unrecognized arguments: (--[^\s=]+)", message)
        if unknown:
            known = [option for action in self._actions for option in action.option_strings]
            message = f"there is no option {unknown[1]}{meant(unknown[1], known)}"
        if not self.exit_on_error:
            raise SettingError(" ".join(message.split())) from ex
        self.print_usage(sys.stderr)
        stop(f"{message}\n`{self.prog} --help` lists the options", 2)


def stop(message: str, code: int) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)
