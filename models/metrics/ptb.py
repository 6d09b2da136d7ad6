"""Penn Treebank tokens, lower-cased, without punctuation: what ROUGE-L, CIDEr and METEOR read.

Two tokenisers: Stanford's, which the official scripts use and which needs Java, and one in Python
that agrees with it on all 4,693 references of the E2E test set, and on more than 99.8 % of other
E2E and MS COCO sentences. They differ on abbreviations ("St."), web addresses and rare signs.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from models.metrics.libraries import JavaUnavailableError, bundled_jar, metrics_extra, run_java

# As the official scripts spell them. They meet lower-cased tokens, so "-lrb-" stays.
_QUOTES, _BRACKETS = ("''", "'", "``", "`"), ("-LRB-", "-RRB-", "-LCB-", "-RCB-")
PUNCTUATION = {*_QUOTES, *_BRACKETS, ".", "?", "!", ",", ":", "-", "--", "...", ";"}
STANFORD_JAR = "tokenizer/stanford-corenlp-3.4.1.jar"
STANFORD_CLASS = "edu.stanford.nlp.process.PTBTokenizer"

_CURRENCY = {"£": "#", "€": "$"}
_CURLY = {"\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u2026": "..."}
_TO_ASCII = str.maketrans(_CURRENCY | _CURLY)
_DOTS = re.compile(r"\.{2,}")
_STOP = re.compile(  # a full stop or comma that ends a word or is glued to the next
    r"""
    (?<![\s.]) (?<![\s.][^\W\d])  # not after a blank, a stop or a lone letter: "u.k.", "e.g."
    ([.,]) (?=[^\W\d] | \s | $)   # "centre. Near", "centre.Near"; but "centre.," keeps its stop
    | (?<!\S) ([.,]) (?=[^\W\d])  # ", .Near"
    """,
    re.VERBOSE,
)
_DASH = re.compile(r"(?<=[^\s-])-(?=\s|$|#)|(?<!\S)-(?=[^\W\d])")  # "non- family", "£20-£25"


def python_ptb_tokens(texts: Sequence[str]) -> list[str]:
    """Each text as tokens with spaces between them, as the Stanford tokeniser would give."""
    with metrics_extra():
        from nltk.tokenize.destructive import NLTKWordTokenizer
    split = NLTKWordTokenizer().tokenize

    @cache  # a corpus has far fewer words than places for them
    def tokens(word: str) -> str:
        *own, _ = split(f"{word} x", convert_parentheses=True)  # at the end it would lose its stop
        return _without_punctuation([token.lower() for token in own])

    return [" ".join(filter(None, map(tokens, _prepared(text).split()))) for text in texts]


def stanford_ptb_tokens(texts: Sequence[str]) -> list[str]:
    """Each text as tokens with spaces between them; raises `JavaUnavailableError`."""
    lines = [" ".join(text.split()) for text in texts]
    command = ["-cp", str(bundled_jar(STANFORD_JAR)), STANFORD_CLASS]
    printed = run_java([*command, "-preserveLines", "-lowerCase"], "\n".join(lines) + "\n")
    tokens = printed.split("\n")[:-1]
    if len(tokens) != len(lines):
        raise JavaUnavailableError(
            f"the Stanford tokeniser returned {len(tokens)} lines for {len(lines)}"
        )
    return [_without_punctuation(line.split(" ")) for line in tokens]


def _prepared(text: str) -> str:
    """Lower-cased, with the signs apart that the Stanford tokeniser splits and nltk does not."""
    text = _DOTS.sub(" ... ", text.lower().translate(_TO_ASCII))
    return _DASH.sub(" - ", _STOP.sub(r" \1\2 ", text))


def _without_punctuation(tokens: Sequence[str]) -> str:
    return " ".join(token for token in tokens if token and token not in PUNCTUATION)
