"""BLEU, by sacrebleu, as a fraction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Any, NamedTuple

from models.metrics.libraries import metrics_extra


class Bleu(NamedTuple):
    value: float  # a fraction
    signature: str  # sacrebleu's account of how it was computed


def e2e_bleu(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> Bleu:
    """BLEU-4 of the E2E challenge: 13a tokens, lower-cased, all references of an instance."""
    return _bleu(outputs, references, lowercase=True)


def token_bleu(outputs: Sequence[str], references: Sequence[Sequence[str]], order: int = 4) -> Bleu:
    """BLEU of text that is already tokenised, with spaces between tokens: no smoothing."""
    return _bleu(
        outputs,
        references,
        tokenize="none",
        smooth_method="none",
        max_ngram_order=order,
        force=True,  # without the warning that the text looks tokenised
    )


def _bleu(outputs: Sequence[str], references: Sequence[Sequence[str]], **options: Any) -> Bleu:
    if len(outputs) != len(references):
        raise ValueError(f"{len(outputs)} outputs, but {len(references)} lists of references")
    with metrics_extra():
        from sacrebleu.metrics.bleu import BLEU
    metric = BLEU(**options)
    streams = list(zip_longest(*references))  # the k-th reference of every instance, or None
    score = metric.corpus_score(list(outputs), streams).score
    return Bleu(score / 100, str(metric.get_signature()))
