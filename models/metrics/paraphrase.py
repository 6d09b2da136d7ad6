"""The paraphrase protocol. Texts are already tokenised, with spaces between tokens; case counts.

- BLEU-n: of the whole corpus, against all references, without smoothing.
- self-BLEU: BLEU-4 of the outputs against their inputs, so the lower, the more was changed.
- iBLEU (Sun and Zhou, 2012): 0.9 BLEU-4 with the references minus 0.1 self-BLEU.
- ROUGE-1, -2 and -L: see `rouge`.
- mutual-BLEU: BLEU-4 of every output against the other outputs, a measure of sameness.
- distinct-n: the share of n-grams that are different.

All values are fractions.
"""

from __future__ import annotations

from collections.abc import Sequence

from models.metrics.bleu import token_bleu
from models.metrics.diversity import distinct_n, mutual_bleu
from models.metrics.rouge import rouge
from models.metrics.scores import Score, SystemScores, library

ALPHA = 0.9
AS_GIVEN = {"tokens": "as given, between spaces", "case": "as given"}
ROUGE_NOTE = "F1 of the best reference; the paper's ROUGE is another measure, not comparable"


def ibleu(with_references: float, with_inputs: float, alpha: float = ALPHA) -> float:
    """Near to the references, and far from the input."""
    return alpha * with_references - (1 - alpha) * with_inputs


def score_paraphrase(
    outputs: Sequence[str], references: Sequence[Sequence[str]], inputs: Sequence[str]
) -> SystemScores:
    """All scores of a system's outputs."""
    scores = (
        *_bleu_scores(outputs, references, inputs),
        *_rouge_scores(outputs, references),
        *_diversity_scores(outputs),
    )
    return SystemScores("paraphrase", len(outputs), sum(map(len, references)), scores)


def _bleu_scores(
    outputs: Sequence[str], references: Sequence[Sequence[str]], inputs: Sequence[str]
) -> list[Score]:
    by_order = {n: token_bleu(outputs, references, n) for n in (2, 3, 4)}
    own = token_bleu(outputs, [[text] for text in inputs])
    settings = {"library": library("sacrebleu"), **AS_GIVEN, "smoothing": "none"}
    value = ibleu(by_order[4].value, own.value)
    return [
        *(
            Score(f"BLEU-{n}", bleu.value, {**settings, "order": n, "signature": bleu.signature})
            for n, bleu in by_order.items()
        ),
        Score("iBLEU", value, {**settings, "order": 4, "alpha": ALPHA, "against": "inputs"}),
        Score("self-BLEU", own.value, {**settings, "order": 4, "against": "inputs"}),
    ]


def _rouge_scores(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> list[Score]:
    settings = {
        "library": library("rouge-score"),
        "tokens": "letters and digits, stemmed",
        "case": "lower",
        "value": ROUGE_NOTE,
    }
    return [Score(name, value, settings) for name, value in rouge(outputs, references).items()]


def _diversity_scores(outputs: Sequence[str]) -> list[Score]:
    tokens = [output.split() for output in outputs]
    settings = {"library": "own", **AS_GIVEN, "order": 4, "against": "the other outputs"}
    if len(outputs) < 2:
        mutual = Score("mutual-BLEU", None, settings, unavailable="there is only one output")
    else:
        mutual = Score("mutual-BLEU", mutual_bleu(tokens), settings)
    return [*(Score(f"distinct-{n}", distinct_n(tokens, n), AS_GIVEN) for n in (1, 2)), mutual]
