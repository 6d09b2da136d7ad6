"""A report with everything in it, some of it hostile."""

from __future__ import annotations

import math

from models.report.content import (
    Chart,
    Coloured,
    Curve,
    Grid,
    Output,
    Report,
    TableChoice,
    coloured,
)
from models.templates.analysis import StateNGram, StateWords, WordShare

HOSTILE = '</script><b onclick="alert(1)">\'&amp;<!--'
ESTIMATORS = ("gumbel-crf-st", "gumbel-crf", "pm-mrf", "reinforce-ms-c")

STEPS = range(0, 4000, 20)
CURVES = tuple(
    Curve(name, tuple((s, 60 + 5 * i + 40 * math.exp(-s / (500 + 150 * i))) for s in STEPS))
    for i, name in enumerate(ESTIMATORS)
)
BROKEN = Curve("pm-mrf", ((0, 3.0), (20, math.nan), (40, 2.5), (60, 2.0), (80, math.inf)))
CHARTS = (
    Chart("Negative ELBO", "On the dev set, nats per sentence.", CURVES),
    Chart("Gradient norm", "Before clipping.", (BROKEN,)),
    Chart("Entropy", "Of the posterior.", (Curve("gumbel-crf", ((100, 7.25),)),)),
    Chart("Nothing", "Never finite.", (Curve("gumbel-crf", ((0, math.nan),)),)),
)

COMPARISON = Grid(
    ("estimator", "NLL", "PPL", "neg. ELBO", "entropy", "states in use", "NMI", "BLEU", "seconds"),
    tuple(
        (name, 41.2 + i, 4.1, 44.5, 7.25, 18, 0.71, None, 1234) for i, name in enumerate(ESTIMATORS)
    ),
)


def sentence(text: str, states: tuple[int, ...]) -> Coloured:
    return coloured(text.split(), states)


SENTENCES = (
    sentence("_name_ is a cheap _eattype_ near _near_ .", (3, 7, 7, 12, 12, 5, 5, 0)),
    coloured(("the", HOSTILE, "end"), (1, 2, 2)),
    sentence(
        "in the _area_ , there is a family friendly coffee shop called _name_",
        (5, 5, 5, 0, 7, 7, 7, 12, 12, 4, 4, 9, 3),
    ),
)
TEMPLATES = ((3, 7, 7, 12, 12, 0), (5, 5, 0, 3, 7, 12), (12, 3, *range(20, 40)))


def output(template: int, text: str, note: str = "") -> Output:
    words = tuple(text.split())
    states = tuple(TEMPLATES[template][i % 6] for i in range(len(words)))
    return Output(TEMPLATES[template], text, coloured(words, states), note)


BROWSER = (
    TableChoice(
        "name[The Vaults], eatType[pub], area[riverside]",
        (
            output(0, "The Vaults is a riverside pub .", "keeps all 3 values"),
            output(1, "By the riverside , The Vaults pub"),
        ),
    ),
    TableChoice(
        "name[Cotto], eatType[coffee shop], rating[5 out of 5], near[Ranch], food[Thai]",
        (
            output(1, "Near Ranch , Cotto is good"),
            output(2, f"Cotto {HOSTILE} shop"),
        ),
    ),
    TableChoice("name[Empty]", ()),
)
NGRAMS = (
    StateNGram((3, 7), 1240, (("_name_ is a", 1200), ("_name_ serves", 40))),
    StateNGram((7, 12, 5), 96, (("is a cheap pub near", 60), (HOSTILE, 36))),
    StateNGram((37, 5), 12, (("near the", 12),)),
)
STATES = (
    StateWords(3, 0.214, (WordShare("_name_", 0.97, 1.5), WordShare("it", 0.02, 0.5))),
    StateWords(7, 0.131, (WordShare("is", 0.41, 1.2), WordShare(HOSTILE, 0.0001, 0.1))),
)
FACTS = (
    ("estimator", "gumbel-crf-st"),
    ("corpus", HOSTILE),
    ("run", "runs/" + "a-very-long-name-without-any-space-" * 3),
)
EVERYTHING = Report(
    f"Templates of E2E {HOSTILE}",
    FACTS,
    CHARTS,
    COMPARISON,
    SENTENCES,
    BROWSER,
    NGRAMS,
    STATES,
)
