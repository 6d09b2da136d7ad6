"""Samplers draw whole paths with the right probabilities, independently.

Failure rate: seeds are fixed, so these tests pass or fail alike on every run. With fresh seeds each
p-value of a correct sampler would fall below `ALPHA` = 1e-5 with that probability; about 300
p-values are computed, so that a change of seeds or of the order of draws breaks this file with a
probability of about 0.3 %. A wrong sampler is caught since 20,000 draws leave little room:
Perturb-and-MAP, a known biased sampler, fails the same test at 1e-20.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from structdist import LinearChainCRF
from tests.chains import Example, fill_padding, forbid_some, random_example, seeded
from tests.chi_square import joint_p_value, path_p_value

NUM_DRAWS = 20_000
ALPHA = 1e-5

Sampler = Callable[[LinearChainCRF, tuple, torch.Generator], Tensor]  # integer paths [*S, *B, T]


def relaxed(temperature: float) -> Sampler:
    return lambda crf, shape, generator: crf.rsample(
        shape, temperature=temperature, generator=generator
    ).argmax(-1)


def straight(temperature: float) -> Sampler:
    return lambda crf, shape, generator: crf.rsample(
        shape, temperature=temperature, straight_through=True, generator=generator
    ).argmax(-1)


def perturbed(perturb: str, **options) -> Sampler:
    return lambda crf, shape, generator: crf.perturb_and_map(
        shape, perturb=perturb, generator=generator, **options
    ).argmax(-1)


EXACT: dict[str, Sampler] = {
    "sample_paths": lambda crf, shape, g: crf.sample_paths(shape, generator=g),
    "sample": lambda crf, shape, g: crf.sample(shape, generator=g).argmax(-1),
    "rsample-0.1": relaxed(0.1),
    "rsample-1": relaxed(1.0),
    "rsample-5": relaxed(5.0),
    "straight-0.1": straight(0.1),
    "straight-1": straight(1.0),
    "straight-5": straight(5.0),
}
BIASED: dict[str, Sampler] = {
    "edges": perturbed("edges"),
    "nodes": perturbed("nodes"),
    "edges-straight": perturbed("edges", straight_through=True),
    "nodes-straight": perturbed("nodes", straight_through=True),
}
CHAINS = [
    random_example("shared", (4,), "shared", seed=1),
    random_example("per_chain-ends", (2, 3), "per_chain", ends=True, seed=2),
    random_example("per_step-ends", (4,), "per_step", ends=True, seed=3),
    forbid_some(random_example("forbidden", (4,), "shared", ends=True, seed=4), seed=4),
    fill_padding(
        forbid_some(random_example("forbidden-nan", (5,), "per_step", ends=True, seed=5), seed=5),
        torch.nan,
    ),
    random_example("no-batch", (), "shared", lengths=None, scale=2.0, seed=6),
]
over_exact = pytest.mark.parametrize("sampler", EXACT)
over_all = pytest.mark.parametrize("sampler", {**EXACT, **BIASED})
over_chains = pytest.mark.parametrize("example", CHAINS, ids=lambda e: e.name)


def draw(sampler: str, crf: LinearChainCRF, shape: tuple = (NUM_DRAWS,), seed: int = 0) -> Tensor:
    return {**EXACT, **BIASED}[sampler](crf, shape, seeded(seed))


def p_values(paths: Tensor, example: Example) -> list[float]:
    """One for each chain of the batch, of paths [S, *B, T]."""
    oracle = example.oracle()
    flat = paths.reshape(len(paths), len(oracle.chains), -1)
    return [path_p_value(flat[:, n], chain) for n, chain in enumerate(oracle.chains)]


@over_exact
@over_chains
def test_whole_paths_follow_the_distribution(example: Example, sampler: str):
    assert min(p_values(draw(sampler, example.crf()), example)) > ALPHA


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@over_exact
def test_whole_paths_in_low_precision(sampler: str, dtype: torch.dtype):
    low = CHAINS[3].to(dtype)
    assert min(p_values(draw(sampler, low.crf()), low)) > ALPHA


@pytest.mark.parametrize("sampler", BIASED)
def test_perturb_and_map_is_biased(sampler: str):
    """The test above can fail, and does for a sampler known to be biased."""
    sticky = 1.5 * torch.eye(3, dtype=torch.float64)
    example = Example("sticky", torch.zeros(4, 3, dtype=torch.float64), sticky)
    assert max(p_values(draw(sampler, example.crf()), example)) < 1e-20


@pytest.mark.parametrize("perturb", ["edges", "nodes"])
def test_perturb_and_map_is_exact_at_length_one(perturb: str):
    """A single perturbed node is the Gumbel-max trick."""
    example = random_example("one step", (4,), num_steps=1, lengths=None, ends=True, seed=2)
    assert min(p_values(draw(perturb, example.crf()), example)) > ALPHA


@over_all
@pytest.mark.parametrize("example", CHAINS[3:5], ids=lambda e: e.name)
def test_forbidden_paths_are_never_drawn(example: Example, sampler: str):
    crf = example.crf()
    assert crf.log_prob(draw(sampler, crf, (2000,), seed=9)).isfinite().all()


# Independence --------------------------------------------------------------------------------


def twins(num_chains: int) -> Example:
    """Identical chains in one batch."""
    single = random_example("single", (), num_steps=2, num_states=2, lengths=None, seed=11)
    emissions = single.emissions.expand(num_chains, -1, -1)
    return single.with_scores(emissions, single.transitions)


@over_exact
def test_identical_batch_items_are_independent(sampler: str):
    example = twins(2)
    paths, chains = draw(sampler, example.crf()), example.oracle().chains
    assert joint_p_value(paths[:, 0], paths[:, 1], *chains) > ALPHA


@over_exact
def test_successive_samples_are_independent(sampler: str):
    example = twins(1)
    paths, chains = draw(sampler, example.crf())[:, 0], example.oracle().chains * 2
    assert joint_p_value(paths[::2], paths[1::2], *chains) > ALPHA
    half = NUM_DRAWS // 2
    assert joint_p_value(paths[:half], paths[half:], *chains) > ALPHA


@over_exact
def test_successive_calls_are_independent(sampler: str):
    """One generator, used twice, never repeats itself."""
    example, generator = twins(1), seeded(3)
    crf, chains = example.crf(), example.oracle().chains * 2
    first, second = (EXACT[sampler](crf, (NUM_DRAWS,), generator)[:, 0] for _ in range(2))
    assert joint_p_value(first, second, *chains) > ALPHA


@over_exact
def test_steps_are_independent_where_the_chain_says_so(sampler: str):
    """With zero scores all K^T paths are alike: noise shared over time would show."""
    flat = Example("flat", torch.zeros(5, 3, dtype=torch.float64), torch.zeros(3, 3))
    assert min(p_values(draw(sampler, flat.crf()), flat)) > ALPHA


@over_all
def test_identical_batch_items_give_distinct_draws(sampler: str):
    """64 identical chains with 3^8 equally likely paths: hardly any two alike."""
    crf = LinearChainCRF(torch.zeros(64, 8, 3), torch.zeros(3, 3))
    assert len(draw(sampler, crf, ()).unique(dim=0)) > 55


# Reproducibility -----------------------------------------------------------------------------


@over_all
def test_generator_makes_draws_reproducible(sampler: str):
    crf = CHAINS[2].crf()
    state = torch.get_rng_state()
    once, again = (draw(sampler, crf, (7,), seed=5) for _ in range(2))
    assert torch.equal(once, again)
    assert not torch.equal(once, draw(sampler, crf, (7,), seed=6))
    assert torch.equal(state, torch.get_rng_state()), "the global generator was used"


@pytest.mark.parametrize("method", ["sample", "sample_paths", "rsample", "perturb_and_map"])
def test_global_seed_makes_draws_reproducible(method: str):
    crf = CHAINS[2].crf()
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(getattr(crf, method)((7,)))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


# The relaxation ------------------------------------------------------------------------------

RELAXED = {
    "rsample": LinearChainCRF.rsample,
    "edges": LinearChainCRF.perturb_and_map,
    "nodes": lambda *a, **options: LinearChainCRF.perturb_and_map(*a, perturb="nodes", **options),
}
over_relaxed = pytest.mark.parametrize("method", RELAXED)


@over_relaxed
@over_chains
def test_relaxed_rows_are_distributions(example: Example, method: str):
    """Rows sum to 1 within the chain, and are 0 beyond it."""
    crf = example.crf()
    soft = RELAXED[method](crf, (6,), temperature=2.0, generator=seeded(1))
    inside = torch.arange(crf.event_shape[0]) < crf.lengths[..., None]
    assert (soft >= 0).all()
    torch.testing.assert_close(soft.sum(-1), inside.double().expand(soft.shape[:-1]))


@over_relaxed
@over_chains
def test_straight_through_values_are_exactly_one_hot(example: Example, method: str):
    """To the bit, also where the relaxation is far from it."""
    crf = example.leaves().crf()
    options = {"temperature": 5.0, "straight_through": True, "generator": seeded(1)}
    hard = RELAXED[method](crf, (1000,), **options)
    assert hard.requires_grad
    assert ((hard == 0) | (hard == 1)).all()
    assert crf.support.check(hard).all()


@over_relaxed
@over_chains
def test_temperature_moves_only_the_relaxation(example: Example, method: str):
    """The same noise gives the same hard path at every temperature, hard or soft."""
    crf = example.crf()
    options = {"sample_shape": (6,)}
    hard = RELAXED[method](crf, **options, straight_through=True, generator=seeded(2))
    for temperature in (0.1, 1.0, 5.0):
        soft = RELAXED[method](crf, **options, temperature=temperature, generator=seeded(2))
        assert torch.equal(soft.argmax(-1), hard.argmax(-1))


@over_relaxed
@over_chains
def test_low_temperature_gives_the_one_hot(example: Example, method: str):
    crf = example.crf()
    hard = RELAXED[method](crf, (6,), straight_through=True, generator=seeded(3))
    cold = RELAXED[method](crf, (6,), temperature=1e-6, generator=seeded(3))
    torch.testing.assert_close(cold, hard)


@over_relaxed
@over_chains
def test_constant_reward_gives_zero_straight_through_gradient(example: Example, method: str):
    leaf = example.leaves()
    hard = RELAXED[method](leaf.crf(), (50,), straight_through=True, generator=seeded(4))
    hard.sum().mul(3.0).backward()
    for name, x in leaf.scores.items():
        grad = torch.zeros_like(x) if x.grad is None else x.grad
        torch.testing.assert_close(grad, torch.zeros_like(x), atol=1e-9, rtol=0, msg=name)


@over_relaxed
def test_relaxed_gradient_reaches_earlier_emissions_and_transitions(method: str):
    """The relaxed last step alone depends on every emission and on the transitions."""
    leaf = random_example("reach", (), lengths=None, ends=True, seed=12).leaves()
    soft = RELAXED[method](leaf.crf(), (20,), generator=seeded(5))
    (soft[:, -1] * torch.tensor([1.0, -2.0, 3.0])).sum().backward()
    assert (leaf.emissions.grad.abs().sum(-1) > 0).all()
    assert all(x.grad.abs().sum() > 0 for x in leaf.scores.values())


def test_exact_draws_carry_no_gradient():
    crf = CHAINS[1].leaves().crf()
    assert not crf.sample((2,)).requires_grad
    assert not crf.sample_paths((2,)).is_floating_point()
