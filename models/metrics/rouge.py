"""ROUGE-1, ROUGE-2 and ROUGE-L, by rouge-score."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from models.metrics.libraries import metrics_extra

TYPES = {"ROUGE-1": "rouge1", "ROUGE-2": "rouge2", "ROUGE-L": "rougeL"}


class _Tokens:
    """Stemmed tokens of a text, computed once."""

    def __init__(self) -> None:
        with metrics_extra():
            from rouge_score.tokenizers import DefaultTokenizer
        self.tokenize = cache(DefaultTokenizer(use_stemmer=True).tokenize)


def rouge(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Mean F1 with the reference that gives the best, as fractions by the names in `TYPES`.

    Words are lower-cased and stemmed (Porter). The scores of the original paper are recalls with
    another exponent, on references that keep a start mark: not to be compared with these.
    """
    with metrics_extra():
        from rouge_score.rouge_scorer import RougeScorer
    scorer = RougeScorer(list(TYPES.values()), tokenizer=_Tokens())
    best = [
        scorer.score_multi(texts, output) for output, texts in zip(outputs, references, strict=True)
    ]
    return {
        name: float(sum(scores[kind].fmeasure for scores in best) / len(best))
        for name, kind in TYPES.items()
    }
