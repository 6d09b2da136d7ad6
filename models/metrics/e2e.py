"""The protocol of the E2E challenge, and slot errors where the tables are known.

BLEU and NIST read mteval-13a tokens, lower-cased; METEOR, ROUGE-L and CIDEr Penn Treebank tokens,
lower-cased, without punctuation. Texts are to be given as they would be shown: detokenised. All
values are as the official script prints them: BLEU, METEOR and ROUGE-L are fractions.
"""

from __future__ import annotations

from collections.abc import Sequence

from models.data.tables import Table
from models.metrics.coco import cider, meteor, python_ptb_tokens, rouge_l, stanford_ptb_tokens
from models.metrics.diversity import distinct_n
from models.metrics.libraries import JavaUnavailableError
from models.metrics.mteval import ORDER, e2e_bleu, token_nist, tokenise_13a
from models.metrics.scores import Score, SystemScores, library
from models.metrics.slot_errors import corpus_slot_errors

MTEVAL = {"tokens": "mteval-13a", "case": "lower"}


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
    bleu, tokens = e2e_bleu(outputs, references), tokenise_13a(outputs)
    nist = token_nist(tokens, [tokenise_13a(texts) for texts in references])
    sacrebleu = {"library": library("sacrebleu"), "signature": bleu.signature}
    counted = {"order": ORDER, "reference length": "pooled, as in the Perl script"}
    scores = [
        Score("BLEU", bleu.value, {**sacrebleu, **MTEVAL, "order": 4}),
        Score("NIST", nist, {"library": "own", **MTEVAL, **counted}),
        *_ptb_scores(outputs, references, java),
        *(Score(f"distinct-{n}", distinct_n(tokens, n), MTEVAL) for n in (1, 2)),
    ]
    if tables is not None:
        errors = corpus_slot_errors(tables, outputs)
        rules = {"library": "own", "rules": "models/metrics/slot_rules.yaml", "slots": errors.slots}
        scores.append(Score("slot error rate", errors.rate, rules))
        kinds = ("missing", "wrong", "added")
        scores += [Score(f"slots {kind}", getattr(errors, kind)) for kind in kinds]
    return SystemScores("e2e", len(outputs), sum(map(len, references)), scores)


def _ptb_scores(
    outputs: Sequence[str], references: Sequence[Sequence[str]], java: bool | None
) -> list[Score]:
    """METEOR, ROUGE-L and CIDEr."""

    def parted(tokens: Sequence[str]) -> tuple[list[str], list[list[str]]]:
        left = iter(tokens)
        return [next(left) for _ in outputs], [[next(left) for _ in own] for own in references]

    texts = [*outputs, *(text for own in references for text in own)]
    tokens, value, no_java = list[str](), None, None
    try:
        if java is False:
            raise JavaUnavailableError("java was switched off")
        tokens = stanford_ptb_tokens(texts)
        value = meteor(*parted(tokens))
    except JavaUnavailableError as error:
        if java:
            raise
        no_java = str(error)
    tokeniser = "Stanford PTB (Java)" if tokens else "PTB-like (Python)"
    own, theirs = parted(tokens or python_ptb_tokens(texts))
    settings = {"library": library("pycocoevalcap"), "tokens": tokeniser, "case": "lower"}
    settings["punctuation"] = "dropped"
    return [
        Score("METEOR", value, {**settings, "version": "1.5", "language": "en"}, no_java),
        Score("ROUGE_L", rouge_l(own, theirs), {**settings, "beta": 1.2}),
        Score("CIDEr", cider(own, theirs), {**settings, "order": 4, "sigma": 6.0}),
    ]
