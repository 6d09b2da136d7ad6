"""Hard cases: the truth they are held to, what is found out, and the page of results."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from typer.testing import CliRunner

from benchmarks.commands import app
from benchmarks.faults.cases import CASES, forbidden, likelihood
from benchmarks.faults.contenders import CONTENDERS, STRUCTDIST
from benchmarks.faults.outcomes import Outcome, close, follows, is_zero, outcome_of
from benchmarks.faults.problems import identical_chains, random_problem, truth_of
from benchmarks.faults.tables import fault_tables
from benchmarks.results import load
from benchmarks.tables import markdown
from structdist import LinearChainCRF

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


def test_the_truth_is_that_of_a_chain_in_float64():
    """With a forbidden move, and with lengths down to 0."""
    problem = replace(forbidden(-torch.inf), lengths=torch.tensor([6, 1, 0])).to(torch.float64)
    leaves = problem.leaves()
    dist = LinearChainCRF(leaves.emissions, leaves.transitions, problem.lengths)
    log_likelihood, exact = dist.log_prob(problem.tags), truth_of(problem)
    assert_close(exact.log_likelihood, log_likelihood.detach())
    assert_close(exact.entropy, dist.entropy().detach())
    grads = torch.autograd.grad(log_likelihood.sum(), [leaves.emissions, leaves.transitions])
    assert_close([exact.by_emissions, exact.by_transitions], list(grads))


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda x: x, "right"),
        (lambda x: x + 1.0, "wrong: off by"),
        (lambda x: x * torch.nan, "NaN"),
        (lambda x: x[:1], "wrong: shape"),
        (lambda x: x.undefined, "error: AttributeError"),
    ],
)
def test_what_is_wrong_is_found_out(change, expected: str):
    ask = likelihood(random_problem())["log likelihood"]
    liar = replace(STRUCTDIST, log_likelihood=lambda p: change(STRUCTDIST.log_likelihood(p)))
    assert str(outcome_of(lambda: ask(liar))).startswith(expected)


def test_infinities_agree_and_other_numbers_are_compared():
    exact = torch.tensor([-torch.inf, 2.0])
    assert close(exact.clone(), exact, 1e-6) == Outcome("right")
    assert close(torch.tensor([-1.0, 2.0]), exact, 1e-6).kind == "wrong"


def test_shared_noise_and_gradients_of_nothing_are_found_out():
    problem = identical_chains(count=500)
    shared = STRUCTDIST.sample(identical_chains(count=1)).expand(500, -1, -1)
    probabilities = LinearChainCRF(problem.emissions[0], problem.transitions)
    weights = probabilities.log_prob(probabilities.enumerate_support()).exp().double()
    assert "1 distinct draws" in follows(shared, weights).detail
    assert is_zero(torch.zeros(3)).kind == "right"
    assert is_zero(torch.ones(3)) == Outcome("wrong", "up to 1, not 0")


def test_structdist_is_right_in_every_case():
    result = CliRunner().invoke(app, ["faults", "--quick", "--contender", "structdist"])
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if ", structdist: " in line]
    assert len(lines) > len(CASES)
    assert [line for line in lines if not line.endswith(": right")] == []


def test_the_page_has_the_tables_of_the_results():
    results = load(BENCHMARKS / "results" / "faults.json")
    assert {row["contender"] for row in results.rows} == {c.name for c in CONTENDERS}
    for table in fault_tables(results):
        assert markdown(table).strip() in (BENCHMARKS / "FAULTS.md").read_text()
