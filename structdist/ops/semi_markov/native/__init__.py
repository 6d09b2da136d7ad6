"""The compiled kernels of semi-Markov chains (ops/native/csrc/segment_*.cpp), on the CPU.

They share the forms of their forward state, and of what adjoints want to know again, with
`rescaled`, which finds the k best.
"""

from structdist.ops.semi_markov.native import arguments
from structdist.ops.semi_markov.native.best_path import (
    relaxed_viterbi,
    relaxed_viterbi_adjoint,
    viterbi,
)
from structdist.ops.semi_markov.native.draws import gumbel_ffbs, gumbel_ffbs_adjoint, sample_paths
from structdist.ops.semi_markov.native.expectations import (
    entropy,
    entropy_adjoint,
    expectation,
    expectation_adjoint,
)
from structdist.ops.semi_markov.native.filtering import filter, log_partition_adjoint, marginals
from structdist.ops.semi_markov.native.paths import path_scores, path_scores_adjoint
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.rescaled import k_best, log_partition

__all__ = [
    "NAME",
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

NAME = "native"


def unsupported(chain: SemiMarkovChain) -> str | None:
    """It serves CPU tensors, where it was built."""
    if arguments.misfit is not None:
        return arguments.misfit
    device = chain.emissions.device.type
    return None if device == "cpu" else f"it serves CPU tensors, not {device}"
