"""Nothing but the answer: grad modes, autocast, caching, and inputs that stay as they were."""

import pytest
import torch
from torch.testing import assert_close

from structdist import LinearChainCRF, ops
from tests.chains import FORMS, Example, random_example, seeded
from tests.quantities import PAIR_QUANTITIES, QUANTITIES, rescored

DRAWS = {
    "sample": lambda d: d.sample((3,), generator=seeded(1)),
    "rsample": lambda d: d.rsample((3,), generator=seeded(1)),
    "straight": lambda d: d.rsample((3,), straight_through=True, generator=seeded(1)),
    "perturb_and_map": lambda d: d.perturb_and_map((3,), generator=seeded(1)),
    "argmax": lambda d: d.argmax,
}
ASKS = {**QUANTITIES, **DRAWS}
over_asks = pytest.mark.parametrize("ask", ASKS.values(), ids=ASKS.keys())
over_forms = pytest.mark.parametrize("form", FORMS)
DIFFERENTIABLE = {name: ask for name, ask in QUANTITIES.items() if name != "renyi_0"}
over_differentiable = pytest.mark.parametrize(
    "ask", DIFFERENTIABLE.values(), ids=DIFFERENTIABLE.keys()
)


def make(form: str = "shared", seed: int = 1) -> Example:
    return random_example("modes", (2, 3), form, ends=True, seed=seed)


def slopes(answer: torch.Tensor, leaf: Example) -> tuple[torch.Tensor, ...]:
    weights = torch.arange(1.0, answer.numel() + 1, dtype=answer.dtype).view(answer.shape)
    return torch.autograd.grad(
        (answer * weights).sum(), list(leaf.scores.values()), materialize_grads=True
    )


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@over_asks
def test_answers_without_gradients(ask, mode):
    expected = ask(make().crf())
    leaf = make().leaves()
    with mode():
        found = ask(leaf.crf())
    assert not found.requires_grad
    assert_close(found, expected)


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
@over_differentiable
def test_used_without_gradients_first_then_with(ask, mode):
    """The forward pass cached under `no_grad` or `inference_mode` cuts no later gradient."""
    fresh, used = make().leaves(), make().leaves()
    crf = used.crf()
    with mode():
        assert_close(ask(crf), ask(fresh.crf()))
        crf.sample((2,))
    assert_close(slopes(ask(crf), used), slopes(ask(fresh.crf()), fresh))


def test_used_with_gradients_first_then_without():
    leaf = make().leaves()
    crf = leaf.crf()
    log_partition = crf.log_partition
    with torch.no_grad():
        assert not crf.log_partition.requires_grad
        assert not crf.entropy().requires_grad
    with torch.inference_mode():
        assert_close(crf.entropy(), make().crf().entropy())
    assert slopes(log_partition, leaf)


@over_forms
@over_asks
def test_autocast_changes_nothing(ask, form: str):
    example = make(form).to(torch.float32)
    expected = ask(example.crf())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = ask(example.crf())
    assert found.dtype == expected.dtype
    assert torch.equal(found, expected)


@over_differentiable
def test_autocast_changes_no_gradient(ask):
    plain, cast = (make().to(torch.float32).leaves() for _ in range(2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = slopes(ask(cast.crf()), cast)
    assert_close(found, slopes(ask(plain.crf()), plain))


@over_differentiable
def test_two_backward_passes_through_one_object(ask):
    """Each answer has a graph of its own."""
    leaf = make().leaves()
    crf = leaf.crf()
    first, second = (slopes(ask(crf), leaf) for _ in range(2))
    assert_close(first, second)


def test_backward_through_several_answers_of_one_object():
    leaf, separate = make().leaves(), make().leaves()
    crf = leaf.crf()
    crf.entropy().sum().backward()
    crf.log_partition.sum().backward()
    crf.rsample(generator=seeded(2)).square().sum().backward()
    expected = separate.crf().entropy().sum() + separate.crf().log_partition.sum()
    expected = expected + separate.crf().rsample(generator=seeded(2)).square().sum()
    expected.backward()
    for x, y in zip(leaf.scores.values(), separate.scores.values(), strict=True):
        assert_close(x.grad, y.grad)


def test_forward_pass_runs_once(monkeypatch):
    """It is shared by all that need it."""
    calls, forward = [], ops.run_forward
    monkeypatch.setattr(ops, "run_forward", lambda chain: calls.append(1) or forward(chain))
    crf = make().leaves().crf()
    for quantity, ask in ASKS.items():
        if not quantity.startswith("renyi"):  # other orders are other chains
            ask(crf)
    assert len(calls) == 1


@pytest.mark.parametrize("requires_grad", [True, False])
@over_forms
def test_inputs_are_never_modified(form: str, requires_grad: bool):
    """Neither their values, nor `requires_grad`, nor their version counters."""
    example = make(form).leaves() if requires_grad else make(form)
    inputs = [*example.scores.values(), example.lengths]
    before = [(x.detach().clone(), x.requires_grad, x._version) for x in inputs]
    crf, other = example.crf(), rescored(make(form)).crf()
    for ask in ASKS.values():
        answer = ask(crf)
        if answer.requires_grad:
            answer.sum().backward()
    for ask in PAIR_QUANTITIES.values():
        ask(crf, other)
    crf.condition(torch.full((4,), -1)).entropy()
    crf.expand((2, 2, 3)).entropy()
    for x, (value, wanted_grad, version) in zip(inputs, before, strict=True):
        assert torch.equal(x, value)
        assert x.requires_grad == wanted_grad
        assert x._version == version


def test_modifying_an_answer_does_not_spoil_the_next():
    crf = make().crf()
    expected = crf.log_partition.clone(), crf.mean.clone()
    crf.log_partition.zero_()
    crf.mean.zero_()
    assert_close((crf.log_partition, crf.mean), expected)


def test_backward_of_a_backward_draws_no_random_numbers():
    leaf = make().leaves()
    draw = leaf.crf().rsample((3,))
    state = torch.get_rng_state()
    draw.square().sum().backward()
    assert torch.equal(state, torch.get_rng_state())


def test_non_contiguous_inputs():
    example = make("per_step")
    strided = example.with_scores(
        *[x.transpose(0, -1).contiguous().transpose(0, -1) for x in example.scores.values()]
    )
    assert not strided.emissions.is_contiguous()
    for ask in ASKS.values():
        assert_close(ask(strided.crf()), ask(example.crf()))


def test_a_change_in_place_is_noticed():
    example = make().leaves()
    crf = LinearChainCRF(example.emissions, example.transitions)
    crf.log_partition.sum().backward()
    with torch.no_grad():
        example.emissions.add_(torch.rand_like(example.emissions))
        example.transitions.mul_(2)
    fresh = LinearChainCRF(example.emissions, example.transitions)
    assert_close(crf.log_partition, fresh.log_partition)
    assert_close(crf.entropy(), fresh.entropy())


def test_lengths_are_the_callers_no_longer():
    lengths = torch.tensor([3, 2])
    crf = LinearChainCRF(torch.randn(2, 3, 4), torch.randn(4, 4), lengths)
    lengths += 10**8
    assert crf.lengths.tolist() == [3, 2]
    assert crf.log_partition.isfinite().all()


def test_bad_lengths_without_validation_stay_within_memory():
    emissions, lengths = torch.randn(3, 5, 4), torch.tensor([5, 1000, -7])
    crf = LinearChainCRF(emissions, torch.zeros(4, 4), lengths, validate_args=False)
    assert_close(crf.log_partition[0], emissions[0].logsumexp(-1).sum())
    assert crf.sample_paths((2,)).shape == (2, 3, 5)


def test_nan_without_validation_stays_nan():
    emissions = torch.zeros(2, 3, 2)
    emissions[1, 1, 0] = torch.nan
    crf = LinearChainCRF(emissions, torch.zeros(2, 2), validate_args=False)
    assert crf.log_partition.isnan().tolist() == [False, True]


def test_default_device_does_not_matter():
    crf = LinearChainCRF(torch.randn(2, 3, 4), torch.randn(4, 4))
    with torch.device("meta"):
        assert crf.entropy().device.type == "cpu"
        assert crf.sample_paths().device.type == "cpu"
        assert crf.argmax.device.type == "cpu"


def test_no_chains_at_all():
    crf = LinearChainCRF(torch.randn(0, 4, 3), torch.randn(3, 3))
    for ask in (*ASKS.values(), lambda d: d.log_prob(torch.zeros(0, 4, dtype=torch.long))):
        assert 0 in ask(crf).shape
