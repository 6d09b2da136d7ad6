"""What the forward pass keeps."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.semi_markov.backtrack import Prefixes
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.semirings import softmax


class Filtered(NamedTuple):
    """The forward state. Log weights are float64, less the norms of all steps up to theirs."""

    ends: Tensor  # [N, T, K]: of all that ends with a segment of a label whose last step is t
    begins: Tensor  # [N, T, K]: of all that may stand before a segment of a label from t on
    norms: Tensor  # [N, T]
    weights: Tensor  # [N, T, K]: exp of `ends`, the largest of each step 1
    incoming: Tensor  # [N, T, K]: scaled sums over the labels before; step 0 is anything
    log_z: Tensor  # [N]


def prefixes_of(chain: SemiMarkovChain, filtered: Filtered) -> Prefixes:
    """What back-tracking and sweeps look at, of a chain without its padding."""
    emissions, transitions, segments, lengths = chain
    steps = emissions - filtered.norms.unsqueeze(-1)  # float64
    return Prefixes(filtered.ends, filtered.begins, steps, transitions, segments, lengths)


def at_last_step(filtered: Filtered, lengths: Tensor, grad_log_z: Tensor) -> Tensor:
    """[N, T, K]: the gradient of log Z with respect to `ends` at the last step of each chain."""
    num_steps = filtered.ends.shape[1]
    is_last = torch.arange(num_steps, device=lengths.device) == lengths[:, None] - 1
    last = softmax(at_step(filtered.ends, lengths - 1), -1) * grad_log_z[:, None]
    return (is_last.unsqueeze(-1) * last.unsqueeze(1)).to(filtered.weights.dtype)


def at_step(x: Tensor, step: Tensor) -> Tensor:
    """[N, K]: of [N, T, K], the entries at one step [N] of each chain, or at the first."""
    index = step.clamp(min=0)[:, None, None].expand(-1, 1, x.shape[-1])
    return x.gather(1, index).squeeze(1)
