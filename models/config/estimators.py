"""What a run says of the settings of its estimator."""

from __future__ import annotations

from typing import Any

from models.config import LANGUAGE_MODEL
from models.errors import SettingError
from structdist.estimators import ESTIMATORS, Reinforce, estimator

OLDER_NAMES = {  # of settings of an objective, and what they are of the estimator
    "num_samples": "num_samples",
    "constant_baseline": "constant",
    "reward_scale": "reward_scale",
}


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
    own = {key: value for key, value in objective.items() if key not in OLDER_NAMES}
    default = ESTIMATORS.get(objective.get("estimator", ""))
    if len(own) < len(objective) and isinstance(default, Reinforce):
        older = {new: objective.get(old) for old, new in OLDER_NAMES.items()}
        kept = {k: v for k, v in older.items() if v is not None and getattr(default, k)}
        own["estimator_settings"] = kept | dict(own.get("estimator_settings", {}))
    return own
