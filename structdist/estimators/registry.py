"""Estimators by name, with the settings they have unless told otherwise."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from structdist.estimators.estimator import Estimator
from structdist.estimators.score_function import Reinforce
from structdist.estimators.through_draws import GumbelCRF, PerturbAndMAP

ESTIMATORS: dict[str, Estimator] = {
    "gumbel-crf": GumbelCRF(),
    "gumbel-crf-st": GumbelCRF(straight_through=True),
    "pm-mrf": PerturbAndMAP(),
    "pm-mrf-st": PerturbAndMAP(straight_through=True),
    "reinforce": Reinforce(),
    "reinforce-c": Reinforce(constant=0.1),
    "reinforce-ms": Reinforce(num_samples=5, leave_one_out=True),
    "reinforce-ms-c": Reinforce(num_samples=5, leave_one_out=True, constant=0.1),
}


def estimator(name: str, **settings: Any) -> Estimator:
    """The estimator of a name, with some of its settings changed."""
    if name not in ESTIMATORS:
        raise ValueError(f"name must be one of {', '.join(ESTIMATORS)}, got {name!r}")
    known = ESTIMATORS[name]
    unknown = settings.keys() - set(known.settings)
    if unknown:
        raise ValueError(
            f"{name} has no setting {min(unknown)!r}, only {', '.join(known.settings)}"
        )
    return replace(known, **settings)  # type: ignore[type-var]
