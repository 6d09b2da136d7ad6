"""Kernels in Triton, for CUDA and ROCm: the algorithms of `rescaled`, one launch a sweep.

A program has one chain, and keeps the exp of its transitions in registers; chains that underflow,
and all those whose transitions do not fit there or vary with time, are done in log space by the
same launch. Nothing here waits for the device, and nothing is added up by atomics: results are the
same from run to run.
"""

from __future__ import annotations

from structdist.ops.chain import Chain
from structdist.ops.reference import k_best
from structdist.ops.scoring import path_scores, path_scores_adjoint
from structdist.ops.triton.best_path import relaxed_viterbi, relaxed_viterbi_adjoint, viterbi
from structdist.ops.triton.draws import gumbel_ffbs, gumbel_ffbs_adjoint, sample_paths
from structdist.ops.triton.expectations import (
    entropy,
    entropy_adjoint,
    expectation,
    expectation_adjoint,
)
from structdist.ops.triton.filtering import (
    filter,
    log_partition,
    log_partition_adjoint,
    marginals,
)
from structdist.ops.triton.launching import (
    MOST_STATES,
    Launch,
    missing,
    recorded_launches,
    unfit_device,
)
from structdist.ops.triton.state import Filtered

__all__ = [
    "NAME",
    "Filtered",
    "Launch",
    "entropy",
    "entropy_adjoint",
    "expectation",
    "expectation_adjoint",
    "filter",
    "gumbel_ffbs",
    "gumbel_ffbs_adjoint",
    "k_best",
    "log_partition",
    "log_partition_adjoint",
    "marginals",
    "path_scores",
    "path_scores_adjoint",
    "recorded_launches",
    "relaxed_viterbi",
    "relaxed_viterbi_adjoint",
    "sample_paths",
    "unsupported",
    "viterbi",
]

NAME = "triton"


def unsupported(chain: Chain) -> str | None:
    """It serves CUDA and ROCm tensors of up to 1024 states, where Triton is installed."""
    reason = unfit_device(chain.emissions.device) or missing()
    num_states = chain.emissions.shape[2]
    if reason is None and num_states > MOST_STATES:
        return f"it serves up to {MOST_STATES} states, not {num_states}"
    return reason
