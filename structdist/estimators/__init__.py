"""Estimators of the gradient of E[f(z)], for every structure: one interface, one file an idea.

    from structdist.estimators import estimator

    estimate = estimator("reinforce-ms", num_samples=5).estimate(dist, reward)
    (-estimate.surrogate).backward()  # gradients for dist's parameters and for the reward's own

A reward takes events `[S, *B, *event_shape]` and gives `[S, *B]`. The value of the surrogate is the
mean reward over draws and batch; `estimate.rewards` and `estimate.draws` are for logs, and
`dist.entropy()` shares the forward pass of the draws.

S is `num_samples`, and a sweep a pass over the structure, O(T K^2) for a chain. Reward calls count
batches `[S, *B]`; those marked ' take the gradient of the reward by its events as well.

| name             | class               | biased?              | f'? | reward calls | sweeps     |
| ---------------- | ------------------- | -------------------- | --- | ------------ | ---------- |
| gumbel-crf       | `GumbelCRF`         | yes                  | yes | 1'           | 1          |
| gumbel-crf-st    | `GumbelCRF`         | yes                  | yes | 1'           | 1          |
| pm-mrf           | `PerturbAndMAP`     | yes, its draws too   | yes | 1'           | S          |
| pm-mrf-st        | `PerturbAndMAP`     | yes, its draws too   | yes | 1'           | S          |
| reinforce        | `Reinforce`         | no                   | no  | 1            | 1          |
| reinforce-c      | `Reinforce`         | no                   | no  | 1            | 1          |
| reinforce-ms     | `Reinforce`         | no                   | no  | 1            | 1          |
| reinforce-ms-c   | `Reinforce`         | no                   | no  | 1            | 1          |
| gumbel-rao       | `GumbelRao`         | like gumbel-crf-st   | yes | 1'           | 1          |
| reinmax          | `ReinMax`           | yes                  | yes | 1'           | 1          |
| simple           | `ThroughMarginals`  | unless f is linear   | yes | 1'           | 1          |
| sst              | `StochasticSoftmax` | yes, its draws too   | yes | 1'           | S          |
| sst-st           | `StochasticSoftmax` | yes, its draws too   | yes | 1'           | 2 S        |
| imle             | `IMLE`              | yes, its draws too   | yes | 1'           | 2 S        |
| imle-exact-draws | `IMLE`              | yes                  | yes | 1'           | 1 + S      |
| aimle            | `IMLE`              | yes, its draws too   | yes | 1'           | 2 S        |
| muprop           | `MuProp`            | no                   | yes | 1, and a 1/S'| 1          |
| exact            | `Exact`             | no, nor any variance | no  | P outcomes   | the P best |

"rloo" and "vargrad" are other names of "reinforce-ms". Papers and settings are with each class.
What a driver asks (does it need f', is it unbiased, which settings has it, how many samples at
least) are attributes of `Estimator`.
"""

from structdist.estimators.estimator import Estimate, Estimator, Reward
from structdist.estimators.exact import Exact
from structdist.estimators.gumbel_rao import GumbelRao
from structdist.estimators.implicit_mle import IMLE, AdaptiveStep
from structdist.estimators.muprop import MuProp
from structdist.estimators.registry import ESTIMATORS, SYNONYMS, estimator
from structdist.estimators.reinmax import ReinMax
from structdist.estimators.score_function import Reinforce
from structdist.estimators.stochastic_softmax import StochasticSoftmax
from structdist.estimators.through_draws import GumbelCRF, PerturbAndMAP
from structdist.estimators.through_marginals import ThroughMarginals
from structdist.estimators.variance import log_variance_ratio

__all__ = [
    "ESTIMATORS",
    "IMLE",
    "SYNONYMS",
    "AdaptiveStep",
    "Estimate",
    "Estimator",
    "Exact",
    "GumbelCRF",
    "GumbelRao",
    "MuProp",
    "PerturbAndMAP",
    "ReinMax",
    "Reinforce",
    "Reward",
    "StochasticSoftmax",
    "ThroughMarginals",
    "estimator",
    "log_variance_ratio",
]
