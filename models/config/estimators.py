"""What a run says of the settings of its estimator."""

from __future__ import annotations

from typing import Any

from models.config import LANGUAGE_MODEL
from models.errors import SettingError
from structdist.estimators import ESTIMATORS, Reinforce, estimator

OLDER = ("num_samples", "constant_baseline", "reward_scale")  # settings of an objective


def changed_settings(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that are not the estimator's defaults: equal runs say equal things.

    An estimator or a setting that there is not, or a value that it does not take, is an error.
    """
    if name == LANGUAGE_MODEL:
        if settings:
            raise SettingError(f"objective.estimator_settings: {name} has none")
        return {}
    if "temperature" in settings:
        raise SettingError("objective.temperature is the estimator's, and a schedule")
    try:
        default = estimator(name)
    except ValueError as error:
        raise SettingError(f"objective.estimator: {error}; or {LANGUAGE_MODEL}") from None
    try:
        estimator(name, **settings)
    except ValueError as error:
        raise SettingError(f"objective.estimator_settings: {error}") from None
    return {key: value for key, value in settings.items() if getattr(default, key) != value}


def settings_of_earlier_versions(objective: dict[str, Any]) -> dict[str, Any]:
    """The settings of an objective, with those that earlier versions had for every estimator.

    They go to the estimator, if they concern it, unless its own settings say otherwise.
    """
    own = dict(objective)
    older = {key.removesuffix("_baseline"): own.pop(key, None) for key in OLDER}
    default = ESTIMATORS.get(own.get("estimator", ""))
    if isinstance(default, Reinforce) and len(own) < len(objective):
        kept = {k: v for k, v in older.items() if v is not None and getattr(default, k)}
        own["estimator_settings"] = kept | own.get("estimator_settings", {})
    return own
