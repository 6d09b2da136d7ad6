"""A selection of the suite on every backend of every structure, the reference among them.

The other files run on whichever backend is picked. Here each is forced in turn, from the arguments
of a distribution to its answers and their gradients.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import torch
from torch import Tensor
from torch.testing import assert_close

from structdist import ops
from tests.derivatives import gradients
from tests.enumeration import BatchOracle
from tests.quantities import PAIR_QUANTITIES
from tests.structures.registry import over
from tests.structures.structure import Ask, BaseExample, Sampler, Structure, seeded

LOW = {"atol": 1e-4, "rtol": 1e-4}


@functools.cache
def enumerated(example: BaseExample) -> tuple[BaseExample, BatchOracle]:
    leaf = example.leaves()
    return leaf, leaf.oracle()


@over(backends="all", example="few", ask="quantities")
def test_values_and_gradients_equal_those_of_enumeration(
    backend: str, example: BaseExample, ask: Ask
):
    ours, (theirs, oracle) = example.leaves(), enumerated(example)
    found, expected = ask(ours.crf()), ask(oracle)
    assert_close(found, expected)
    assert_close(gradients(found, ours), gradients(expected, theirs))


@over(backends="all", example="few", ask=PAIR_QUANTITIES)
def test_divergences_equal_those_of_enumeration(backend: str, example: BaseExample, ask: Callable):
    found = []
    for kind in ("crf", "oracle"):
        p, q = example.leaves(), example.rescored().leaves()
        answer = ask(getattr(p, kind)(), getattr(q, kind)())
        found.append((answer, gradients(answer, p, q)))
    assert_close(*found)


@over(backends="all", example="few")
def test_best_paths_and_log_probs(backend: str, structure: Structure, example: BaseExample):
    crf, (_, oracle) = example.crf(), enumerated(example)
    assert torch.equal(crf.argmax, oracle.argmax)
    assert torch.equal(crf.topk(7).paths, oracle.topk(7).paths)
    paths = structure.some_paths(crf)
    assert_close(crf.log_prob(paths), oracle.log_prob(paths).detach())


@over(backends="all", example="few", sampler="samplers")
def test_the_same_noise_gives_the_same_paths(backend: str, example: BaseExample, sampler: Sampler):
    found = sampler(example.crf(), (20,), seeded(1))
    with ops.use_backend("reference"):
        assert torch.equal(found, sampler(example.crf(), (20,), seeded(1)))


@over(backends="all", example="few", draw="relaxed_draws")
def test_relaxed_draws_and_their_gradients(backend: str, example: BaseExample, draw: Ask):
    answers = []
    for name in (backend, "reference"):
        with ops.use_backend(name):
            leaf = example.leaves()
            soft = draw(leaf.crf())
            answers.append((soft, gradients(soft, leaf)))
    assert_close(*answers)


def transposed(x: Tensor) -> Tensor:
    """The same numbers, in memory by columns."""
    return x.transpose(-1, -2).contiguous().transpose(-1, -2) if x.dim() > 1 else x


@over(backends="fast", example="few", draw="relaxed_draws")
def test_layouts_of_scores_do_not_matter(backend: str, example: BaseExample, draw: Ask):
    answers = []
    for lay_out in (Tensor.contiguous, transposed):
        leaf = example.with_scores(
            *[lay_out(x).detach().requires_grad_() for x in example.scores.values()]
        )
        soft = draw(leaf.crf())
        answers.append((soft, gradients(soft, leaf)))
    assert_close(*answers)


@over(backends="all", example="few")
def test_float32_is_close(backend: str, structure: Structure, example: BaseExample):
    low = example.to(torch.float32)
    crf, oracle = low.crf(), low.oracle()
    for quantity, ask in structure.quantities.items():
        found = ask(crf)
        assert found.dtype == torch.float32, quantity
        assert_close(found.double(), ask(oracle), msg=lambda m, q=quantity: f"{q}: {m}", **LOW)


@over(backends="all")
def test_it_is_this_backend_that_answers(backend: str, structure: Structure):
    """A status in use, and a forward pass that is its own."""
    problem = next(iter(structure.few_problems.values()))
    forward = ops.run_forward(problem)
    assert ("reference" if forward is None else forward.backend.NAME) == backend
    in_use = [s.backend for s in ops.backends() if s.structure == structure.name and s.in_use]
    assert in_use == [backend]
