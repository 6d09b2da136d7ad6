"""NIST (Doddington, 2002), as mteval-13a computes it: no library gives its number.

An n-gram that matches a reference counts for its information, log2 of how often its first n-1
words are seen in the references over how often all n are. The score is the mean information of
the output's n-grams, summed over n = 1..5, times a penalty for outputs shorter than the references.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from models.metrics.extra import metrics_extra

ORDER = 5
HALVED_AT = 2 / 3  # the length ratio at which the penalty is a half

Tokens = Sequence[str]
ReferenceLength = Literal["pooled", "by_instance"]


def e2e_nist(
    outputs: Sequence[str],
    references: Sequence[Sequence[str]],
    reference_length: ReferenceLength = "pooled",
) -> float:
    """NIST-5 of the E2E challenge: 13a tokens, lower-cased; see `token_nist`."""
    return token_nist(
        tokenise_13a(outputs), [tokenise_13a(texts) for texts in references], reference_length
    )


def tokenise_13a(texts: Sequence[str]) -> list[list[str]]:
    """Lower-cased tokens, split as mteval-13a does."""
    with metrics_extra():
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    tokenise = Tokenizer13a()
    return [tokenise(text.lower()).split() for text in texts]


def token_nist(
    outputs: Sequence[Tokens],
    references: Sequence[Sequence[Tokens]],
    reference_length: ReferenceLength = "pooled",
) -> float:
    """NIST of tokens; unbounded above, 0 if nothing matches.

    The output's length is compared with the length of the references: all their tokens over the
    mean number of references ("pooled", the Perl script), or the sum of every instance's mean
    ("by_instance", the Python one).
    """
    counts = Counter(g for texts in references for text in texts for g in _ngrams(text))
    words = sum(len(text) for texts in references for text in texts)
    information, totals = [0.0] * ORDER, [0] * ORDER
    for output, texts in zip(outputs, references, strict=True):
        for ngram, times in _matches(output, texts).items():
            seen_before = counts[ngram[:-1]] if len(ngram) > 1 else words
            information[len(ngram) - 1] += times * math.log2(seen_before / counts[ngram])
        for n in range(ORDER):
            totals[n] += max(len(output) - n, 0)
    mean_information = sum(i / total for i, total in zip(information, totals, strict=True) if total)
    return mean_information * _penalty(totals[0], _length(references, reference_length))


def _ngrams(tokens: Tokens) -> list[tuple[str, ...]]:
    """All of them up to the order."""
    return [
        tuple(tokens[i : i + n]) for n in range(1, ORDER + 1) for i in range(len(tokens) - n + 1)
    ]


def _matches(output: Tokens, references: Sequence[Tokens]) -> Counter[tuple[str, ...]]:
    """N-grams of the output, each as often as in the reference that has it most."""
    most: Counter[tuple[str, ...]] = Counter()
    for reference in references:
        most |= Counter(_ngrams(reference))
    return Counter(_ngrams(output)) & most


def _length(references: Sequence[Sequence[Tokens]], how: ReferenceLength) -> float:
    lengths = [[len(text) for text in texts] for texts in references]
    if how == "by_instance":
        return sum(sum(instance) / len(instance) for instance in lengths)
    return sum(map(sum, lengths)) * len(lengths) / sum(map(len, lengths))


def _penalty(length: int, reference_length: float) -> float:
    """1 for outputs that are long enough, falling with the square of the log of the ratio."""
    if length >= reference_length:
        return 1.0
    if length == 0:
        return 0.0
    return 0.5 ** ((math.log(length / reference_length) / math.log(HALVED_AT)) ** 2)
