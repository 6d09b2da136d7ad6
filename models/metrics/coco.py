"""ROUGE-L, CIDEr and METEOR of Penn Treebank tokens, as the scripts of MS COCO compute them.

Tokens are lower-cased, without punctuation; texts are strings of them with spaces between. Two
tokenisers: Stanford's, which the official scripts use and which needs Java, and one in Python
that agrees with it on all 4,693 references of the E2E test set, and on more than 99.8 % of other
E2E and MS COCO sentences. They differ on abbreviations ("St."), web addresses and rare signs.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from models.metrics.libraries import JavaUnavailableError, metrics_extra, run_java

# As the official scripts spell them. They meet lower-cased tokens, so "-lrb-" stays.
_QUOTES, _BRACKETS = ("''", "'", "``", "`"), ("-LRB-", "-RRB-", "-LCB-", "-RCB-")
PUNCTUATION = {*_QUOTES, *_BRACKETS, ".", "?", "!", ",", ":", "-", "--", "...", ";"}
STANFORD_JAR = "tokenizer/stanford-corenlp-3.4.1.jar"
STANFORD_OPTIONS = ("edu.stanford.nlp.process.PTBTokenizer", "-preserveLines", "-lowerCase")
METEOR_JAR = "meteor/meteor-1.5.jar"
SECONDS_PER_INSTANCE = 1.0  # that METEOR may take at most; it needs about a hundredth

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
    """Each text as tokens, as the Stanford tokeniser would give them."""
    with metrics_extra():
        from nltk.tokenize.destructive import NLTKWordTokenizer
    split = NLTKWordTokenizer().tokenize

    @cache  # a corpus has far fewer words than places for them
    def tokens(word: str) -> str:
        *own, _ = split(f"{word} x", convert_parentheses=True)  # at the end it would lose its stop
        return _without_punctuation([token.lower() for token in own])

    return [" ".join(filter(None, map(tokens, _prepared(text).split()))) for text in texts]


def _prepared(text: str) -> str:
    """Lower-cased, with the signs apart that the Stanford tokeniser splits and nltk does not."""
    text = _DOTS.sub(" ... ", text.lower().translate(_TO_ASCII))
    return _DASH.sub(" - ", _STOP.sub(r" \1\2 ", text))


def stanford_ptb_tokens(texts: Sequence[str]) -> list[str]:
    """Each text as tokens; raises `JavaUnavailableError`."""
    given = "".join(" ".join(text.split()) + "\n" for text in texts)
    lines = run_java(STANFORD_JAR, *STANFORD_OPTIONS, text=given).split("\n")[:-1]
    if len(lines) != len(texts):
        counts = f"{len(lines)} lines for {len(texts)}"
        raise JavaUnavailableError(f"the Stanford tokeniser returned {counts}")
    return [_without_punctuation(line.split(" ")) for line in lines]


def _without_punctuation(tokens: Sequence[str]) -> str:
    return " ".join(token for token in tokens if token and token not in PUNCTUATION)


def rouge_l(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """Mean F-score of the longest common subsequence, beta 1.2; a fraction."""
    with metrics_extra():
        from pycocoevalcap.rouge.rouge import Rouge
    return float(Rouge().compute_score(*_instances(outputs, references))[0])


def cider(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """CIDEr-D: tf-idf similarity of n-grams up to 4, from 0 to 10."""
    with metrics_extra():
        from pycocoevalcap.cider.cider import Cider
    if not any(text for texts in references for text in texts):
        return 0.0
    return float(Cider().compute_score(*_instances(outputs, references))[0])


def meteor(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> float:
    """METEOR 1.5, English, normalised; a fraction. Raises `JavaUnavailableError`."""
    theirs, _ = _instances(outputs, references)
    most = max(map(len, theirs.values()))  # references; blank lines, which match nothing, fill up
    lines = [text for own in theirs.values() for text in [*own, *[""] * (most - len(own))]]
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, name) for name in ("outputs", "references")]
        for file, texts in zip(files, (outputs, lines), strict=True):
            file.write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        arguments = ["Meteor", *map(str, files), "-l", "en", "-norm", "-r", str(most)]
        limit = SECONDS_PER_INSTANCE * len(outputs)
        printed = run_java(METEOR_JAR, *arguments, more_time=limit)
    try:
        return float(printed.rpartition("Final score:")[2])
    except ValueError as error:
        raise JavaUnavailableError("METEOR failed: it printed no score") from error


def _instances(
    outputs: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[dict[int, list[str]], dict[int, list[str]]]:
    """References and outputs by number."""
    if len(outputs) != len(references):
        raise ValueError(f"{len(outputs)} outputs, but {len(references)} lists of references")
    return dict(enumerate(map(list, references))), {i: [text] for i, text in enumerate(outputs)}
