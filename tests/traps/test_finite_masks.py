"""Scores that are meant as masks (-1e4, -1e9, the least number), and huge ones in general.

They count as scores, so that digits may be lost beside them; but nothing becomes NaN or infinite,
probabilities sum to one, and entropies and divergences stay in their range.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.distributions import kl_divergence

from structdist import LinearChainCRF, ops
from tests.oracle import Oracle
from tests.traps.chains import gradients, leaves, normal, seeded

Scores = dict[str, Tensor]
DTYPES = [torch.float32, torch.float64]
NAMES = ("emissions", "transitions", "start", "end")
HUGE = (-1e4, -1e9, -math.inf, math.inf, -1e30, 1e30, -1e37, 1e37)  # inf: the largest number
SLACK = 1e-4
over_dtypes = pytest.mark.parametrize("dtype", DTYPES, ids=["float32", "float64"])


def shapes(form: str, batch: int, num_steps: int, num_states: int) -> dict[str, tuple]:
    edges = {"shared": (), "per_chain": (batch,), "per_step": (batch, num_steps - 1)}[form]
    return {
        "emissions": (batch, num_steps, num_states),
        "transitions": (*edges, num_states, num_states),
        "start": (batch, num_states),
        "end": (batch, num_states),
    }


@functools.cache
def masked_scores(
    pool: tuple[float, ...], form: str, num_steps: int, num_states: int, dtype: torch.dtype
) -> tuple[Scores, Tensor]:
    """Scores and lengths of many chains, each with masks of its own in places of its own.

    In turn, a chain has one value of the pool or a mixture, and each of its arguments is masked
    nowhere, here and there, mostly, or everywhere.
    """
    generator = seeded(num_steps * num_states + len(form))
    batch = 8 * (len(pool) + 1)
    choices = torch.tensor(pool, dtype=torch.float64).clamp(
        torch.finfo(dtype).min, torch.finfo(dtype).max
    )
    own = torch.arange(batch) % (len(pool) + 1)
    made = {}
    for name, shape in shapes(form, batch, num_steps, num_states).items():
        x = torch.randn(shape, generator=generator, dtype=torch.float64)
        ones = (1,) * (len(shape) - 1)
        chosen = torch.randint(len(pool), shape, generator=generator)
        shares = torch.tensor([0.0, 0.3, 0.7, 1.0])[torch.randint(4, (batch,), generator=generator)]
        if len(shape) > 2 or name != "transitions":  # a row for each chain
            rows = own.view(-1, *ones).expand(shape)
            chosen = torch.where(rows < len(pool), rows, chosen)
            shares = shares.view(-1, *ones)
        else:
            shares = shares[0]
        masked = torch.rand(shape, generator=generator) < shares
        made[name] = torch.where(masked, choices[chosen], x).to(dtype)
    return made, torch.randint(num_steps + 1, (batch,), generator=generator)


def unmasked(like: Scores, lengths: Tensor) -> LinearChainCRF:
    zeros = {name: torch.zeros_like(x) for name, x in like.items()}
    return LinearChainCRF(**zeros, lengths=lengths)


Question = Callable[[LinearChainCRF, LinearChainCRF], Tensor]
QUESTIONS: dict[str, Question] = {
    "log_partition": lambda d, _: d.log_partition,
    "entropy": lambda d, _: d.entropy(),
    "marginals": lambda d, _: d.marginals,
    "edge_marginals": lambda d, _: d.edge_marginals,
    "rsample": lambda d, _: d.rsample((2,), temperature=0.5, generator=seeded(1)),
    "straight_through": lambda d, _: d.rsample(straight_through=True, generator=seeded(1)),
    "perturb_edges": lambda d, _: d.perturb_and_map((2,), generator=seeded(1)),
    "perturb_nodes": lambda d, _: d.perturb_and_map(perturb="nodes", generator=seeded(1)),
    "renyi_half": lambda d, _: d.renyi_entropy(0.5),
    "renyi_2": lambda d, _: d.renyi_entropy(2),
    "renyi_inf": lambda d, _: d.renyi_entropy(math.inf),
    "topk": lambda d, _: d.topk(1).log_probs,
    "log_prob": lambda d, _: d.log_prob(torch.zeros_like(d.argmax)),
    "sample_with_log_prob": lambda d, _: d.sample_with_log_prob((2,), generator=seeded(1)).log_prob,
    "expectation": lambda d, _: d.expectation(normal(*d.event_shape)),
    "cross_entropy": lambda d, other: d.cross_entropy(other),
    "kl": kl_divergence,
}
TOWARDS: dict[str, Question] = {
    "cross_entropy": lambda d, other: other.cross_entropy(d),
    "kl": lambda d, other: kl_divergence(other, d),
}


def not_finite(questions: dict[str, Question], dist, other, inputs: Scores) -> list[str]:
    """The names of questions whose answers, or gradients, are not finite."""
    found = []
    for name, ask in questions.items():
        answer = ask(dist, other)
        if not answer.isfinite().all():
            found.append(name)
        elif answer.requires_grad:
            grads = gradients(answer, inputs)
            found += [f"{name} by {x}" for x, grad in grads.items() if not grad.isfinite().all()]
    return found


CASES = [(form, 4, 3) for form in ("shared", "per_chain", "per_step")]
CASES += [("per_chain", 6, 9), ("shared", 1, 3), ("per_step", 3, 1)]
over_cases = pytest.mark.parametrize(("form", "num_steps", "num_states"), CASES)


@over_cases
@over_dtypes
def test_everything_is_finite(backend, form, num_steps, num_states, dtype):
    made, lengths = masked_scores(HUGE, form, num_steps, num_states, dtype)
    inputs = leaves(made)
    dist = LinearChainCRF(**inputs, lengths=lengths)
    assert not_finite(QUESTIONS, dist, unmasked(made, lengths), inputs) == []


@over_cases
@over_dtypes
def test_divergences_towards_masked_chains_are_finite(backend, form, num_steps, num_states, dtype):
    """Their scores are values here, and those may be as large as any number."""
    made, lengths = masked_scores(HUGE, form, num_steps, num_states, dtype)
    inputs = leaves(made)
    dist = LinearChainCRF(**inputs, lengths=lengths)
    assert not_finite(TOWARDS, dist, unmasked(made, lengths), inputs) == []


@over_cases
@over_dtypes
def test_everything_is_in_its_range(backend, form, num_steps, num_states, dtype):
    made, lengths = masked_scores(HUGE, form, num_steps, num_states, dtype)
    dist, plain = LinearChainCRF(**made, lengths=lengths), unmasked(made, lengths)
    active = ops.in_chain(lengths, num_steps).to(dtype)
    for marginals in (dist.marginals, dist.edge_marginals):
        assert (marginals >= 0).all()
    torch.testing.assert_close(dist.marginals.sum(-1), active)
    torch.testing.assert_close(dist.edge_marginals.sum((-1, -2)), active[:, 1:])
    if num_steps > 1:
        torch.testing.assert_close(dist.edge_marginals.sum(-2), dist.marginals[:, 1:])
    most = lengths * math.log(num_states)
    for order in (0, 0.5, 1, 2, math.inf):
        entropy = dist.renyi_entropy(order)
        assert (entropy >= 0).all()
        assert (entropy <= most + SLACK).all()
    assert (kl_divergence(dist, plain) >= 0).all()
    torch.testing.assert_close(dist.cross_entropy(plain), most.to(dtype))
    for draw in (dist.rsample((3,)), dist.perturb_and_map((3,)), dist.sample((3,))):
        torch.testing.assert_close(draw.sum(-1), active.expand(3, -1, -1))


@over_cases
@over_dtypes
def test_the_gradient_of_log_partition_is_the_marginals(
    backend, form, num_steps, num_states, dtype
):
    made, lengths = masked_scores(HUGE, form, num_steps, num_states, dtype)
    inputs = leaves(made)
    dist = LinearChainCRF(**inputs, lengths=lengths)
    found = torch.autograd.grad(dist.log_partition.sum(), [inputs["emissions"], inputs["start"]])
    torch.testing.assert_close(found[0], dist.marginals.detach())
    torch.testing.assert_close(found[1], dist.marginals[:, 0].detach())


@over_cases
@over_dtypes
def test_no_log_probability_is_above_zero(backend, form, num_steps, num_states, dtype):
    made, lengths = masked_scores(HUGE, form, num_steps, num_states, dtype)
    dist = LinearChainCRF(**made, lengths=lengths)
    assert (dist.topk(2).log_probs <= 0).all()
    assert (dist.sample_with_log_prob((3,), generator=seeded(1)).log_prob <= 0).all()


@over_cases
def test_masks_that_leave_digits_are_exact(backend, form, num_steps, num_states):
    """In float64, against enumeration (which is the less exact of the two)."""
    made, lengths = masked_scores((-1e4, -1e9), form, num_steps, min(num_states, 3), torch.float64)
    dist, oracle = LinearChainCRF(**made, lengths=lengths), Oracle(**made, lengths=lengths)
    exactly = {"atol": 1e-4, "rtol": 1e-12}
    torch.testing.assert_close(dist.log_partition, oracle.log_partition, **exactly)
    torch.testing.assert_close(dist.entropy(), oracle.entropy(), **exactly)
    torch.testing.assert_close(dist.marginals, oracle.marginals, **exactly)
    torch.testing.assert_close(dist.edge_marginals, oracle.edge_marginals, **exactly)
    torch.testing.assert_close(dist.renyi_entropy(2), oracle.renyi_entropy(2), **exactly)


@pytest.mark.parametrize("form", ["shared", "per_chain", "per_step"])
def test_gradients_beside_masks_are_exact(backend, form):
    made, lengths = masked_scores((-1e4,), form, 4, 3, torch.float64)
    inputs, expected = leaves(made), leaves(made)
    dist, oracle = LinearChainCRF(**inputs, lengths=lengths), Oracle(**expected, lengths=lengths)
    for ask in (lambda d: d.entropy(), lambda d: d.marginals, lambda d: d.renyi_entropy(2)):
        wanted = gradients(ask(oracle), expected)
        for name, grad in gradients(ask(dist), inputs).items():
            torch.testing.assert_close(grad, wanted[name], atol=1e-6, rtol=1e-6)


# The same masks on all paths -----------------------------------------------------------------

EVERYWHERE = {
    "one step": {"emissions": (slice(None), 1)},
    "several steps": {"emissions": (slice(None), slice(1, 3))},
    "all emissions": {"emissions": ...},
    "transitions": {"transitions": ...},
    "start and end": {"start": ..., "end": ...},
    "everything": dict.fromkeys(NAMES, ...),
}


@pytest.mark.parametrize("mask", [-1e4, -1e9, 1e9])
@pytest.mark.parametrize("places", EVERYWHERE.values(), ids=EVERYWHERE)
@over_dtypes
def test_what_all_paths_have_in_common_does_not_matter(backend, places, mask, dtype):
    """A mask that every path carries as often as every other changes log Z, and nothing else."""
    made = {
        name: normal(*shape, seed=n, dtype=dtype)
        for n, (name, shape) in enumerate(shapes("per_step", 3, 5, 3).items())
    }
    if "emissions" in places:  # these are added to emissions in the dtype of the scores
        made["start"].zero_()
        made["end"].zero_()
    elif "start" in places:
        made["emissions"].zero_()
    plain = {name: x.clone() for name, x in made.items()}
    for name, place in places.items():
        made[name][place], plain[name][place] = mask, 0.0
    lengths = torch.tensor([5, 4, 3])
    dist, expected = (LinearChainCRF(**x, lengths=lengths) for x in (made, plain))
    close = {"atol": 1e-5, "rtol": 1e-5}
    torch.testing.assert_close(dist.entropy(), expected.entropy(), **close)
    torch.testing.assert_close(dist.marginals, expected.marginals, **close)
    torch.testing.assert_close(dist.edge_marginals, expected.edge_marginals, **close)
    assert (dist.log_partition - expected.log_partition).abs().min() > 0.9 * abs(mask)
    nothing = kl_divergence(dist, dist)
    torch.testing.assert_close(nothing, torch.zeros_like(nothing))


@pytest.mark.parametrize("where", [NAMES, ("emissions", "start"), ("emissions", "end")])
@over_dtypes
def test_least_numbers_that_add_up_do_not_forbid(backend, where, dtype):
    """Sums of two are beyond the dtype: they stay finite, and their gradients are marginals."""
    made = {name: torch.zeros(s, dtype=dtype) for name, s in shapes("shared", 2, 1, 3).items()}
    inputs = leaves(made)
    for name in where:
        inputs[name].data.fill_(torch.finfo(dtype).min)
    dist = LinearChainCRF(**inputs)
    assert dist.log_partition.isfinite().all()
    third = torch.full((2, 3), 1 / 3, dtype=dtype)
    torch.testing.assert_close(dist.marginals[:, 0], third)
    torch.testing.assert_close(dist.entropy(), torch.full((2,), math.log(3), dtype=dtype))
    if backend == "reference":
        return
    dist.log_partition.sum().backward()
    for name in ("start", "end"):
        torch.testing.assert_close(inputs[name].grad, third)


@over_dtypes
def test_sums_beyond_the_dtype_are_finite(dtype):
    """Whatever the rounding: a million pairs, of which every other would overflow."""
    largest = torch.finfo(dtype).max
    left, right = (
        (2 * torch.rand(1_000_000, generator=seeded(n), dtype=dtype) - 1) * largest for n in (1, 2)
    )
    total, plain = ops.sum_of_scores(left, right), left + right
    assert total.isfinite().all()
    fits = plain.isfinite()
    assert torch.equal(total[fits], plain[fits])
    assert (total[~fits].abs() > largest * (1 - 1e-4)).all()


@over_dtypes
def test_minus_infinity_still_forbids_beside_the_least_number(backend, dtype):
    made = {name: torch.zeros(s, dtype=dtype) for name, s in shapes("shared", 2, 2, 3).items()}
    made["emissions"].fill_(torch.finfo(dtype).min)
    made["start"][:, 0] = -torch.inf
    made["end"][:, 1] = -torch.inf
    dist = LinearChainCRF(**made)
    assert (dist.marginals[:, 0, 0] == 0).all()
    assert (dist.marginals[:, 1, 1] == 0).all()
    assert (dist.marginals.sum(-1) - 1).abs().max() < 1e-5


# Orders of the Rényi entropy -----------------------------------------------------------------


@pytest.mark.parametrize("order", [1e-3, 0.5, 2, 30.0, 1e14, 1e16, 1e300, math.inf])
def test_renyi_entropies_of_every_order_beside_masks(backend, order):
    made, lengths = masked_scores(HUGE, "per_chain", 4, 3, torch.float64)
    entropy = LinearChainCRF(**made, lengths=lengths).renyi_entropy(order)
    assert (entropy >= 0).all()
    assert (entropy <= lengths * math.log(3) + SLACK).all()


def test_renyi_entropies_of_high_orders_approach_the_last(backend):
    dist = LinearChainCRF(normal(5, 4, 3), normal(3, 3, seed=1))
    last = dist.renyi_entropy(math.inf)
    for order in (1e4, 1e10, 1e14, 1e16, 1e200, 1e305, 1.7e308):
        torch.testing.assert_close(dist.renyi_entropy(order), last, atol=10 / order, rtol=1e-3)
