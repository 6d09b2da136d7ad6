"""What a user asks for, one request a line.

Every line gives what it parses to, or the `DataError` that says what is wrong with it, so that
answers stay in step with the lines.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn, TypeVar

from models.data.tables import Table, parse_table
from models.errors import DataError
from models.files import HALF_A_CHARACTER, LONGEST_LINE

BYTE_ORDER_MARK = "\ufeff"
CONTROL = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f]")  # a terminal would obey it
JSON_EXAMPLE = 'a table looks like {"name": "The Vaults", "eatType": "pub"}'

Parsed = TypeVar("Parsed")


def read_lines(
    lines: Iterable[str], name: str, parse: Callable[[str], Parsed]
) -> Iterator[Parsed | DataError]:
    """What `parse` makes of each line; where it raises a `ValueError`, that, with file and line."""
    for number, line in enumerate(lines, 1):
        content = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        try:
            yield parse(_checked(content.strip(), "an empty line"))
        except ValueError as error:
            yield DataError(name, str(error), number)


def table_of(line: str) -> Table:
    """A table as `name[The Vaults], eatType[pub]` or `{"name": "The Vaults", "eatType": "pub"}`.

    In JSON, numbers count as they are written, true as "yes" and false as "no".
    """
    if not line.startswith("{"):
        return parse_table(line)
    try:
        return _json_table(line)
    except ValueError as error:
        raise ValueError(f"{error}; {JSON_EXAMPLE}") from error


def sentence_of(line: str) -> str:
    """A sentence, or a JSON string that holds one; what merely begins with a quotation is none."""
    try:
        content = json.loads(line)
    except (ValueError, RecursionError):
        content = line
    text = content if isinstance(content, str) else line
    return _checked(" ".join(text.split()), "an empty sentence")


def _json_table(line: str) -> Table:
    """A number in JSON is its text, and an object within the object is a tuple too."""
    try:
        pairs = json.loads(
            line, object_pairs_hook=tuple, parse_int=str, parse_float=str, parse_constant=_refuse
        )
    except json.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error.msg} at character {error.pos + 1}") from error
    except RecursionError as error:
        raise ValueError("values within values") from error
    table: dict[str, str] = {}
    for key, value in pairs:
        key = _checked(key.strip(), "an empty key")
        if key in table:
            raise ValueError(f"{key!r} is there twice")
        if isinstance(value, bool):
            value = "yes" if value else "no"
        if not isinstance(value, str):
            raise ValueError(f"the value of {key!r} is neither text, number, true nor false")
        table[key] = _checked(value.strip(), f"no value for {key!r}")
        if len(table[key].splitlines()) > 1:
            raise ValueError(f"a line break in the value of {key!r}")
    if not table:
        raise ValueError("an empty object")
    return tuple(table.items())


def _checked(text: str, if_empty: str) -> str:
    """The text, if it has characters, not too many, and only such as files and terminals show."""
    if not text:
        raise ValueError(if_empty)
    if len(text) > LONGEST_LINE:
        raise ValueError(f"more than {LONGEST_LINE:,} characters")
    if HALF_A_CHARACTER.search(text):
        raise ValueError("not UTF-8 text")
    if command := CONTROL.search(text):
        raise ValueError(f"a control character, {command[0]!r}")
    return text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"not JSON: {constant}")
