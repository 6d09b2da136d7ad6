"""A parser of options that says what is wrong in a user's words, and what was probably meant."""

from __future__ import annotations

import re
import sys
from argparse import RawDescriptionHelpFormatter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any, NoReturn

from jsonargparse import ArgumentParser, DefaultHelpFormatter


class HelpFormatter(RawDescriptionHelpFormatter, DefaultHelpFormatter):
    """Leaves the lines of a description as they are."""


class Parser(ArgumentParser):
    """`given` are the arguments that it will parse, for options whose defaults depend on others."""

    def __init__(self, *args: Any, given: Sequence[str] = (), **options: Any) -> None:
        super().__init__(*args, **options)
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
        self.print_usage(sys.stderr)
        stop(f"{message}\n`{self.prog} --help` lists the options", 2)


def meant(given: str, known: Iterable[str]) -> str:
    """A question after the most similar of what is known, if one is."""
    close = get_close_matches(given, list(known), 1)
    return f"; did you mean {close[0]}?" if close else ""


def stop(message: str, code: int) -> NoReturn:
    print(f"error: {message}", file=sys.stderr)
    sys.exit(code)
