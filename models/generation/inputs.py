"""What a user asks for, one request a line.

Every line gives one table or sentence, or the `DataError` that says what is wrong with it, so that
answers stay in step with the lines.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NoReturn, TypeVar

from models.data.tables import Table, parse_table
from models.errors import DataError

BYTE_ORDER_MARK = "\ufeff"
JSON_EXAMPLE = 'a table looks like {"name": "The Vaults", "eatType": "pub"}'

Parsed = TypeVar("Parsed", Table, str)


def read_tables(lines: Iterable[str], name: str) -> Iterator[Table | DataError]:
    """Each line is `name[The Vaults], eatType[pub]` or `{"name": "The Vaults", "eatType": "pub"}`.

    In JSON, numbers count as they are written, true as "yes" and false as "no". `name` is that of
    the file, for messages.
    """
    return _read(lines, name, _table)


def read_sentences(lines: Iterable[str], name: str) -> Iterator[str | DataError]:
    """Each line is a sentence, or a JSON string that holds one."""
    return _read(lines, name, _sentence)


def _read(
    lines: Iterable[str], name: str, parse: Callable[[str], Parsed]
) -> Iterator[Parsed | DataError]:
    for number, line in enumerate(lines, 1):
        content = line.removeprefix(BYTE_ORDER_MARK) if number == 1 else line
        parsed: Parsed | DataError
        try:
            parsed = parse(_checked(content.strip(), "an empty line"))
        except ValueError as error:
            parsed = DataError(name, str(error), number)
        yield parsed


def _table(line: str) -> Table:
    if not line.startswith("{"):
        return parse_table(line)
    try:
        return _json_table(line)
    except ValueError as error:
        raise ValueError(f"{error}; {JSON_EXAMPLE}") from error


def _sentence(line: str) -> str:
    """A line that merely begins with a quotation is no JSON, but a sentence."""
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
        table[key] = _value(key, value)
    if not table:
        raise ValueError("an empty object")
    return tuple(table.items())


def _value(key: str, value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, str):
        raise ValueError(f"the value of {key!r} is neither text, number, true nor false")
    text = _checked(value.strip(), f"no value for {key!r}")
    if len(text.splitlines()) > 1:
        raise ValueError(f"a line break in the value of {key!r}")
    return text


def _checked(text: str, if_empty: str) -> str:
    """The text, if it has characters, and only such as a UTF-8 file can hold."""
    if not text:
        raise ValueError(if_empty)
    if any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("not UTF-8 text")
    return text


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"not JSON: {constant}")
