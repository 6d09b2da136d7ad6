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

from models.metrics.libraries import metrics_extra

ORDER = 5
HALVED_AT = 2 / 3  # the length ratio at which the penalty is a half

Tokens = Sequence[str]
Ngrams = Counter[tuple[str, ...]]
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
    seen: Ngrams = Counter()
    matches: Ngrams = Counter()
    for output, texts in zip(outputs, references, strict=True):
        ngrams = [Counter(_ngrams(text)) for text in texts]
        for counts in ngrams:
            seen.update(counts)
        matches.update(_clipped(Counter(_ngrams(output)), ngrams))
    seen[()] = sum(len(text) for texts in references for text in texts)
    length = sum(map(len, outputs))
    return _mean_information(matches, seen, outputs) * _penalty(
        length, _length(references, reference_length)
    )


def _ngrams(tokens: Tokens) -> list[tuple[str, ...]]:
    """All of them up to the order."""
    shifted = [tokens[n:] for n in range(ORDER)]
    return [ngram for n in range(1, ORDER + 1) for ngram in zip(*shifted[:n], strict=False)]


def _clipped(output: Ngrams, references: Sequence[Ngrams]) -> dict[tuple[str, ...], int]:
    """N-grams of the output, each at most as often as in the reference that has it most."""
    return {
        ngram: min(times, max(reference[ngram] for reference in references))
        for ngram, times in output.items()
    }


def _mean_information(matches: Ngrams, seen: Ngrams, outputs: Sequence[Tokens]) -> float:
    """Summed over the lengths of n-grams."""
    information = [0.0] * ORDER
    for ngram, times in matches.items():
        if times:
            information[len(ngram) - 1] += times * math.log2(seen[ngram[:-1]] / seen[ngram])
    totals = [sum(max(len(output) - n, 0) for output in outputs) for n in range(ORDER)]
    return sum(bits / total for bits, total in zip(information, totals, strict=True) if total)


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
