"""Samplers draw whole paths with the right probabilities, independently, for every structure.

Failure rate: seeds are fixed, so these tests pass or fail alike on every run. With fresh seeds each
p-value of a correct sampler would fall below `ALPHA` = 1e-5 with that probability; about 500
p-values are computed, so that a change of seeds or of the order of draws breaks this file with a
probability of about 0.5 %. A wrong sampler is caught since 20,000 draws leave little room:
Perturb-and-MAP, a known biased sampler, fails the same test at 1e-20
(`tests/linear_chain/test_sampling.py`).
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.testing import assert_close

from tests.chi_square import ALPHA, NUM_DRAWS, joint_p_value, p_values
from tests.structures.registry import over
from tests.structures.structure import BaseExample, Sampler, Structure, seeded


def draw(sampler: Sampler, crf: Any, shape: tuple = (NUM_DRAWS,), seed: int = 0) -> Tensor:
    return sampler(crf, shape, seeded(seed))


def unscored(example: BaseExample) -> BaseExample:
    """All paths alike."""
    return example.with_scores(*[torch.zeros_like(x) for x in example.scores.values()])


@over(example="drawn", sampler="samplers")
def test_whole_paths_follow_the_distribution(example: BaseExample, sampler: Sampler):
    assert min(p_values(draw(sampler, example.crf()), example)) > ALPHA


@over(
    example=lambda structure: structure.forbidding[:1],
    sampler="samplers",
    dtype=[torch.float32, torch.bfloat16],
)
def test_whole_paths_in_low_precision(example: BaseExample, sampler: Sampler, dtype: torch.dtype):
    low = example.to(dtype)
    assert min(p_values(draw(sampler, low.crf()), low)) > ALPHA


@over(example="forbidding", sampler="samplers")
def test_forbidden_paths_are_never_drawn(example: BaseExample, sampler: Sampler):
    crf = example.crf()
    assert crf.log_prob(draw(sampler, crf, (2000,), seed=9)).isfinite().all()


@over(example="forbidding", sample="relaxations")
def test_forbidden_events_are_never_drawn(example: BaseExample, sample: Callable):
    crf = example.crf()
    events = sample(crf, (2000,), straight_through=True, generator=seeded(9))
    assert crf.log_prob(events).isfinite().all()


# Independence --------------------------------------------------------------------------------


@over(sampler="samplers")
def test_identical_batch_items_are_independent(structure: Structure, sampler: Sampler):
    example = structure.twins
    paths = draw(sampler, example.crf())
    assert joint_p_value(paths[:, 0], paths[:, 1], *example.oracle().singles) > ALPHA


@over(sampler="samplers")
def test_successive_samples_are_independent(structure: Structure, sampler: Sampler):
    example = structure.twins
    paths, pair = draw(sampler, example.crf())[:, 0], example.oracle().singles
    assert joint_p_value(paths[::2], paths[1::2], *pair) > ALPHA
    half = NUM_DRAWS // 2
    assert joint_p_value(paths[:half], paths[half:], *pair) > ALPHA


@over(sampler="samplers")
def test_successive_calls_are_independent(structure: Structure, sampler: Sampler):
    """One generator, used twice, never repeats itself."""
    example, generator = structure.twins, seeded(3)
    crf, pair = example.crf(), example.oracle().singles
    first, second = (sampler(crf, (NUM_DRAWS,), generator)[:, 0] for _ in range(2))
    assert joint_p_value(first, second, *pair) > ALPHA


@over(sampler="samplers")
def test_steps_are_independent_where_the_scores_say_so(structure: Structure, sampler: Sampler):
    """With zero scores all paths are alike: noise shared over time would show."""
    flat = unscored(structure.random("flat", num_steps=5, lengths=None))
    assert min(p_values(draw(sampler, flat.crf()), flat)) > ALPHA


@over(sampler="samplers")
def test_identical_batch_items_give_distinct_draws(structure: Structure, sampler: Sampler):
    """64 identical structures with thousands of equally likely paths: hardly any two alike."""
    crf = unscored(structure.random("flat", (64,), num_steps=8, lengths=None)).crf()
    assert len(draw(sampler, crf, ()).unique(dim=0)) > 55


# Reproducibility -----------------------------------------------------------------------------


@over(sampler="samplers")
def test_generator_makes_draws_reproducible(structure: Structure, sampler: Sampler):
    crf = structure.drawn[2].crf()
    state = torch.get_rng_state()
    once, again = (draw(sampler, crf, (7,), seed=5) for _ in range(2))
    assert torch.equal(once, again)
    assert not torch.equal(once, draw(sampler, crf, (7,), seed=6))
    assert torch.equal(state, torch.get_rng_state()), "the global generator was used"


@over(method=["sample", "sample_paths", "rsample"])
def test_global_seed_makes_draws_reproducible(structure: Structure, method: str):
    crf = structure.drawn[2].crf()
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(getattr(crf, method)((7,)))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


@over(temperature=[0.1, 1.0, 5.0])
def test_given_noise_decides_alone(structure: Structure, temperature: float):
    """The same noise gives the same draw, whatever the generators are at."""
    crf = structure.drawn[0].crf()
    shape = (7, *crf.batch_shape, *crf.noise_shape)
    noise = -torch.empty(shape, dtype=torch.float64).exponential_(generator=seeded(4)).log()
    draws = [crf.rsample((7,), temperature=temperature, noise=noise) for _ in range(2)]
    assert torch.equal(*draws)


@over()
def test_exact_draws_carry_no_gradient(structure: Structure):
    crf = structure.drawn[1].leaves().crf()
    assert not crf.sample((2,)).requires_grad
    assert not crf.sample_paths((2,)).is_floating_point()


@over(example="drawn")
def test_log_prob_beside_a_sample(example: BaseExample):
    """The same draws and log probabilities as when asked for one by one, with a gradient."""
    crf = example.leaves().crf()
    paths, log_prob = crf.sample_with_log_prob((5,), generator=seeded(6))
    assert torch.equal(paths, crf.sample_paths((5,), generator=seeded(6)))
    assert_close(log_prob, crf.log_prob(paths))
    assert log_prob.requires_grad


# The relaxation ------------------------------------------------------------------------------


@over(example="drawn", sample="relaxations")
def test_relaxed_draws_lie_in_their_support(example: BaseExample, sample: Callable):
    crf = example.crf()
    soft = sample(crf, (6,), temperature=2.0, generator=seeded(1))
    assert (soft >= 0).all()
    assert crf.relaxed_support.check(soft).all()


@over(example="drawn", sample="relaxations")
def test_straight_through_values_are_exactly_events(example: BaseExample, sample: Callable):
    """To the bit, also where the relaxation is far from it."""
    crf = example.leaves().crf()
    options = {"temperature": 5.0, "straight_through": True, "generator": seeded(1)}
    hard = sample(crf, (1000,), **options)
    assert hard.requires_grad
    assert ((hard == 0) | (hard == 1)).all()
    assert crf.support.check(hard).all()


@over(example="drawn", sample="relaxations")
def test_low_temperature_gives_the_event(example: BaseExample, sample: Callable):
    crf = example.crf()
    hard = sample(crf, (6,), straight_through=True, generator=seeded(3))
    cold = sample(crf, (6,), temperature=1e-6, generator=seeded(3))
    assert_close(cold, hard)


@over(example="drawn", straight_through=[False, True])
def test_temperature_moves_only_the_relaxation(example: BaseExample, straight_through: bool):
    """The same noise gives the same hard path at every temperature, hard or soft."""
    crf = example.crf()
    options = {"straight_through": straight_through}
    paths, values = [], []
    for temperature in (0.1, 1.0, 5.0):
        drawn = crf.rsample_with_paths(
            (6,), temperature=temperature, generator=seeded(2), **options
        )
        paths.append(drawn.paths)
        values.append(drawn.value)
    assert all(torch.equal(path, paths[0]) for path in paths)
    if straight_through:
        assert all(torch.equal(value, crf.event_of(paths[0])) for value in values)


@over(example="drawn", sample="relaxations")
def test_constant_reward_gives_zero_straight_through_gradient(
    example: BaseExample, sample: Callable
):
    leaf = example.leaves()
    hard = sample(leaf.crf(), (50,), straight_through=True, generator=seeded(4))
    hard.sum().mul(3.0).backward()
    for name, x in leaf.scores.items():
        grad = torch.zeros_like(x) if x.grad is None else x.grad
        assert_close(grad, torch.zeros_like(x), atol=1e-9, rtol=0, msg=name)
