"""The paraphrase protocol. Texts are already tokenised, with spaces between tokens; case counts.

- BLEU-n: of the whole corpus, against all references, without smoothing.
- self-BLEU: BLEU-4 of the outputs against their inputs, so the lower, the more was changed.
- iBLEU (Sun and Zhou, 2012): 0.9 BLEU-4 with the references minus 0.1 self-BLEU.
- ROUGE-1, -2 and -L: mean F1 with the best reference, by rouge-score.
- mutual-BLEU: BLEU-4 of every output against the other outputs, a measure of sameness.
- distinct-n: the share of n-grams that are different.

All values are fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from types import SimpleNamespace

from models.metrics.diversity import distinct_n, mutual_bleu
from models.metrics.libraries import metrics_extra
from models.metrics.mteval import token_bleu
from models.metrics.scores import Score, SystemScores, library

ALPHA = 0.9
AS_GIVEN = {"tokens": "as given, between spaces", "case": "as given"}
ROUGE_TYPES = {"ROUGE-1": "rouge1", "ROUGE-2": "rouge2", "ROUGE-L": "rougeL"}
ROUGE_NOTE = "F1 of the best reference; the paper's ROUGE is another measure, not comparable"


def score_paraphrase(
    outputs: Sequence[str], references: Sequence[Sequence[str]], inputs: Sequence[str]
) -> SystemScores:
    """All scores of a system's outputs."""
    tokens = {"tokens": "letters and digits, stemmed", "case": "lower"}
    about_rouge = {"library": library("rouge-score"), **tokens, "value": ROUGE_NOTE}
    scores = [
        *_bleu_scores(outputs, references, inputs),
        *(Score(name, f1, about_rouge) for name, f1 in rouge(outputs, references).items()),
        *_diversity_scores(outputs),
    ]
    return SystemScores("paraphrase", len(outputs), sum(map(len, references)), scores)


def rouge(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> dict[str, float]:
    """Mean F1 with the reference that gives the best, as fractions by the names in `ROUGE_TYPES`.

    Words are lower-cased and stemmed (Porter). The scores of the original paper are recalls with
    another exponent, on references that keep a start mark: not to be compared with these.
    """
    with metrics_extra():
        from rouge_score.rouge_scorer import RougeScorer
        from rouge_score.tokenizers import DefaultTokenizer
    stemmed_once = SimpleNamespace(tokenize=cache(DefaultTokenizer(use_stemmer=True).tokenize))
    scorer = RougeScorer(list(ROUGE_TYPES.values()), tokenizer=stemmed_once)
    pairs = zip(references, outputs, strict=True)
    best = [scorer.score_multi(texts, output) for texts, output in pairs]
    return {
        name: float(sum(scores[kind].fmeasure for scores in best) / len(best))
        for name, kind in ROUGE_TYPES.items()
    }


def _bleu_scores(
    outputs: Sequence[str], references: Sequence[Sequence[str]], inputs: Sequence[str]
) -> list[Score]:
    settings = {"library": library("sacrebleu"), **AS_GIVEN, "smoothing": "none"}
    scores = []
    for order in (2, 3, 4):
        value, signature = token_bleu(outputs, references, order)
        about = {**settings, "order": order, "signature": signature}
        scores.append(Score(f"BLEU-{order}", value, about))
    own = token_bleu(outputs, [[text] for text in inputs]).value
    against = {**settings, "order": 4, "against": "inputs"}
    near_and_far = ALPHA * value - (1 - ALPHA) * own
    combined = Score("iBLEU", near_and_far, {**against, "alpha": ALPHA})
    return [*scores, combined, Score("self-BLEU", own, against)]


def _diversity_scores(outputs: Sequence[str]) -> list[Score]:
    tokens = [output.split() for output in outputs]
    settings = {"library": "own", **AS_GIVEN, "order": 4, "against": "the other outputs"}
    value = mutual_bleu(tokens) if len(outputs) > 1 else None
    reason = None if len(outputs) > 1 else "there is only one output"
    distinct = [Score(f"distinct-{n}", distinct_n(tokens, n), AS_GIVEN) for n in (1, 2)]
    return [*distinct, Score("mutual-BLEU", value, settings, unavailable=reason)]
