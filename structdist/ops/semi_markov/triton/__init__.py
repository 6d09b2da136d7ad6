"""Kernels in Triton for semi-Markov chains, on CUDA and ROCm: one launch a sweep.

The kernels stand beside those of linear chains (ops/triton/kernels/segment_*.py), and so do their
rules: a program has one chain, nothing here waits for the device, and nothing is added up by
atomics.
"""

from __future__ import annotations

from structdist.ops import triton as linear
from structdist.ops.semi_markov.k_best import k_best
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.scoring import path_scores, path_scores_adjoint
from structdist.ops.semi_markov.triton.best_path import (
    relaxed_viterbi,
    relaxed_viterbi_adjoint,
    viterbi,
)
from structdist.ops.semi_markov.triton.draws import gumbel_ffbs, gumbel_ffbs_adjoint, sample_paths
from structdist.ops.semi_markov.triton.expectations import (
    entropy,
    entropy_adjoint,
    expectation,
    expectation_adjoint,
)
from structdist.ops.semi_markov.triton.filtering import (
    filter,
    log_partition,
    log_partition_adjoint,
    marginals,
)
from structdist.ops.semi_markov.triton.state import Filtered, moves_of

__all__ = [
    "NAME",
    "Filtered",
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
    "relaxed_viterbi",
    "relaxed_viterbi_adjoint",
    "sample_paths",
    "unsupported",
    "viterbi",
]

NAME = "triton"
MOST_LENGTHS = 1024  # that are chosen among by one program


def unsupported(chain: SemiMarkovChain) -> str | None:
    """It serves what the kernels of linear chains do, with segments of up to 1024 steps."""
    reason = linear.unsupported(moves_of(chain))
    if reason is None and chain.longest > MOST_LENGTHS:
        return f"it serves segments of up to {MOST_LENGTHS} steps, not {chain.longest}"
    return reason
