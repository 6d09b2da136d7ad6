"""How much the outputs of a system differ from one another. Sentences are sequences of tokens."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

Tokens = Sequence[str]
Ngram = tuple[str, ...]


def distinct_n(sentences: Iterable[Tokens], n: int) -> float:
    """Different n-grams over all n-grams (Li et al., 2016); 0 if there are none."""
    counts = Counter(ngram for sentence in sentences for ngram in _ngrams(sentence, n))
    return len(counts) / counts.total() if counts else 0.0


def mutual_bleu(sentences: Sequence[Tokens], order: int = 4) -> float:
    """BLEU of every sentence with all the others as its references, over the whole corpus.

    A fraction; the higher, the more alike the sentences are. Zhu et al. (2018) call a mean of it
    over sentences Self-BLEU; in paraphrasing that name means BLEU with the input. No smoothing.
    Linear in the number of n-grams: of each, only the two largest counts matter.
    """
    if len(sentences) < 2:
        raise ValueError("mutual BLEU compares two sentences or more")
    precisions = [_mutual_precision(sentences, n) for n in range(1, order + 1)]
    if min(precisions) == 0:
        return 0.0
    length, others = sum(map(len, sentences)), sum(_closest_lengths(sentences))
    brevity = min(0.0, 1 - others / length)
    return math.exp(brevity + sum(map(math.log, precisions)) / order)


def _mutual_precision(sentences: Sequence[Tokens], n: int) -> float:
    counts = [Counter(_ngrams(sentence, n)) for sentence in sentences]
    total = sum(count.total() for count in counts)
    largest: dict[Ngram, tuple[int, int]] = {}  # the largest count of one sentence, and the next
    for count in counts:
        for ngram, times in count.items():
            first, second = largest.get(ngram, (0, 0))
            largest[ngram] = (max(first, times), max(second, min(first, times)))
    matches = 0
    for count in counts:
        for ngram, times in count.items():
            first, second = largest[ngram]
            matches += min(times, second if times == first else first)
    return matches / total if total else 0.0


def _closest_lengths(sentences: Sequence[Tokens]) -> list[int]:
    """For each sentence, the length nearest to its own among the others; the shorter of two."""
    lengths = Counter(map(len, sentences))
    closest = {
        own: own if times > 1 else min(lengths.keys() - {own}, key=lambda n: (abs(n - own), n))
        for own, times in lengths.items()
    }
    return [closest[len(sentence)] for sentence in sentences]


def _ngrams(tokens: Tokens, n: int) -> list[Ngram]:
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
