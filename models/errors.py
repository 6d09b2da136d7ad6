"""What can go wrong, in words for the user."""

from __future__ import annotations


class SettingError(ValueError):
    """A setting that makes no sense."""


class RunError(ValueError):
    """A run folder that does not fit what is asked."""


class TrainingDivergedError(RuntimeError):
    """The loss is no number any more; says what to do."""

    def __init__(self, step: int, loss: float, gradient_norm: float) -> None:
        super().__init__(
            f"training diverged at step {step}: loss {loss}, gradient norm {gradient_norm}. Start "
            "a new run with a smaller training.learning_rate or training.clip, a higher "
            "objective.temperature, or --precision 32-true; this one, resumed, would do the same."
        )
