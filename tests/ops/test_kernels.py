"""Every fast backend of every structure against its reference: values and gradients."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from structdist import ops
from structdist.ops import Problem
from structdist.ops.registry import reference_for
from tests.structures.registry import over
from tests.structures.structure import Structure, seeded

TEMPERATURES = (0.1, 1.0, 5.0)
NUM_SAMPLES = 2


class Question(NamedTuple):
    """What a backend and the reference are both asked about a problem, and further inputs."""

    fast: Callable[..., Tensor]  # of a problem and the extras
    plain: Callable[..., Tensor]  # of the reference, a problem and the extras
    extras: Sequence[Tensor] = ()  # what the answer is differentiated by, beside the scores


Ask = Callable[[Structure, Any], Question]  # of a structure and a problem


def gumbel(structure: Structure, problem: Problem) -> Tensor:
    """Standard Gumbel noise [S, N, ...]."""
    shape = NUM_SAMPLES, len(problem.lengths), *structure.noise_shape(problem)
    noise = torch.empty(shape, dtype=torch.float64)
    return -noise.exponential_(generator=seeded(3)).log()


def temperatures(*shape: int) -> Tensor:
    return torch.rand(shape, generator=seeded(4), dtype=torch.float64) + 0.2


def paths_for(problem: Problem) -> Tensor:
    """[4, N, T]: allowed ones, with junk in the padding, then impossible codes, and any codes."""
    num_structures, num_steps = problem.scores[0].shape[:2]
    uniform = torch.rand(4, num_structures, num_steps, generator=seeded(5), dtype=torch.float64)
    allowed = reference_for(problem).sample_paths(problem, uniform)
    inside = ops.in_chain(problem.lengths, num_steps)
    codes = torch.randint(problem.scores[0][0, 0].numel(), allowed.shape[1:], generator=seeded(6))
    wrong = torch.where(codes % 2 == 0, -1, 10**6)
    junk = torch.where(inside, allowed[1], wrong)
    return torch.stack([allowed[0], junk, torch.where(codes % 3 > 0, allowed[2], wrong), codes])


# Questions with a gradient -------------------------------------------------------------------


def log_partition(structure: Structure, problem: Any) -> Question:
    return Question(
        lambda p: ops.log_partition(p, ops.run_forward(p)), lambda r, p: r.log_partition(p)
    )


def entropy(structure: Structure, problem: Any) -> Question:
    return Question(lambda p: ops.entropy(p, ops.run_forward(p)), lambda r, p: r.entropy(p))


def marginals(part: int) -> Ask:
    return lambda structure, problem: Question(
        lambda p: ops.marginals(p, ops.run_forward(p), part), lambda r, p: r.marginals(p, part)
    )


def expectation(structure: Structure, problem: Any, form: int = 0) -> Question:
    return Question(
        lambda p, *values: ops.expectation(p, ops.run_forward(p), values),
        lambda r, p, *values: r.expectation(p, values),
        structure.kernel_values(problem)[form],
    )


def log_prob(structure: Structure, problem: Any) -> Question:
    paths = paths_for(problem)

    def plain(reference: Any, p: Any) -> Tensor:
        scores = reference.path_scores(p, paths)
        forbidden = scores == -torch.inf
        log_probs = torch.where(forbidden, 0.0, scores) - reference.log_partition(p)
        return torch.where(forbidden, -torch.inf, log_probs)

    return Question(lambda p: ops.log_prob(p, ops.run_forward(p), paths), plain)


def gumbel_ffbs(temperature: float) -> Ask:
    def ask(structure: Structure, problem: Any) -> Question:
        noise = gumbel(structure, problem)
        return Question(
            lambda p: ops.gumbel_ffbs(p, ops.run_forward(p), noise, temperature).soft,
            lambda r, p: r.gumbel_ffbs(p, noise, temperature).soft,
        )

    return ask


def gumbel_ffbs_by_temperature(num_samples: int) -> Ask:
    """Of a temperature for each structure, and for each of its samples unless there is but one."""

    def ask(structure: Structure, problem: Any) -> Question:
        noise = gumbel(structure, problem)
        return Question(
            lambda p, temperature: ops.gumbel_ffbs(p, ops.run_forward(p), noise, temperature).soft,
            lambda r, p, temperature: r.gumbel_ffbs(p, noise, temperature).soft,
            (temperatures(num_samples, len(problem.lengths)),),
        )

    return ask


def relaxed_viterbi(temperature: float) -> Ask:
    return lambda structure, problem: Question(
        lambda p: ops.relaxed_viterbi(p, temperature).soft,
        lambda r, p: r.relaxed_viterbi(p, temperature).soft,
    )


def relaxed_viterbi_by_temperature(structure: Structure, problem: Any) -> Question:
    return Question(
        lambda p, temperature: ops.relaxed_viterbi(p, temperature).soft,
        lambda r, p, temperature: r.relaxed_viterbi(p, temperature).soft,
        (temperatures(1, len(problem.lengths)),),
    )


def questions(structure: Structure) -> dict[str, Ask]:
    return {
        "log_partition": log_partition,
        **{f"marginals of {part}": marginals(n) for n, part in enumerate(structure.parts)},
        "entropy": entropy,
        "expectation": expectation,
        "log_prob": log_prob,
        **{f"gumbel_ffbs-{t}": gumbel_ffbs(t) for t in TEMPERATURES},
        "gumbel_ffbs by temperature": gumbel_ffbs_by_temperature(NUM_SAMPLES),
        **{f"relaxed_viterbi-{t}": relaxed_viterbi(t) for t in TEMPERATURES},
        "relaxed_viterbi by temperature": relaxed_viterbi_by_temperature,
    }


# Values and gradients ------------------------------------------------------------------------


class Answer(NamedTuple):
    value: Tensor
    grads: list[Tensor | None]  # by the scores, then by the extras; None where not asked for


def answer(
    function: Callable[..., Tensor],
    problem: Any,
    extras: Sequence[Tensor],
    only: int | None = None,
) -> Answer:
    """A value, and gradients of a random projection of it: by all inputs, or by `only` one."""
    count = len(problem.scores)
    inputs = [x.clone() for x in (*problem.scores, *extras)]
    leaves = [x.requires_grad_() for n, x in enumerate(inputs) if only in (None, n)]
    value = function(problem.with_scores(inputs[:count]), *inputs[count:])
    finite = torch.where(value > -torch.inf, value, 0.0)
    weight = torch.randn(value.shape, generator=seeded(2)).to(value)
    grads = iter(torch.autograd.grad((finite * weight).sum(), leaves, allow_unused=True))
    return Answer(value.detach(), [next(grads) if x.requires_grad else None for x in inputs])


@functools.cache
def expected(structure: Structure, problem: str, ask: Ask) -> Answer:
    """By the reference, once for all backends."""
    flat = structure.problems[problem]
    _, plain, extras = ask(structure, flat)
    return answer(functools.partial(plain, reference_for(flat)), flat, extras)


def assert_same(found: Answer, slow: Answer) -> None:
    assert not found.value.isnan().any()
    assert_close(found.value, slow.value, rtol=1e-7, atol=1e-8)
    for fast, plain in zip(found.grads, slow.grads, strict=True):
        assert fast.isfinite().all()
        plain = torch.zeros_like(fast) if plain is None else plain
        assert_close(fast, plain, rtol=1e-7, atol=1e-8)


@over(backends="fast", problem=lambda s: list(s.problems), ask=questions)
def test_values_and_gradients(backend: str, structure: Structure, problem: str, ask: Ask):
    flat = structure.problems[problem]
    fast, _, extras = ask(structure, flat)
    found = answer(fast, flat, extras)
    assert_same(found, expected(structure, problem, ask))
    assert ask is log_prob or found.value.isfinite().all()


@over(backends="fast", problem=lambda s: list(s.few_problems), ask=questions)
def test_each_gradient_alone(backend: str, structure: Structure, problem: str, ask: Ask):
    """Only one of the inputs requires a gradient: it is the same as when all do."""
    flat, together = structure.problems[problem], expected(structure, problem, ask)
    fast, _, extras = ask(structure, flat)
    for n, plain in enumerate(together.grads):
        found = answer(fast, flat, extras, only=n).grads[n]
        plain = torch.zeros_like(found) if plain is None else plain
        assert_close(found, plain, rtol=1e-7, atol=1e-8)


@over(backends="fast", problem="few_problems")
def test_expectation_of_values_in_larger_forms(backend: str, structure: Structure, problem: Any):
    for form in range(1, len(structure.kernel_values(problem))):
        fast, plain, extras = expectation(structure, problem, form)
        slow = answer(functools.partial(plain, reference_for(problem)), problem, extras)
        assert_same(answer(fast, problem, extras), slow)


@over(backends="fast", problem="few_problems")
def test_expectation_of_values_on_some_parts(backend: str, structure: Structure, problem: Any):
    """None stands for zeros."""
    values = structure.kernel_values(problem)[0]
    forward = ops.run_forward(problem)
    for n in range(len(values)):
        some = [value if n == m else None for m, value in enumerate(values)]
        found = ops.expectation(problem, forward, some)
        assert_close(found, reference_for(problem).expectation(problem, some))


@over(backends="fast", problem="few_problems")
def test_temperatures_of_each_sample_share_a_gradient(
    backend: str, structure: Structure, problem: Any
):
    """One temperature for all samples gets the sum of what each of them would."""
    fast, plain, extras = gumbel_ffbs_by_temperature(1)(structure, problem)
    slow = answer(functools.partial(plain, reference_for(problem)), problem, extras)
    assert_same(answer(fast, problem, extras), slow)


# Paths ---------------------------------------------------------------------------------------


@over(backends="fast", problem="problems")
def test_path_scores(backend: str, structure: Structure, problem: Any):
    """-inf where something is forbidden or no path; junk in the padding does not matter."""
    paths = paths_for(problem)
    found = ops.path_scores(problem, paths)
    assert found[:2].isfinite().all()
    assert_close(found, reference_for(problem).path_scores(problem, paths))


@over(backends="fast", problem="problems", temperature=TEMPERATURES)
def test_hard_choices_of_relaxed_draws(
    backend: str, structure: Structure, problem: Any, temperature: float
):
    noise, reference = gumbel(structure, problem), reference_for(problem)
    drawn = ops.gumbel_ffbs(problem, ops.run_forward(problem), noise, temperature).path
    assert torch.equal(drawn, reference.gumbel_ffbs(problem, noise, temperature).path)
    best = ops.relaxed_viterbi(problem, temperature).path
    assert torch.equal(best, reference.relaxed_viterbi(problem, temperature).path)


@over(backends="fast", problem="problems")
def test_sample_paths(backend: str, structure: Structure, problem: Any):
    shape = 50, *problem.scores[0].shape[:2]
    uniform = torch.rand(shape, generator=seeded(7), dtype=torch.float64)
    found = ops.sample_paths(problem, ops.run_forward(problem), uniform)
    assert torch.equal(found, reference_for(problem).sample_paths(problem, uniform))


@over(backends="fast", problem="problems")
def test_viterbi(backend: str, structure: Structure, problem: Any):
    found, slow = ops.viterbi(problem), reference_for(problem).viterbi(problem)
    assert_close(found.score, slow.score)
    assert torch.equal(found.path, slow.path)


@over(backends="fast", problem="few_problems", k=[1, 3, 50])
def test_k_best(backend: str, structure: Structure, problem: Any, k: int):
    found, slow = ops.k_best(problem, k), reference_for(problem).k_best(problem, k)
    assert_close(found.scores, slow.scores)
    assert torch.equal(found.paths, slow.paths)
    assert_close(found.scores[0], ops.viterbi(problem).score)


# Numbers -------------------------------------------------------------------------------------


@over(backends="fast", problem="few_problems", ask=questions)
def test_float32_is_answered_in_float32(backend: str, structure: Structure, problem: Any, ask: Ask):
    single = problem.with_scores([x.float() for x in problem.scores])
    fast, _, extras = ask(structure, problem)
    found = fast(single, *extras)
    assert found.dtype == torch.float32
    exact = fast(single.with_scores([x.double() for x in single.scores]), *extras)
    assert_close(found.double(), exact, rtol=1e-4, atol=1e-4)


@over(backends="fast", problem="few_problems", ask=questions)
def test_no_kernel_reads_what_it_did_not_write(
    backend: str, structure: Structure, problem: Any, ask: Ask, monkeypatch: pytest.MonkeyPatch
):
    """Poison uninitialised memory with NaN: nothing may change, neither values nor gradients."""
    fast, _, extras = ask(structure, problem)
    clean = answer(fast, problem, extras)

    def poisoned(make: Callable[..., Tensor]) -> Callable[..., Tensor]:
        def made(*arguments: Any, **options: Any) -> Tensor:
            found = make(*arguments, **options)
            return found.fill_(torch.nan) if found.is_floating_point() else found

        return made

    for owner, name in ((torch, "empty"), (torch, "empty_like"), (Tensor, "new_empty")):
        monkeypatch.setattr(owner, name, poisoned(getattr(owner, name)))
    found = answer(fast, problem, extras)
    assert torch.equal(found.value, clean.value)
    assert all(torch.equal(a, b) for a, b in zip(found.grads, clean.grads, strict=True))


@over(backends="fast", problem="few_problems")
def test_problems_are_never_modified(backend: str, structure: Structure, problem: Any):
    before = [x._version for x in problem.scores]
    for ask in questions(structure).values():
        fast, _, extras = ask(structure, problem)
        fast(problem, *extras)
    ops.viterbi(problem)
    ops.k_best(problem, 2)
    assert [x._version for x in problem.scores] == before


@over(problem="few_problems")
def test_the_reference_stands_alone(structure: Structure, problem: Any):
    """It answers through the same door as the others do, and as when asked directly."""
    with ops.use_backend("reference"):
        assert ops.run_forward(problem) is None
        for ask in questions(structure).values():
            fast, plain, extras = ask(structure, problem)
            assert_close(fast(problem, *extras), plain(reference_for(problem), problem, *extras))


@over(backends="fast")
def test_a_forbidden_path_has_no_gradient(backend: str, structure: Structure):
    """Its log probability is -inf whatever the scores that are allowed."""
    problem = next(p for name, p in structure.few_problems.items() if "forbidden" in name)
    leaves = [x.clone().requires_grad_() for x in problem.scores]
    p = problem.with_scores(leaves)
    found = ops.log_prob(p, ops.run_forward(p), paths_for(problem))
    forbidden = found == -torch.inf
    assert forbidden.any()
    grads = torch.autograd.grad(found[forbidden].sum(), leaves)
    assert all((grad == 0).all() for grad in grads)


@over(problem="few_problems")
def test_the_reference_has_finite_gradients_by_temperature(structure: Structure, problem: Any):
    """Also where something is forbidden."""
    temperature = temperatures(NUM_SAMPLES, len(problem.lengths)).requires_grad_()
    soft = reference_for(problem).gumbel_ffbs(problem, gumbel(structure, problem), temperature).soft
    weight = torch.randn(soft.shape, generator=seeded(2)).double()
    (found,) = torch.autograd.grad((soft * weight).sum(), temperature)
    assert found.isfinite().all()
