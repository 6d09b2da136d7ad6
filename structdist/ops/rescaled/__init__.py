"""The fast recurrences in plain torch, for every device: sums over states as matrix products.

With `P` the weights of prefixes by their last state (the largest is 1) and `E` the exp of the
transitions, each column scaled to have 1 as its largest entry, the mass that comes into state j is
`q_j = sum_i P_i E_ij`, and

    P_{t+1}(j) = q_j exp(emission_{t+1}(j) + peak_j - shift_{t+1}) / norm_{t+1},

where the shift is the largest of these exponents, and the norm the largest of these products.
Exponents are float64 up to their exp, so that large scores do not eat small differences.

Why this is as good as log-sum-exp: a term of the sum is lost only where P_i, E_ij or their product
is below the least normal number (1.2e-38 in float32), for P_i that is before its norm divides it.
All entries are at most 1, so what is lost is less than K times that, over the norm where it is
below 1. Where `q_j * min(norm, 1) > TRUST` (1e-20), this is less than K * 1.2e-18 of q_j, far below
one rounding error. Where it is not, something *underflowed*: then the whole pass is done again on
logs of weights in float64, whose exp is made anew for each product, and columns with
`q_j <= TRUST` as log-sum-exp.

What devices wait for is not numbers but one operation after the other. Hence a step is a matrix
product and a few operations on rows; what does not wait for the step before (exponentials, norms in
log space, gradients of transitions, the softmax of draws) is done for all steps at once.

Adjoints follow `w_ij = P_i E_ij / q_j`, the probability of i given j after it (`conditionals.py`);
see the equations in csrc/filter.cpp and csrc/expect.cpp, the compiled twins.
"""

from structdist.ops.chain import Chain
from structdist.ops.reference import k_best
from structdist.ops.rescaled.backtrack import gumbel_ffbs, gumbel_ffbs_adjoint, sample_paths
from structdist.ops.rescaled.best_path import relaxed_viterbi, relaxed_viterbi_adjoint, viterbi
from structdist.ops.rescaled.expectations import (
    entropy,
    entropy_adjoint,
    expectation,
    expectation_adjoint,
)
from structdist.ops.rescaled.filtering import (
    filter,
    log_partition,
    log_partition_adjoint,
    marginals,
)
from structdist.ops.scoring import path_scores, path_scores_adjoint

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

NAME = "rescaled"


def unsupported(chain: Chain) -> str | None:
    """Numbers are needed, to see where products underflow."""
    return "meta tensors hold no numbers" if chain.emissions.is_meta else None
