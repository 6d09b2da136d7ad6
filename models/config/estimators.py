"""Estimators by their name, and what a run says of the settings of its own."""

from __future__ import annotations

from typing import Any

from models.config import LANGUAGE_MODEL
from models.errors import SettingError
from structdist.estimators import ESTIMATORS, Reinforce, estimator

ESTIMATOR_NAMES = (LANGUAGE_MODEL, *ESTIMATORS)


def changed_settings(name: str, settings: dict[str, Any]) -> dict[str, Any]:
    """The settings that are not the estimator's defaults: equal runs say equal things.

    An estimator or a setting that there is not, or a value that it does not take, is an error.
    """
    if name not in ESTIMATOR_NAMES:
        known = ", ".join(ESTIMATOR_NAMES)
        raise SettingError(f"objective.estimator must be one of {known}, not {name}")
    if name == LANGUAGE_MODEL:
        if settings:
            raise SettingError(f"objective.estimator_settings: {name} has none")
        return {}
    if "temperature" in settings:
        raise SettingError("objective.temperature is the estimator's, and a schedule")
    try:
        estimator(name, **settings)
    except ValueError as error:
        raise SettingError(f"objective.estimator_settings: {error}") from None
    return {
        key: value for key, value in settings.items() if getattr(ESTIMATORS[name], key) != value
    }


def of_reinforce(
    name: str, num_samples: int | None, constant: float | None, reward_scale: float | None
) -> dict[str, Any]:
    """Settings as earlier versions had them for every run, those that concern the estimator."""
    known = ESTIMATORS.get(name)
    if not isinstance(known, Reinforce):
        return {}
    older = {"num_samples": num_samples, "reward_scale": reward_scale}
    if known.constant:
        older["constant"] = constant
    return {key: value for key, value in older.items() if value is not None}
