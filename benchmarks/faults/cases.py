"""The hard cases. Each asks some questions of a contender, whose answers are held to the truth.

Scores are normal, in float32 unless the case says otherwise; tolerances leave room for rounding in
log space. A library that does not offer a thing is not asked for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from benchmarks.faults.contenders import Contender
from benchmarks.faults.outcomes import (
    NOT_OFFERED,
    RIGHT,
    WRONG,
    Outcome,
    close,
    follows,
    is_zero,
)
from benchmarks.faults.problems import Problem, identical_chains, random_problem, truth_of

TOLERANCE = 1e-3
HALF_TOLERANCE = 2e-2  # a bfloat16 has less than three digits
LONG = 100_000

Ask = Callable[[Contender], Outcome]
Questions = dict[str, Ask]


@dataclass(frozen=True)
class Case:
    name: str
    about: str
    questions: Callable[[], Questions]


# Questions -------------------------------------------------------------------------------------


def likelihood(problem: Problem, tolerance: float = TOLERANCE) -> Questions:
    """Of the tags, and its gradient by all scores: what a tagger is trained with."""
    exact = truth_of(problem)

    def value(contender: Contender) -> Outcome:
        return close(contender.log_likelihood(problem.leaves()), exact.log_likelihood, tolerance)

    def gradient(contender: Contender) -> Outcome:
        grads = gradients(contender.log_likelihood, problem)
        by_emissions = close(grads[0], exact.by_emissions, tolerance)
        by_transitions = close(grads[1], exact.by_transitions, tolerance)
        return by_emissions if by_emissions.kind != RIGHT else by_transitions

    return {"log likelihood": value, "its gradient": gradient}


def entropy(problem: Problem) -> Questions:
    """Its value, and that its gradient is finite."""
    exact = truth_of(problem).entropy

    def value(contender: Contender) -> Outcome:
        return close(contender.entropy(problem.leaves()), exact, TOLERANCE)

    def gradient(contender: Contender) -> Outcome:
        grads = gradients(contender.entropy, problem)
        return Outcome(RIGHT) if all(g.isfinite().all() for g in grads) else Outcome("NaN")

    return {
        "entropy": offered("entropy", value),
        "gradient of the entropy, finite": offered("entropy", gradient),
    }


def gradients(question: Callable[[Problem], Tensor], problem: Problem) -> tuple[Tensor, ...]:
    leaves = problem.leaves()
    total = question(leaves).sum()
    scores = [leaves.emissions, leaves.transitions]
    return torch.autograd.grad(total, scores, materialize_grads=True)


def offered(name: str, ask: Ask) -> Ask:
    """The same question of those who offer it."""
    return lambda contender: (
        Outcome(NOT_OFFERED) if getattr(contender, name) is None else ask(contender)
    )


# Cases -----------------------------------------------------------------------------------------


def forbidden(score: float) -> Problem:
    """One move has this score; the tags do not make it."""
    problem = random_problem()
    transitions = problem.transitions.clone()
    transitions[0, 1] = score
    tags = torch.where(problem.tags == 1, 2, problem.tags)
    return replace(problem, transitions=transitions, tags=tags)


def one_infinity() -> Questions:
    problem = forbidden(-torch.inf)
    return {**likelihood(problem), **entropy(problem)}


def smallest_float() -> Questions:
    """Of a move; and of a move and a state, whose sum is below all floats."""
    smallest = torch.finfo(torch.float32).min
    of_move = forbidden(smallest)
    emissions = of_move.emissions.clone()
    emissions[..., 3] = smallest
    of_both = replace(of_move, emissions=emissions, tags=of_move.tags.clamp(max=2))
    questions: Questions = {}
    for name, problem in (("a move", of_move), ("a move and a state", of_both)):
        asked = {**likelihood(problem), **entropy(problem)}
        questions |= {f"{question}, {name}": ask for question, ask in asked.items()}
    return questions


def single_node() -> Questions:
    """With a score of 0, which every library can say, and with scores of its own."""
    problem = replace(random_problem(batch=2), lengths=torch.tensor([6, 1]))

    def ask(contender: Contender) -> Outcome:
        if not contender.single_nodes:
            return Outcome(NOT_OFFERED)
        exact = truth_of(problem).log_likelihood
        return close(contender.log_likelihood(problem), exact, TOLERANCE)

    return {**beside_a_long_one(1), "log likelihood, scores of the node": ask}


def beside_a_long_one(length: int) -> Questions:
    """A chain without scores of nodes beside one with them, and the gradient of the latter."""
    problem = random_problem(batch=2)
    emissions = problem.emissions.clone()
    emissions[1] = 0.0
    problem = replace(problem, emissions=emissions, lengths=torch.tensor([6, length]))
    exact = truth_of(problem)

    def value(contender: Contender) -> Outcome:
        return close(contender.log_likelihood(problem), exact.log_likelihood, TOLERANCE)

    def gradient(contender: Contender) -> Outcome:
        found, _ = gradients(contender.log_likelihood, problem)
        return close(found[0], exact.by_emissions[0], TOLERANCE)

    return {"log likelihood": value, "gradient of its neighbour": gradient}


def padding() -> Questions:
    """NaN beyond the lengths; and labels of -100 there, as tokenizers leave them."""
    problem = replace(random_problem(), lengths=torch.tensor([6, 3, 2]))
    beyond = torch.arange(6) >= problem.lengths.unsqueeze(-1)
    spoilt = problem.emissions.masked_fill(beyond.unsqueeze(-1), torch.nan)
    labelled = problem.tags.masked_fill(beyond, -100)
    exact = truth_of(problem)

    def of_labels(contender: Contender) -> Outcome:
        found = contender.log_likelihood(replace(problem, tags=labelled))
        return close(found, exact.log_likelihood, TOLERANCE)

    with_nan = likelihood(replace(problem, emissions=spoilt))
    return {f"{name}, NaN in the padding": ask for name, ask in with_nan.items()} | {
        "log likelihood, labels of -100 in the padding": of_labels
    }


def long_chain(length: int = LONG) -> Questions:
    return likelihood(random_problem(batch=1, length=length, states=2))


def large_scores() -> Questions:
    problem = random_problem(scale=1e4)
    return {**likelihood(problem), **entropy(problem)}


def identical() -> Questions:
    """Each must have a draw of its own."""
    problem = identical_chains()
    return {
        "exact draws": offered("sample", lambda c: follows(c.sample(problem), _paths(problem))),
        "straight-through draws": offered(
            "relaxed", lambda c: follows(c.relaxed(problem), _paths(problem))
        ),
    }


def _paths(problem: Problem) -> Tensor:
    """[K^T]: the probabilities of all paths of the first chain, the last step fastest."""
    _, num_steps, num_states = problem.emissions.shape
    every = torch.cartesian_prod(*[torch.arange(num_states)] * num_steps)
    emissions, transitions = problem.emissions[0].double(), problem.transitions.double()
    nodes = emissions[torch.arange(num_steps), every].sum(-1)
    return (nodes + transitions[every[:, :-1], every[:, 1:]].sum(-1)).softmax(0)


def constant_reward() -> Questions:
    """Rows sum to one whatever the scores: so the gradient of their sum is 0."""
    problem = random_problem()

    def gradient(contender: Contender) -> Outcome:
        torch.manual_seed(0)
        return is_zero(torch.cat([g.flatten() for g in gradients(contender.relaxed, problem)]))

    return {"gradient of straight-through draws": offered("relaxed", gradient)}


def half_precision() -> Questions:
    questions: Questions = {}
    for dtype in (torch.bfloat16, torch.float16):
        name = str(dtype).removeprefix("torch.")
        rounded = random_problem(length=50).to(dtype)
        found = likelihood(rounded, HALF_TOLERANCE)
        questions |= {f"{question}, {name}": ask for question, ask in found.items()}
        chains = identical_chains().to(dtype)
        questions[f"exact draws, {name}"] = offered(
            "sample", lambda c, chains=chains: follows(c.sample(chains), _paths(chains))
        )
    return questions


def repeated() -> Questions:
    """The gradient of the same likelihood five times, and with one thread and two."""
    problem = random_problem(batch=64, length=40, states=20)

    def runs(contender: Contender, *threads: int) -> Outcome:
        before, found = torch.get_num_threads(), []
        try:
            for count in threads:
                torch.set_num_threads(count)
                found.append(gradients(contender.log_likelihood, problem))
        finally:
            torch.set_num_threads(before)
        same = all(all(map(torch.equal, found[0], other)) for other in found[1:])
        return Outcome(RIGHT) if same else Outcome(WRONG, "bits differ")

    return {
        "gradient, five runs": lambda c: runs(c, 2, 2, 2, 2, 2),
        "gradient, one thread and two": lambda c: runs(c, 1, 2),
    }


def left_alone() -> Questions:
    """What was given is not changed, not even whether it requires a gradient."""

    def asked(contender: Contender) -> Outcome:
        given = contender.given(random_problem())
        before = [x.clone() for x in given]
        contender.ask_everything(given)
        if any(x.requires_grad for x in given):
            return Outcome(WRONG, "it requires a gradient now")
        same = all(map(torch.equal, given, before))
        return Outcome(RIGHT) if same else Outcome(WRONG, "values were changed")

    return {"the tensor of scores": asked}


CASES = (
    Case("one score of -inf", "A move is forbidden, and the tags do not make it.", one_infinity),
    Case(
        "masks of finfo.min",
        "The smallest float32 is the score of a move, or of a move and a state; a library that "
        "takes scores of edges is given their sum, -inf.",
        smallest_float,
    ),
    Case("length 1", "A chain of one node beside a longer one.", single_node),
    Case(
        "length 0",
        "An empty chain beside a longer one: it has one path, of probability 1.",
        lambda: beside_a_long_one(0),
    ),
    Case(
        "padding",
        "Three chains of lengths 6, 3 and 2; nobody but structdist promises that NaN is fine.",
        padding,
    ),
    Case(f"T = {LONG:,}", "One chain of two states.", long_chain),
    Case("scores of 1e4", "Normal scores times 10,000.", large_scores),
    Case("identical chains in a batch", "2,000 of them; chi-square of whole paths.", identical),
    Case("constant reward", "The sum over all entries of a draw.", constant_reward),
    Case(
        "half precision",
        f"Scores rounded before; T = 50; within {HALF_TOLERANCE:g} of the truth.",
        half_precision,
    ),
    Case("run-to-run equality", "B = 64, T = 40, K = 20: the same bits each time.", repeated),
    Case("inputs left alone", "Scores without a gradient, all questions asked.", left_alone),
)


def ask_all(contenders: list[Contender], cases: tuple[Case, ...] = CASES) -> Iterator[tuple]:
    """(case, question, contender, ask), in order."""
    for case in cases:
        for question, ask in case.questions().items():
            for contender in contenders:
                yield case, question, contender, ask
