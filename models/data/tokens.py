"""From text to words."""

from __future__ import annotations

import re
import unicodedata

WORD = r"(?:[£$€](?=\d))?\w+"
TOKEN = re.compile(
    rf"""
    's\b                   # of "it's" and "Cambridge's", so that a name stays a name
    | {WORD}               # a word or an amount, which goes on with
      (?: -{WORD}          #   a hyphen inside: family-friendly, £20-25, £20-£25
        | '(?!s\b)\w+      #   an apostrophe inside: isn't, you'll
        | (?<=\d)[.,:]\d+  #   more of a number: 20.00, 1,000, 12:30
      )*
    | [^\w\s]              # any other sign stands alone
    """,
    re.VERBOSE,
)


def tokenise(text: str) -> list[str]:
    """Lower-cased words, with punctuation apart.

    Hyphens, apostrophes and currency signs stay inside a word, except that a final 's is a word
    of its own. An accent counts the same however it is encoded, and so does an apostrophe.
    """
    return TOKEN.findall(normalised(text).lower())


def normalised(text: str) -> str:
    """With one way to write accents and apostrophes."""
    return unicodedata.normalize("NFC", text).replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
