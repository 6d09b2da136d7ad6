"""Noise that is given instead of drawn, and temperatures that are tensors."""

from __future__ import annotations

import pytest
import torch
from torch.autograd import gradcheck

from structdist import LinearChainCRF, ops
from tests.traps.chains import chain, gradients, leaves, normal, scores, seeded

T, K = 4, 3
DRAWS = {
    "rsample": lambda d, *shape, **options: d.rsample(*shape, **options),
    "edges": lambda d, *shape, **options: d.perturb_and_map(*shape, perturb="edges", **options),
    "nodes": lambda d, *shape, **options: d.perturb_and_map(*shape, perturb="nodes", **options),
}
CPU = torch.device("cpu")
NOISE = {"rsample": (T, K), "edges": (1 + (T - 1) * K, K), "nodes": (T, K)}
over_draws = pytest.mark.parametrize("kind", DRAWS)
over_hardness = pytest.mark.parametrize("straight_through", [False, True])
SHAPES = [((), ()), ((2,), ()), ((), (3,)), ((2,), (3,)), ((2, 1), (5, 3))]


def noise_for(kind: str, *shape: int, seed: int = 0) -> torch.Tensor:
    return ops.gumbel_noise((*shape, *NOISE[kind]), torch.float64, CPU, seeded(seed))


# Noise ---------------------------------------------------------------------------------------


@over_draws
@over_hardness
@pytest.mark.parametrize(("sample_shape", "batch_shape"), SHAPES)
def test_given_noise_does_what_drawn_noise_does(kind, straight_through, sample_shape, batch_shape):
    dist = chain(batch_shape, T, K)
    options = {"temperature": 0.7, "straight_through": straight_through}
    drawn = DRAWS[kind](dist, sample_shape, generator=seeded(3), **options)
    noise = noise_for(kind, *sample_shape, *batch_shape, seed=3)
    kept = noise.clone()
    assert torch.equal(DRAWS[kind](dist, sample_shape, noise=noise, **options), drawn)
    assert torch.equal(noise, kept)


@over_draws
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_given_noise_in_every_dtype(kind, dtype):
    dist = chain((2,), T, K, dtype=dtype)
    drawn = DRAWS[kind](dist, (5,), generator=seeded(3))
    noise = ops.gumbel_noise((5, 2, *NOISE[kind]), dtype, CPU, seeded(3))
    assert torch.equal(DRAWS[kind](dist, (5,), noise=noise), drawn)
    assert DRAWS[kind](dist, (5,), noise=noise.double()).dtype == dtype


def test_given_noise_decides_the_paths_of_a_draw():
    dist, noise = chain((2,), T, K), noise_for("rsample", 5, 2)
    value, paths = dist.rsample_with_paths((5,), noise=noise)
    assert torch.equal(value, dist.rsample((5,), noise=noise))
    assert torch.equal(paths, value.argmax(-1))


@over_draws
def test_no_gradient_flows_to_noise(kind):
    dist, noise = chain((2,), T, K), noise_for(kind, 2).requires_grad_()
    assert not DRAWS[kind](dist, noise=noise).requires_grad


@over_draws
@pytest.mark.parametrize(
    "shape",
    [(), (T, K), (5, T, K), (2, T, K), (5, 2, T), (5, 2, T, K + 1), (1, 2, T, K), (2, 5, T, K)],
)
def test_noise_of_a_wrong_shape(kind, shape):
    """Noise is not broadcast: draws that share it would not be independent."""
    with pytest.raises(ValueError, match="noise must be"):
        DRAWS[kind](chain((2,), T, K), (5,), noise=torch.zeros(shape).double())


def test_noise_of_the_other_kind():
    dist = chain((2,), T, K)
    with pytest.raises(ValueError, match=r"noise must be \(2, 10, 3\)"):
        dist.perturb_and_map(perturb="edges", noise=noise_for("nodes", 2))
    with pytest.raises(ValueError, match=r"noise must be \(2, 4, 3\)"):
        dist.perturb_and_map(perturb="nodes", noise=noise_for("edges", 2))


@over_draws
@pytest.mark.parametrize("noise", [0.5, torch.zeros(4, 3, dtype=torch.long), [[0.0]]])
def test_noise_that_is_no_noise(kind, noise):
    with pytest.raises(ValueError, match="noise must be"):
        DRAWS[kind](chain((), T, K), noise=noise)


@over_draws
def test_noise_and_a_generator_together(kind):
    with pytest.raises(ValueError, match=r"noise.*generator"):
        DRAWS[kind](chain((2,), T, K), noise=noise_for(kind, 2), generator=seeded(0))


# Temperatures --------------------------------------------------------------------------------


@over_draws
@over_hardness
@pytest.mark.parametrize("shape", [(), (1,), (3,), (5, 1), (5, 3)])
def test_temperatures_are_those_of_a_loop(backend, kind, straight_through, shape):
    dist = chain((3,), T, K)
    temperatures = normal(*shape, seed=5).exp()
    noise = noise_for(kind, 5, 3)
    found = DRAWS[kind](
        dist, (5,), temperature=temperatures, noise=noise, straight_through=straight_through
    )
    by_draw = temperatures.expand(5, 3)
    for s in range(5):
        for n in range(3):
            alone = DRAWS[kind](
                dist,
                (5,),
                temperature=float(by_draw[s, n]),
                noise=noise,
                straight_through=straight_through,
            )
            torch.testing.assert_close(found[s, n], alone[s, n])


@over_draws
@pytest.mark.parametrize("shape", [(), (3,), (2, 1), (2, 3)])
def test_gradients_of_temperatures(backend, kind, shape):
    """By finite differences, and those of the scores beside them."""
    given = [x.requires_grad_() for x in scores((3,), T, K).values()]
    temperature = normal(*shape, seed=5).mul(0.3).exp().requires_grad_()
    noise = noise_for(kind, 2, 3)
    lengths = torch.tensor([4, 2, 0])

    def draw(temperature, emissions, transitions, start, end):
        dist = LinearChainCRF(emissions, transitions, lengths, start=start, end=end)
        return DRAWS[kind](dist, (2,), temperature=temperature, noise=noise)

    assert gradcheck(draw, (temperature, *given), fast_mode=True)


@over_draws
@pytest.mark.parametrize("shape", [(), (3,), (2, 1), (2, 3)])
def test_straight_through_gradients_of_temperatures_are_those_of_the_relaxation(
    backend, kind, shape
):
    made = leaves(scores((3,), T, K)) | {"temperature": normal(*shape, seed=5).exp()}
    made["temperature"].requires_grad_()
    dist = LinearChainCRF(**{name: x for name, x in made.items() if name != "temperature"})
    options = {"temperature": made["temperature"], "noise": noise_for(kind, 2, 3)}
    soft = DRAWS[kind](dist, (2,), **options)
    hard = DRAWS[kind](dist, (2,), straight_through=True, **options)
    assert torch.equal(hard, dist.event_of(soft.argmax(-1)))
    expected = gradients(soft, made)
    assert expected["temperature"].abs().min() > 0
    for name, grad in gradients(hard, made).items():
        torch.testing.assert_close(grad, expected[name])


@over_draws
def test_a_float32_temperature_of_a_float64_chain(kind):
    temperature = torch.tensor(0.5, requires_grad=True)
    DRAWS[kind](chain((3,), T, K), temperature=temperature).pow(2).sum().backward()
    assert temperature.grad.dtype == torch.float32
    assert temperature.grad.isfinite()


BAD = [0.0, -1.0, float("nan"), float("inf"), -0.0]


@over_draws
@pytest.mark.parametrize("bad", BAD)
def test_temperatures_that_are_refused(kind, bad):
    dist, draw = chain((3,), T, K), DRAWS[kind]
    one_bad = torch.tensor([0.5, bad, 1.0])
    for temperature in (bad, torch.tensor(bad), torch.tensor(bad).requires_grad_(), one_bad):
        with pytest.raises(ValueError, match="temperature must be positive"):
            draw(dist, (2,), temperature=temperature)


@over_draws
@pytest.mark.parametrize("shape", [(2,), (3, 1), (4, 3), (1, 2, 3), (2, 3, 1)])
def test_temperatures_of_a_wrong_shape(kind, shape):
    with pytest.raises(ValueError, match="temperature must broadcast"):
        DRAWS[kind](chain((3,), T, K), (2,), temperature=torch.ones(shape))


@over_draws
@pytest.mark.parametrize("temperature", ["warm", None, torch.ones(3, dtype=torch.long)])
def test_temperatures_that_are_no_numbers(kind, temperature):
    with pytest.raises(ValueError, match="temperature must be"):
        DRAWS[kind](chain((3,), T, K), temperature=temperature)


@over_draws
@over_hardness
def test_temperatures_under_transforms(kind, straight_through):
    """One temperature for each call of a mapped function, and its gradient."""
    made, noise = scores((3,), T, K), noise_for(kind, 3)
    temperatures = normal(3, seed=5).exp()

    def draw(temperature, noise, emissions, end):
        scored = LinearChainCRF(emissions, made["transitions"], start=made["start"], end=end)
        return DRAWS[kind](
            scored, temperature=temperature, noise=noise, straight_through=straight_through
        )

    weights, inputs = normal(T, K, seed=6), (noise, made["emissions"], made["end"])
    found = torch.func.vmap(draw)(temperatures, *inputs)
    given = temperatures.clone().requires_grad_()
    expected = draw(given, *inputs)
    torch.testing.assert_close(found, expected.detach())
    (wanted,) = torch.autograd.grad((expected * weights).sum(), given)
    slope = torch.func.grad(lambda *inputs: (draw(*inputs) * weights).sum())
    torch.testing.assert_close(torch.func.vmap(slope)(temperatures, *inputs), wanted)
