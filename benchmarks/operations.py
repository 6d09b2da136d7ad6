"""The operations that are compared."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

TEMPERATURE = 1.0


class Kind(Enum):
    VALUE = "a value, the same for everyone"
    BEST_PATH = "a best path"
    EXACT_SAMPLER = "draws that follow the chain's distribution"
    BIASED_SAMPLER = "draws that do not, by design"


@dataclass(frozen=True)
class Operation:
    name: str
    kind: Kind
    differentiable: bool = True
    relaxation: str | None = None  # of a straight-through sampler: whose gradient it has
    tolerance: float = 2e-5  # of a value: its error, relative to the largest entry of the truth


OPERATIONS = {
    operation.name: operation
    for operation in (
        Operation("log-z", Kind.VALUE),
        Operation("marginals", Kind.VALUE, tolerance=2e-4),
        Operation("entropy", Kind.VALUE, tolerance=2e-4),
        Operation("sample", Kind.EXACT_SAMPLER, differentiable=False),
        Operation("gumbel-ffbs", Kind.EXACT_SAMPLER),
        Operation("gumbel-ffbs-st", Kind.EXACT_SAMPLER, relaxation="gumbel-ffbs"),
        Operation("pm-mrf", Kind.BIASED_SAMPLER),
        Operation("pm-mrf-st", Kind.BIASED_SAMPLER, relaxation="pm-mrf"),
        Operation("viterbi", Kind.BEST_PATH, differentiable=False),
    )
}

SEGMENT_OPERATIONS = {
    operation.name: operation
    for operation in (
        OPERATIONS["log-z"],
        Operation("token-marginals", Kind.VALUE, tolerance=2e-4),
        OPERATIONS["marginals"],
        OPERATIONS["entropy"],
        OPERATIONS["sample"],
        OPERATIONS["gumbel-ffbs"],
        OPERATIONS["gumbel-ffbs-st"],
        Operation("gumbel-labels-st", Kind.EXACT_SAMPLER, relaxation="gumbel-labels"),
        OPERATIONS["viterbi"],
    )
}
