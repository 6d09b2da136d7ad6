"""Draws of linear chains: rows of the relaxation, and Perturb-and-MAP, which is biased.

Failure rate: as in `tests/test_sampling.py`, for about 20 p-values: 0.02 % with fresh seeds.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from structdist import LinearChainCRF
from tests.chains import Example, random_example, seeded
from tests.chi_square import ALPHA, NUM_DRAWS, p_values
from tests.structures.linear_chain import DRAWN, EXACT, RELAXED
from tests.structures.structure import Sampler


def perturbed(perturb: str, **options) -> Sampler:
    return lambda crf, shape, generator: crf.perturb_and_map(
        shape, perturb=perturb, generator=generator, **options
    ).argmax(-1)


BIASED: dict[str, Sampler] = {
    "edges": perturbed("edges"),
    "nodes": perturbed("nodes"),
    "edges-straight": perturbed("edges", straight_through=True),
    "nodes-straight": perturbed("nodes", straight_through=True),
}
over_exact = pytest.mark.parametrize("sampler", EXACT.values(), ids=EXACT.keys())
over_biased = pytest.mark.parametrize("sampler", BIASED.values(), ids=BIASED.keys())
over_relaxed = pytest.mark.parametrize("sample", RELAXED.values(), ids=RELAXED.keys())
over_chains = pytest.mark.parametrize("example", DRAWN, ids=lambda e: e.name)


def draw(
    sampler: Sampler, crf: LinearChainCRF, shape: tuple = (NUM_DRAWS,), seed: int = 0
) -> Tensor:
    return sampler(crf, shape, seeded(seed))


@over_biased
def test_perturb_and_map_is_biased(sampler: Sampler):
    """The chi-square test can fail, and does for a sampler known to be biased."""
    sticky = 1.5 * torch.eye(3, dtype=torch.float64)
    example = Example("sticky", torch.zeros(4, 3, dtype=torch.float64), sticky)
    assert max(p_values(draw(sampler, example.crf()), example)) < 1e-20


@pytest.mark.parametrize("perturb", ["edges", "nodes"])
def test_perturb_and_map_is_exact_at_length_one(perturb: str):
    """A single perturbed node is the Gumbel-max trick."""
    example = random_example("one step", (4,), num_steps=1, lengths=None, ends=True, seed=2)
    assert min(p_values(draw(BIASED[perturb], example.crf()), example)) > ALPHA


@over_exact
def test_steps_of_a_flat_chain_are_independent(sampler: Sampler):
    """With zero scores all K^T paths are alike: noise shared over time would show."""
    flat = Example("flat", torch.zeros(5, 3, dtype=torch.float64), torch.zeros(3, 3))
    assert min(p_values(draw(sampler, flat.crf()), flat)) > ALPHA


@over_biased
@pytest.mark.parametrize("example", DRAWN[3:5], ids=lambda e: e.name)
def test_forbidden_paths_are_never_drawn(example: Example, sampler: Sampler):
    crf = example.crf()
    assert crf.log_prob(draw(sampler, crf, (2000,), seed=9)).isfinite().all()


@over_biased
def test_identical_batch_items_give_distinct_draws(sampler: Sampler):
    """64 identical chains with 3^8 equally likely paths: hardly any two alike."""
    crf = LinearChainCRF(torch.zeros(64, 8, 3), torch.zeros(3, 3))
    assert len(draw(sampler, crf, ()).unique(dim=0)) > 55


@over_biased
def test_generator_makes_draws_reproducible(sampler: Sampler):
    crf = DRAWN[2].crf()
    state = torch.get_rng_state()
    once, again = (draw(sampler, crf, (7,), seed=5) for _ in range(2))
    assert torch.equal(once, again)
    assert not torch.equal(once, draw(sampler, crf, (7,), seed=6))
    assert torch.equal(state, torch.get_rng_state()), "the global generator was used"


def test_global_seed_makes_draws_reproducible():
    crf = DRAWN[2].crf()
    draws = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        draws.append(crf.perturb_and_map((7,)))
    assert torch.equal(draws[0], draws[1])
    assert not torch.equal(draws[0], draws[2])


# The relaxation ------------------------------------------------------------------------------


@over_relaxed
@over_chains
def test_relaxed_rows_are_distributions(example: Example, sample: Callable):
    """Rows sum to 1 within the chain, and are 0 beyond it."""
    crf = example.crf()
    soft = sample(crf, (6,), temperature=2.0, generator=seeded(1))
    inside = torch.arange(crf.event_shape[0]) < crf.lengths[..., None]
    assert (soft >= 0).all()
    torch.testing.assert_close(soft.sum(-1), inside.double().expand(soft.shape[:-1]))


@over_relaxed
@over_chains
def test_temperature_moves_only_the_relaxation(example: Example, sample: Callable):
    """The argmax of each row is the hard state, at every temperature."""
    crf = example.crf()
    options = {"sample_shape": (6,)}
    hard = sample(crf, **options, straight_through=True, generator=seeded(2))
    for temperature in (0.1, 1.0, 5.0):
        soft = sample(crf, **options, temperature=temperature, generator=seeded(2))
        assert torch.equal(soft.argmax(-1), hard.argmax(-1))


@over_relaxed
def test_relaxed_gradient_reaches_earlier_emissions_and_transitions(sample: Callable):
    """The relaxed last step alone depends on every emission and on the transitions."""
    leaf = random_example("reach", (), lengths=None, ends=True, seed=12).leaves()
    soft = sample(leaf.crf(), (20,), generator=seeded(5))
    (soft[:, -1] * torch.tensor([1.0, -2.0, 3.0])).sum().backward()
    assert (leaf.emissions.grad.abs().sum(-1) > 0).all()
    assert all(x.grad.abs().sum() > 0 for x in leaf.scores.values())
