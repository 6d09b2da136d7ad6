"""Estimators of the gradient of E[f(z)], for every structure: one interface, one file an idea.

    from structdist.estimators import Reinforce

    estimate = Reinforce(num_samples=5, leave_one_out=True).estimate(dist, reward)
    (-estimate.surrogate).backward()  # gradients for dist's parameters and the reward's own

A reward takes events `[S, *B, *event_shape]` and gives `[S, *B]`. The value of the surrogate is the
mean reward over draws and batch; `estimate.rewards` and `estimate.draws` are for logs, and
`dist.entropy()` shares the forward pass of the draws.
"""

from structdist.estimators.estimator import Estimate, Estimator, Reward
from structdist.estimators.registry import ESTIMATORS, estimator
from structdist.estimators.score_function import Reinforce
from structdist.estimators.through_draws import GumbelCRF, PerturbAndMAP

__all__ = [
    "ESTIMATORS",
    "Estimate",
    "Estimator",
    "GumbelCRF",
    "PerturbAndMAP",
    "Reinforce",
    "Reward",
    "estimator",
]
