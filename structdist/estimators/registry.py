"""Estimators by name, with the settings they have unless told otherwise."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import replace
from typing import Any

from structdist.estimators.estimator import Estimator
from structdist.estimators.exact import Exact
from structdist.estimators.gumbel_rao import GumbelRao
from structdist.estimators.implicit_mle import IMLE, AdaptiveStep
from structdist.estimators.muprop import MuProp
from structdist.estimators.reinmax import ReinMax
from structdist.estimators.score_function import Reinforce
from structdist.estimators.stochastic_softmax import StochasticSoftmax
from structdist.estimators.through_draws import GumbelCRF, PerturbAndMAP
from structdist.estimators.through_marginals import ThroughMarginals

#: All estimators by name, with their settings.
ESTIMATORS: dict[str, Estimator] = {
    "gumbel-crf": GumbelCRF(),
    "gumbel-crf-st": GumbelCRF(straight_through=True),
    "pm-mrf": PerturbAndMAP(),
    "pm-mrf-st": PerturbAndMAP(straight_through=True),
    "reinforce": Reinforce(),
    "reinforce-c": Reinforce(constant=0.1),
    "reinforce-ms": Reinforce(num_samples=5, leave_one_out=True),
    "reinforce-ms-c": Reinforce(num_samples=5, leave_one_out=True, constant=0.1),
    "gumbel-rao": GumbelRao(),
    "reinmax": ReinMax(),
    "simple": ThroughMarginals(),
    "sst": StochasticSoftmax(),
    "sst-st": StochasticSoftmax(straight_through=True),
    "imle": IMLE(),
    "imle-exact-draws": IMLE(exact_draws=True),
    "aimle": IMLE(step=AdaptiveStep()),
    "muprop": MuProp(),
    "exact": Exact(),
}
#: Names under which some of them are known elsewhere: the same estimates, draw by draw.
SYNONYMS = {"rloo": "reinforce-ms", "vargrad": "reinforce-ms"}


def estimator(name: str, **settings: Any) -> Estimator:
    """An estimator of one's own, by its name or a synonym, with some of its settings changed.

    Example:
        >>> from structdist.estimators import estimator
        >>> estimator("gumbel-crf-st", temperature=0.5)
        GumbelCRF(num_samples=1, temperature=0.5, straight_through=True)
    """
    known = ESTIMATORS.get(SYNONYMS.get(name, name))
    if known is None:
        names = ", ".join([*ESTIMATORS, *SYNONYMS])
        raise ValueError(f"name must be one of {names}, got {name!r}")
    unknown = settings.keys() - set(known.settings)
    if unknown:
        raise ValueError(
            f"{name} has no setting {min(unknown)!r}, only {', '.join(known.settings)}"
        )
    return replace(deepcopy(known), **settings)  # type: ignore[type-var]
