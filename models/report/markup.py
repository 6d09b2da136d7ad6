"""HTML that is escaped by construction."""

from __future__ import annotations

import json
from collections.abc import Iterable
from html import escape
from typing import Any


class Html(str):
    """Text that is markup already; any other `str` is escaped where it meets one."""

    __slots__ = ()


def element(tag: str, /, *children: str, **attributes: str | int | bool | None) -> Html:
    """`<tag attributes>children</tag>`.

    In the names of attributes a trailing underscore is dropped and others become hyphens:
    `class_`, `aria_live`. `True` is an attribute without value, `False` or `None` no attribute.
    """
    start = f"<{tag}{''.join(_attribute(key, value) for key, value in attributes.items())}>"
    end = "" if tag == "input" else f"</{tag}>"  # the one element here that has none
    return Html(f"{start}{joined(children)}{end}")


def joined(parts: Iterable[str], separator: str = "") -> Html:
    """One piece of markup; what is not yet markup is escaped."""
    return Html(separator.join(_escaped(part) for part in parts))


def as_json(data: Any) -> Html:
    """JSON for a script element: no character in it can end the element or open another."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Html(text)


def _escaped(part: str) -> str:
    return part if isinstance(part, Html) else escape(part)


def _attribute(key: str, value: str | int | bool | None) -> str:
    name = key.rstrip("_").replace("_", "-")
    if value is None or value is False:
        return ""
    return f" {name}" if value is True else f' {name}="{escape(str(value))}"'
