"""The fast recurrences in plain torch, for every device: sums over states as matrix products.

With `P = exp(log_alpha_t)` (largest entry 1) and `E` the exp of the transitions, each column scaled
to have 1 as its largest entry, the mass that arrives in state j is `q_j = sum_i P_i E_ij`, and

    log_alpha_{t+1}(j) = log q_j + peak_j + emission_{t+1}(j) - log_norm_{t+1}.

Why this is as good as log-sum-exp: a term of the sum is lost only where P_i, E_ij or their product
is below the least normal number (1.2e-38 in float32), and all entries are at most 1, so what is
lost is less than K times that. Where `q_j >= TRUST` (1e-20), it is less than K * 1.2e-18 of q_j,
far below one rounding error. Where it is not, the column is *doubtful* and redone in log space.
Log weights are float64 throughout, so that large scores do not eat small differences.

Adjoints follow `w_ij = P_i E_ij / q_j`, the probability of i given j after it; see the equations in
csrc/filter.cpp and csrc/expect.cpp, the compiled twins.
"""

from structdist.ops.rescaled.backtrack import gumbel_ffbs, gumbel_ffbs_adjoint, sample_paths
from structdist.ops.rescaled.best_path import relaxed_viterbi, relaxed_viterbi_adjoint, viterbi
from structdist.ops.rescaled.expectations import expect, expect_adjoint
from structdist.ops.rescaled.filtering import filter, filter_adjoint

__all__ = [
    "expect",
    "expect_adjoint",
    "filter",
    "filter_adjoint",
    "gumbel_ffbs",
    "gumbel_ffbs_adjoint",
    "relaxed_viterbi",
    "relaxed_viterbi_adjoint",
    "sample_paths",
    "viterbi",
]
