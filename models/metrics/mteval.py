"""BLEU, by sacrebleu, and NIST (Doddington, 2002), as mteval-13a computes it: no library does.

In NIST, an n-gram that matches a reference counts for its information, log2 of how often its first
n-1 words are seen in the references over how often all n are. The score is the mean information of
the output's n-grams, summed over n = 1..5, times a penalty for outputs shorter than the references.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from models.metrics.diversity import Ngram, Tokens, ngrams
from models.metrics.libraries import metrics_extra

ORDER = 5
HALVED_AT = 2 / 3  # the length ratio at which the penalty is a half

Ngrams = Counter[Ngram]


class Bleu(NamedTuple):
    value: float  # a fraction
    signature: str  # sacrebleu's account of how it was computed


def e2e_bleu(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> Bleu:
    """BLEU-4 of the E2E challenge: 13a tokens, lower-cased, all references of an instance."""
    return _bleu(outputs, references, lowercase=True)


def token_bleu(outputs: Sequence[str], references: Sequence[Sequence[str]], order: int = 4) -> Bleu:
    """BLEU of text that is already tokenised, with spaces between tokens: no smoothing."""
    tokens: Any = {"tokenize": "none", "force": True}  # without the warning that it looks tokenised
    return _bleu(outputs, references, smooth_method="none", max_ngram_order=order, **tokens)


def _bleu(outputs: Sequence[str], references: Sequence[Sequence[str]], **options: Any) -> Bleu:
    if len(outputs) != len(references):
        raise ValueError(f"{len(outputs)} outputs, but {len(references)} lists of references")
    with metrics_extra():
        from sacrebleu.metrics.bleu import BLEU
    metric = BLEU(**options)
    streams = list(zip_longest(*references))  # the k-th reference of every instance, or None
    score = metric.corpus_score(list(outputs), streams).score
    return Bleu(score / 100, str(metric.get_signature()))


def tokenise_13a(texts: Sequence[str]) -> list[list[str]]:
    """Lower-cased tokens, split as mteval-13a does."""
    with metrics_extra():
        from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a
    tokenise = Tokenizer13a()
    return [tokenise(text.lower()).split() for text in texts]


def token_nist(outputs: Sequence[Tokens], references: Sequence[Sequence[Tokens]]) -> float:
    """NIST of tokens; unbounded above, 0 if nothing matches.

    The output's length is compared with all tokens of the references over the mean number of
    references, as in the Perl script.
    """
    seen: Ngrams = Counter()
    information, totals = [0.0] * ORDER, [0] * ORDER
    counted = [[_counted(text) for text in texts] for texts in references]
    for counts in (counts for texts in counted for counts in texts):
        seen.update(counts)
    seen[()] = sum(len(text) for texts in references for text in texts)
    for output, own in zip(outputs, counted, strict=True):
        for ngram, times in _counted(output).items():
            totals[len(ngram) - 1] += times
            matches = min(times, max(counts[ngram] for counts in own))
            if matches:
                bits = math.log2(seen[ngram[:-1]] / seen[ngram])
                information[len(ngram) - 1] += matches * bits
    mean = sum(bits / total for bits, total in zip(information, totals, strict=True) if total)
    per_instance = sum(map(len, references)) / len(references)
    return mean * _penalty(sum(map(len, outputs)), seen[()] / per_instance)


def _counted(tokens: Tokens) -> Ngrams:
    """All n-grams up to the order."""
    return Counter(ngram for n in range(1, ORDER + 1) for ngram in ngrams(tokens, n))


def _penalty(length: int, reference_length: float) -> float:
    """1 for outputs that are long enough, falling with the square of the log of the ratio."""
    if length >= reference_length:
        return 1.0
    if length == 0:
        return 0.0
    return 0.5 ** ((math.log(length / reference_length) / math.log(HALVED_AT)) ** 2)
