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
ONE_OUTPUT = "there is only one output"


def score_paraphrase(
    outputs: Sequence[str], references: Sequence[Sequence[str]], inputs: Sequence[str]
) -> SystemScores:
    """All scores of a system's outputs."""
    tokens = [output.split() for output in outputs]
    bleu = {order: token_bleu(outputs, references, order) for order in (2, 3, 4)}
    copied = token_bleu(outputs, [[text] for text in inputs]).value
    about_bleu = {"library": library("sacrebleu"), **AS_GIVEN, "smoothing": "none"}
    against = {**about_bleu, "order": 4, "against": "inputs"}
    stems = {"tokens": "letters and digits, stemmed", "case": "lower"}
    about_rouge = {"library": library("rouge-score"), **stems, "value": ROUGE_NOTE}
    mutual = mutual_bleu(tokens) if len(outputs) > 1 else None
    about_mutual = {"library": "own", **AS_GIVEN, "order": 4, "against": "the other outputs"}
    scores = [
        *(
            Score(f"BLEU-{n}", value, {**about_bleu, "order": n, "signature": signature})
            for n, (value, signature) in bleu.items()
        ),
        Score("iBLEU", ALPHA * bleu[4].value - (1 - ALPHA) * copied, {**against, "alpha": ALPHA}),
        Score("self-BLEU", copied, against),
        *(Score(name, f1, about_rouge) for name, f1 in rouge(outputs, references).items()),
        *(Score(f"distinct-{n}", distinct_n(tokens, n), AS_GIVEN) for n in (1, 2)),
        Score("mutual-BLEU", mutual, about_mutual, ONE_OUTPUT if mutual is None else None),
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
