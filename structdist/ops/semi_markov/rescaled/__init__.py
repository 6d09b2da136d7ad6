"""The fast recurrences of semi-Markov chains in plain torch, for every device.

With the names of `reference.py`, all log weights less the norms of the steps so far:

    W_t(s, k) = W_{t-1}(s, k) + emission_t(k) - norm_t        (from W_{s-1}(s, k) = begins_s(k))
    ends_t(k) = log sum over s of exp(W_t(s, k) + score of the segment from s to t)
    begins_{t+1}(k) = log q_k + peaks,    q_k = sum over i of P_i E_ik

`norm_t` is the largest entry of W_t, so that what is unfinished stays near 0 however far scores
grow, and what ends with step t may be as unlikely as it is. P is the exp of `ends_t`, largest 1,
and E that of the transitions, each column scaled to have 1 as its largest entry: the sum over
labels is a matrix product. Where q_k is below `TRUST` the sum is redone in log space; above, what
underflowed in it is less than K * 1.2e-18 of it. Sums over lengths are log-sum-exps with a peak for
each label, which cannot underflow. A step takes W_t for all segments that it may end, O(N L K), and
no two of these are kept: a sweep back builds each of them anew from `begins`.
"""

from structdist.ops.semi_markov.k_best import k_best
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.rescaled.best_path import (
    relaxed_viterbi,
    relaxed_viterbi_adjoint,
    viterbi,
)
from structdist.ops.semi_markov.rescaled.draws import (
    gumbel_ffbs,
    gumbel_ffbs_adjoint,
    sample_paths,
)
from structdist.ops.semi_markov.rescaled.expectations import (
    entropy,
    entropy_adjoint,
    expectation,
    expectation_adjoint,
)
from structdist.ops.semi_markov.rescaled.filtering import (
    filter,
    log_partition,
    log_partition_adjoint,
    marginals,
)
from structdist.ops.semi_markov.scoring import path_scores, path_scores_adjoint

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


def unsupported(chain: SemiMarkovChain) -> str | None:
    """Numbers are needed, to see where products underflow."""
    return "meta tensors hold no numbers" if chain.emissions.is_meta else None
