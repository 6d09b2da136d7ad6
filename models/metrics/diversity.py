"""How much the outputs of a system differ from one another. Sentences are sequences of tokens."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

Tokens = Sequence[str]
Ngram = tuple[str, ...]


def distinct_n(sentences: Iterable[Tokens], n: int) -> float:
    """Different n-grams over all n-grams (Li et al., 2016); 0 if there are none."""
    counts = Counter(ngram for sentence in sentences for ngram in ngrams(sentence, n))
    return len(counts) / counts.total() if counts else 0.0


def mutual_bleu(sentences: Sequence[Tokens], order: int = 4) -> float:
    """BLEU of every sentence with all the others as its references, over the whole corpus.

    A fraction; the higher, the more alike the sentences are. Zhu et al. (2018) call a mean of it
    over sentences Self-BLEU; in paraphrasing that name means BLEU with the input. No smoothing.
    """
    if len(sentences) < 2:
        raise ValueError("mutual BLEU compares two sentences or more")
    precisions = [_mutual_precision(sentences, n) for n in range(1, order + 1)]
    if min(precisions) == 0:
        return 0.0
    length, others = sum(map(len, sentences)), _closest_lengths(sentences)
    brevity = min(0.0, 1 - others / length)
    return math.exp(brevity + sum(map(math.log, precisions)) / order)


def _mutual_precision(sentences: Sequence[Tokens], n: int) -> float:
    """All n-grams match but those that a sentence has more often than any other."""
    counts: dict[Ngram, list[int]] = defaultdict(lambda: [0])  # of each sentence that has it
    for sentence in sentences:
        for ngram, times in Counter(ngrams(sentence, n)).items():
            counts[ngram].append(times)
    total = sum(map(sum, counts.values()))
    largest = (sorted(own)[-2:] for own in counts.values())
    alone = sum(most - next_to_it for next_to_it, most in largest)
    return (total - alone) / total if total else 0.0


def _closest_lengths(sentences: Sequence[Tokens]) -> int:
    """The length nearest to a sentence's own among the others, the shorter of two; of all."""
    lengths = Counter(map(len, sentences))
    return sum(
        times * min(lengths.keys() - ({own} if times == 1 else {}), key=lambda n: (abs(n - own), n))
        for own, times in lengths.items()
    )


def ngrams(tokens: Tokens, n: int) -> list[Ngram]:
    return [tuple(tokens[i : i + n]) for i in range(len(tokens) - n + 1)]
