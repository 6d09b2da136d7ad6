"""How much estimates of one gradient differ from each other."""

from __future__ import annotations

from torch import Tensor


def log_variance_ratio(gradients: Tensor) -> float:
    """Of independent estimates `[N, D]`: the mean over coordinates of `log(Var / |mean|)`.

    Section 5.1 of Fu et al. (2020). A coordinate that never changes, such as the embedding of a
    word that no draw met, or whose mean is 0, has no such ratio and is left out; if all are, the
    answer is NaN. It depends on the scale of the reward: compare estimates of one gradient alone.

    Example:
        >>> import torch
        >>> from structdist.estimators import log_variance_ratio
        >>> round(log_variance_ratio(torch.tensor([[1.0, 5.0], [3.0, 5.0]])), 3)  # log(2 / 2)
        0.0
    """
    variance, mean = gradients.double().var(0), gradients.double().mean(0)
    moving = (variance > 0) & (mean != 0)
    if not moving.any():
        return float("nan")
    return float((variance[moving].log() - mean[moving].abs().log()).mean())
