"""The protocol of the E2E challenge, and slot errors where the tables are known.

BLEU and NIST read mteval-13a tokens, lower-cased; METEOR, ROUGE-L and CIDEr Penn Treebank tokens,
lower-cased, without punctuation. Texts are to be given as they would be shown: detokenised. All
values are as the official script prints them: BLEU, METEOR and ROUGE-L are fractions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.data.tables import Table
from models.metrics.bleu import e2e_bleu
from models.metrics.coco import cider, meteor, rouge_l
from models.metrics.diversity import distinct_n
from models.metrics.libraries import JavaUnavailableError
from models.metrics.nist import ORDER, token_nist, tokenise_13a
from models.metrics.ptb import python_ptb_tokens, stanford_ptb_tokens
from models.metrics.scores import Score, SystemScores, library
from models.metrics.slot_errors import corpus_slot_errors

SWITCHED_OFF = "java was switched off"
MTEVAL = {"tokens": "mteval-13a", "case": "lower"}


class PtbTexts(NamedTuple):
    outputs: list[str]
    references: list[list[str]]
    tokeniser: str
    no_java: str | None  # why the tokeniser is not the official one


def score_e2e(
    outputs: Sequence[str],
    references: Sequence[Sequence[str]],
    tables: Sequence[Table] | None = None,
    java: bool | None = None,
) -> SystemScores:
    """All scores of a system's outputs.

    Java is used if it is there. With `java=True` it must be, else `JavaUnavailableError` is raised;
    with `java=False` it is left alone. Without it METEOR has no value.
    """
    ptb = _ptb_texts(outputs, references, java)
    scores = [
        *_mteval_scores(outputs, references),
        _meteor_score(ptb, must=bool(java)),
        *_coco_scores(ptb),
        *_diversity_scores(outputs),
        *([] if tables is None else _slot_scores(tables, outputs)),
    ]
    return SystemScores("e2e", len(outputs), sum(map(len, references)), tuple(scores))


def _mteval_scores(outputs: Sequence[str], references: Sequence[Sequence[str]]) -> list[Score]:
    bleu = e2e_bleu(outputs, references)
    nist = token_nist(tokenise_13a(outputs), [tokenise_13a(texts) for texts in references])
    sacrebleu = {"library": library("sacrebleu"), "signature": bleu.signature}
    counted = {"order": ORDER, "reference length": "pooled, as in the Perl script"}
    return [
        Score("BLEU", bleu.value, {**sacrebleu, **MTEVAL, "order": 4}),
        Score("NIST", nist, {"library": "own", **MTEVAL, **counted}),
    ]


def _ptb_texts(
    outputs: Sequence[str], references: Sequence[Sequence[str]], java: bool | None
) -> PtbTexts:
    texts = [*outputs, *(text for texts in references for text in texts)]
    try:
        if java is False:
            raise JavaUnavailableError(SWITCHED_OFF)
        tokens, tokeniser, reason = stanford_ptb_tokens(texts), "Stanford PTB (Java)", None
    except JavaUnavailableError as error:
        if java:
            raise
        tokens, tokeniser, reason = python_ptb_tokens(texts), "PTB-like (Python)", str(error)
    rest = iter(tokens)
    own = [next(rest) for _ in outputs]
    return PtbTexts(own, [[next(rest) for _ in texts] for texts in references], tokeniser, reason)


def _ptb_settings(ptb: PtbTexts) -> dict[str, str]:
    return {
        "library": library("pycocoevalcap"),
        "tokens": ptb.tokeniser,
        "case": "lower",
        "punctuation": "dropped",
    }


def _meteor_score(ptb: PtbTexts, must: bool) -> Score:
    settings = {**_ptb_settings(ptb), "version": "1.5", "language": "en"}
    if ptb.no_java is not None:
        return Score("METEOR", None, settings, unavailable=ptb.no_java)
    try:
        return Score("METEOR", meteor(ptb.outputs, ptb.references), settings)
    except JavaUnavailableError as error:
        if must:
            raise
        return Score("METEOR", None, settings, unavailable=str(error))


def _coco_scores(ptb: PtbTexts) -> list[Score]:
    settings, texts = _ptb_settings(ptb), (ptb.outputs, ptb.references)
    return [
        Score("ROUGE_L", rouge_l(*texts), {**settings, "beta": 1.2}),
        Score("CIDEr", cider(*texts), {**settings, "order": 4, "sigma": 6.0}),
    ]


def _diversity_scores(outputs: Sequence[str]) -> list[Score]:
    tokens = tokenise_13a(outputs)
    return [Score(f"distinct-{n}", distinct_n(tokens, n), MTEVAL) for n in (1, 2)]


def _slot_scores(tables: Sequence[Table], outputs: Sequence[str]) -> list[Score]:
    errors = corpus_slot_errors(tables, outputs)
    settings = {"library": "own", "rules": "models/metrics/slot_rules.yaml", "slots": errors.slots}
    return [
        Score("slot error rate", errors.rate, settings),
        Score("slots missing", errors.missing),
        Score("slots wrong", errors.wrong),
        Score("slots added", errors.added),
    ]
