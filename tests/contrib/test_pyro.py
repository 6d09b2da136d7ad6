"""Pyro: every way to a gradient of the ELBO, against the exact one by enumeration.

Random tests have fixed seeds; a right estimator would fail `test_score_function` for about one
seed in 5,000 (Student's t with 24 degrees of freedom, beyond 5.5, for 8 and 12 numbers).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor
from torch.distributions import kl_divergence
from torch.testing import assert_close

from structdist import LinearChainCRF, SemiMarkovCRF
from tests.chains import seeded

pyro = pytest.importorskip("pyro")

from pyro import distributions as dist  # noqa: E402
from pyro.infer import SVI, Trace_ELBO, TraceEnum_ELBO, TraceMeanField_ELBO  # noqa: E402

from structdist.contrib.pyro import Discrete, Relaxed, StraightThrough  # noqa: E402

B, T, L, K = 2, 3, 2, 2
Structure = LinearChainCRF | SemiMarkovCRF


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=seeded(seed), dtype=torch.float64)


@pytest.fixture(autouse=True)
def _validation():
    pyro.enable_validation(True)
    pyro.clear_param_store()


@dataclass
class Problem:
    """A guide over paths with parameters, a prior, and observations that depend on the path."""

    structure: str

    def __post_init__(self) -> None:
        self.parameters = [normal(B, T, K, seed=0), normal(K, K, seed=1), normal(L, K, seed=2)]
        for parameter in self.parameters:
            parameter.requires_grad_()
        self.weights = normal(T, K, seed=4).requires_grad_()
        self.x = torch.tensor([[1.0, 0.0, 1.0]] * B).double()

    def build(self, emissions: Tensor, transitions: Tensor, durations: Tensor) -> Structure:
        if self.structure == "linear chain":
            return LinearChainCRF(emissions, transitions)
        return SemiMarkovCRF(emissions, transitions, durations)

    @property
    def posterior(self) -> Structure:
        return self.build(*self.parameters)

    @property
    def prior(self) -> Structure:
        return self.build(normal(T, K, seed=5), normal(K, K, seed=6), normal(L, K, seed=7))

    def likelihood(self, z: Tensor) -> dist.Distribution:
        """Of `x` [..., T], given events; those of segments as their first steps."""
        nodes = z if self.structure == "linear chain" else z.sum(-2)
        return dist.Bernoulli(logits=(nodes * self.weights).sum(-1)).to_event(1)

    def model(self, infer: dict | None = None) -> None:
        with pyro.plate("sentences", B):
            z = pyro.sample("z", Discrete(self.prior), infer=infer or {})
            pyro.sample("x", self.likelihood(z), obs=self.x)

    def guide(self, wrap: Callable, infer: dict | None = None) -> None:
        with pyro.plate("sentences", B):
            pyro.sample("z", wrap(self.posterior), infer=infer or {})

    def joint(self) -> tuple[Tensor, Tensor, Tensor]:
        """[P, B] each: log q(z), log p(z) and log p(x | z), of every z."""
        posterior = self.posterior
        z = posterior.enumerate_support()
        log_x = self.likelihood(z).log_prob(self.x)
        return posterior.log_prob(z), self.prior.expand((B,)).log_prob(z), log_x

    def elbo(self) -> Tensor:
        log_q, log_z, log_x = self.joint()
        return (log_q.exp() * (log_z + log_x - log_q)).sum()

    @property
    def leaves(self) -> list[Tensor]:
        return self.parameters if self.structure != "linear chain" else self.parameters[:2]


structures = pytest.mark.parametrize("structure", ["linear chain", "semi-Markov chain"])


# Gradients ------------------------------------------------------------------------------------


@structures
def test_score_function(structure: str):
    """Of draws without `rsample`: the mean of 25 estimates is within 5.5 standard errors."""
    pyro.set_rng_seed(0)
    problem = Problem(structure)
    elbo = Trace_ELBO(num_particles=200, vectorize_particles=True, max_plate_nesting=1)
    estimates = []
    for _ in range(25):
        loss = elbo.differentiable_loss(problem.model, lambda: problem.guide(Discrete))
        grads = torch.autograd.grad(-loss, problem.leaves)
        estimates.append(torch.cat([g.flatten() for g in grads]))
    found = torch.stack(estimates)
    exact = torch.cat([g.flatten() for g in torch.autograd.grad(problem.elbo(), problem.leaves)])
    errors = (found.mean(0) - exact).abs() / (found.std(0) / len(found) ** 0.5)
    assert errors.max() < 5.5


@structures
def test_enumeration_in_the_guide_is_exact(structure: str):
    problem = Problem(structure)
    elbo = TraceEnum_ELBO(max_plate_nesting=1)
    loss = elbo.differentiable_loss(
        problem.model, lambda: problem.guide(Discrete, {"enumerate": "parallel"})
    )
    assert_close(-loss, problem.elbo())
    found = torch.autograd.grad(-loss, problem.leaves)
    assert_close(found, torch.autograd.grad(problem.elbo(), problem.leaves))


@structures
def test_enumeration_in_the_model_is_the_evidence(structure: str):
    problem = Problem(structure)
    elbo = TraceEnum_ELBO(max_plate_nesting=1)
    loss = elbo.differentiable_loss(lambda: problem.model({"enumerate": "parallel"}), lambda: None)
    _, log_z, log_x = problem.joint()
    exact = (log_z + log_x).logsumexp(0).sum()
    assert_close(-loss, exact)
    by_weights = [torch.autograd.grad(value, problem.weights) for value in (-loss, exact)]
    assert_close(*by_weights)


@structures
@pytest.mark.parametrize("kind", [Relaxed, StraightThrough])
@pytest.mark.parametrize("elbo", [TraceMeanField_ELBO, Trace_ELBO])
def test_pathwise_is_what_one_would_write_by_hand(structure: str, kind: type, elbo: type):
    """With the exact divergence, or with log p(z) - log q(z) at the draw, as the ELBO has it."""
    problem = Problem(structure)
    pyro.set_rng_seed(0)
    loss = elbo().differentiable_loss(
        problem.model, lambda: problem.guide(lambda crf: kind(crf, 0.5))
    )
    pyro.set_rng_seed(0)
    q, p = kind(problem.posterior, 0.5), Discrete(problem.prior.expand((B,)))
    z = q.rsample()
    value = problem.likelihood(z).log_prob(problem.x).sum()
    if elbo is TraceMeanField_ELBO:
        value = value - kl_divergence(problem.posterior, problem.prior).sum()
    else:
        value = value + (p.log_prob(z) - q.log_prob(z)).sum()
    assert_close(-loss, value)
    found = torch.autograd.grad(-loss, problem.leaves)
    assert_close(found, torch.autograd.grad(value, problem.leaves))
    is_hard = ((z == 0) | (z == 1)).all().item()
    assert is_hard == (kind is StraightThrough)


@pytest.mark.parametrize("kind", [Relaxed, StraightThrough])
def test_a_site_with_rsample_refuses_enumeration(kind: type):
    """Pyro would answer, and be wrong."""
    problem = Problem("linear chain")
    guide = lambda: problem.guide(kind, {"enumerate": "parallel"})  # noqa: E731
    with pytest.raises(NotImplementedError, match="Discrete"):
        TraceEnum_ELBO(max_plate_nesting=1).differentiable_loss(problem.model, guide)


def test_chains_of_unequal_lengths_refuse_enumeration():
    crf = LinearChainCRF(torch.zeros(B, T, K), torch.zeros(K, K), torch.tensor([3, 1]))
    with pytest.raises(NotImplementedError, match="unequal lengths"):
        Discrete(crf).enumerate_support()


def test_svi_closes_in_on_the_evidence():
    """Parameters in Pyro's store, and its optimiser: half of the gap is gone in 30 steps."""
    problem = Problem("linear chain")
    emissions = problem.parameters[0].detach()

    def guide() -> None:
        crf = LinearChainCRF(pyro.param("emissions", emissions), torch.zeros(K, K).double())
        with pyro.plate("sentences", B):
            pyro.sample("z", Discrete(crf), infer={"enumerate": "parallel"})

    optimizer = pyro.optim.Adam({"lr": 0.1})
    svi = SVI(problem.model, guide, optimizer, TraceEnum_ELBO(max_plate_nesting=1))
    losses = [svi.step() for _ in range(30)]
    _, log_z, log_x = problem.joint()
    evidence = (log_z + log_x).logsumexp(0).sum().item()
    assert -losses[0] < -losses[-1] <= evidence
    assert evidence + losses[-1] < 0.5 * (evidence + losses[0])


# log_prob of relaxed events -------------------------------------------------------------------


def hard_case(name: str) -> Structure:
    """Forbidden moves, unequal lengths with NaN beyond them, start and end."""
    lengths = torch.tensor([0, 1] if name == "short" else [3, 2])
    forbid = torch.tensor([[0.0, -torch.inf], [0.3, 0.0]]).double()
    padding = (torch.arange(T) >= lengths.unsqueeze(-1)).unsqueeze(-1)
    emissions = normal(B, T, K, seed=0).masked_fill(padding, torch.nan)
    ends = {"start": normal(K, seed=1), "end": normal(B, K, seed=2)}
    if name != "segments":
        return LinearChainCRF(emissions, forbid, lengths, **ends)
    durations, segments = normal(L, K, seed=3), normal(B, T, L, K, seed=4)
    return SemiMarkovCRF(emissions, forbid, durations, lengths, segments=segments, **ends)


@pytest.mark.parametrize("case", ["chain", "short", "segments"])
def test_exact_events_have_their_log_prob(case: str):
    crf = hard_case(case)
    events = crf.sample((40,), generator=seeded(0))
    assert_close(Discrete(crf).log_prob(events), crf.log_prob(events))


def test_moves_that_vary_and_what_is_forbidden():
    crf = LinearChainCRF(normal(B, T, K, seed=0), normal(B, T - 1, K, K, seed=1))
    events = crf.enumerate_support()
    assert_close(Discrete(crf).log_prob(events), crf.log_prob(events))
    strict = LinearChainCRF(
        normal(T, K, seed=0), torch.tensor([[0.0, -torch.inf], [0.3, 0.0]]).double()
    )
    events = strict.enumerate_support()
    assert_close(Discrete(strict).log_prob(events), strict.log_prob(events))
    assert (Discrete(strict).log_prob(events) == -torch.inf).any()


@structures
def test_log_prob_is_linear_in_each_row(structure: str):
    """So its gradient at an exact event knows of the others."""
    crf = Problem(structure).prior
    unchecked = Discrete(crf, validate_args=False)  # segments with a row exchanged do not tile
    z = crf.rsample((3,), temperature=0.7).detach()
    one, other, between = z.clone(), z.clone(), z.clone()
    one[:, 1], other[:, 1] = z[:, 0], z[:, 2]
    between[:, 1] = 0.25 * z[:, 0] + 0.75 * z[:, 2]
    expected = 0.25 * unchecked.log_prob(one) + 0.75 * unchecked.log_prob(other)
    assert_close(unchecked.log_prob(between), expected)


def test_relaxed_draws_pass_validation_and_other_rows_do_not():
    crf = LinearChainCRF(torch.zeros(T, K), torch.zeros(K, K))
    site = Discrete(crf, validate_args=True)
    assert site.log_prob(Relaxed(crf, 0.5).rsample()).isfinite()
    with pytest.raises(ValueError, match="value must lie in"):
        site.log_prob(torch.ones(T, K))
    kinds = Discrete(crf), StraightThrough(crf), Relaxed(crf)
    assert [kind.support.is_discrete for kind in kinds] == [True, True, False]


# Shapes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Discrete, Relaxed, StraightThrough])
def test_plates_masks_and_events(kind: type):
    crf = LinearChainCRF(normal(T, K, seed=0), normal(K, K, seed=1))
    mask = torch.tensor([True, False, True, True])  # of the inner plate

    def model() -> None:
        with pyro.plate("outer", 5), pyro.plate("inner", 4):
            pyro.sample("plain", kind(crf))
            pyro.sample("masked", kind(crf).mask(mask.unsqueeze(-1)))
        pyro.sample("events", kind(crf).expand((2, 3)).to_event(2))

    trace = pyro.poutine.trace(model).get_trace()
    trace.compute_log_prob()
    nodes = trace.nodes
    assert nodes["plain"]["value"].shape == (4, 5, T, K)
    assert ((nodes["masked"]["log_prob"] == 0) == ~mask.unsqueeze(-1)).all()
    assert nodes["events"]["value"].shape == (2, 3, T, K)
    assert nodes["events"]["log_prob"].shape == ()
    again = kind(crf).expand((3,)).log_prob(nodes["plain"]["value"][0, :3])
    assert_close(again, kind(crf).log_prob(nodes["plain"]["value"][0, :3]))


def test_temperatures_expand():
    temperature = torch.tensor([0.1, 10.0], dtype=torch.float64)
    crf = LinearChainCRF(normal(2, T, K, seed=0), normal(K, K, seed=1))
    wide = Relaxed(crf, temperature).expand((4, 2))
    assert wide.drawn.temperature.shape == (4, 2)
    assert wide.rsample((3,)).shape == (3, 4, 2, T, K)


def test_without_pyro_the_import_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "pyro", None)
    monkeypatch.delitem(sys.modules, "structdist.contrib.pyro")
    with pytest.raises(ImportError, match=r'pip install "structdist\[pyro\]"'):
        importlib.import_module("structdist.contrib.pyro")
