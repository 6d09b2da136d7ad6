"""Nothing but the answer: grad modes, autocast, caching, and inputs that stay as they were."""

import torch
from torch.testing import assert_close

from structdist import ops
from tests.derivatives import gradients
from tests.quantities import PAIR_QUANTITIES
from tests.structures.registry import over
from tests.structures.structure import Ask, BaseExample, Structure, seeded

WITHOUT_GRADIENTS = {"no_grad": torch.no_grad, "inference_mode": torch.inference_mode}


def make(structure: Structure, form: str | None = None) -> BaseExample:
    return structure.random("modes", (2, 3), form, seed=1)


@over(ask="asks", mode=WITHOUT_GRADIENTS)
def test_answers_without_gradients(structure: Structure, ask: Ask, mode):
    expected = ask(make(structure).crf())
    leaf = make(structure).leaves()
    with mode():
        found = ask(leaf.crf())
    assert not found.requires_grad
    assert_close(found, expected)


@over(ask="smooth_quantities", mode=WITHOUT_GRADIENTS)
def test_used_without_gradients_first_then_with(structure: Structure, ask: Ask, mode):
    """The forward pass cached under `no_grad` or `inference_mode` cuts no later gradient."""
    fresh, used = make(structure).leaves(), make(structure).leaves()
    crf = used.crf()
    with mode():
        assert_close(ask(crf), ask(fresh.crf()))
        crf.sample((2,))
    assert_close(gradients(ask(crf), used), gradients(ask(fresh.crf()), fresh))


@over()
def test_used_with_gradients_first_then_without(structure: Structure):
    leaf = make(structure).leaves()
    crf = leaf.crf()
    log_partition = crf.log_partition
    with torch.no_grad():
        assert not crf.log_partition.requires_grad
        assert not crf.entropy().requires_grad
    with torch.inference_mode():
        assert_close(crf.entropy(), make(structure).crf().entropy())
    assert gradients(log_partition, leaf)


@over(form="forms", ask="asks")
def test_autocast_changes_nothing(structure: Structure, form: str, ask: Ask):
    example = make(structure, form).to(torch.float32)
    expected = ask(example.crf())
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = ask(example.crf())
    assert found.dtype == expected.dtype
    assert torch.equal(found, expected)


@over(ask="smooth_quantities")
def test_autocast_changes_no_gradient(structure: Structure, ask: Ask):
    plain, cast = (make(structure).to(torch.float32).leaves() for _ in range(2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = gradients(ask(cast.crf()), cast)
    assert_close(found, gradients(ask(plain.crf()), plain))


@over(ask="smooth_quantities")
def test_two_backward_passes_through_one_object(structure: Structure, ask: Ask):
    """Each answer has a graph of its own."""
    leaf = make(structure).leaves()
    crf = leaf.crf()
    first, second = (gradients(ask(crf), leaf) for _ in range(2))
    assert_close(first, second)


@over()
def test_backward_through_several_answers_of_one_object(structure: Structure):
    leaf, separate = make(structure).leaves(), make(structure).leaves()
    crf = leaf.crf()
    crf.entropy().sum().backward()
    crf.log_partition.sum().backward()
    crf.rsample(generator=seeded(2)).square().sum().backward()
    expected = separate.crf().entropy().sum() + separate.crf().log_partition.sum()
    expected = expected + separate.crf().rsample(generator=seeded(2)).square().sum()
    expected.backward()
    for x, y in zip(leaf.scores.values(), separate.scores.values(), strict=True):
        assert_close(x.grad, y.grad)


@over()
def test_forward_pass_runs_once(structure: Structure, monkeypatch):
    """It is shared by all that need it."""
    calls, forward = [], ops.forward_by
    monkeypatch.setattr(ops, "forward_by", lambda *given: calls.append(1) or forward(*given))
    crf = make(structure).leaves().crf()
    for quantity, ask in structure.asks.items():
        if not quantity.startswith("renyi"):  # other orders are other distributions
            ask(crf)
    assert len(calls) == 1


@over(form="forms", requires_grad=[True, False])
def test_inputs_are_never_modified(structure: Structure, form: str, requires_grad: bool):
    """Neither their values, nor `requires_grad`, nor their version counters."""
    example = make(structure, form).leaves() if requires_grad else make(structure, form)
    inputs = [*example.scores.values(), example.lengths]
    before = [(x.detach().clone(), x.requires_grad, x._version) for x in inputs]
    crf, other = example.crf(), make(structure, form).rescored().crf()
    for ask in structure.asks.values():
        answer = ask(crf)
        if answer.requires_grad:
            answer.sum().backward()
    for ask in PAIR_QUANTITIES.values():
        ask(crf, other)
    crf.condition(torch.full(crf.event_shape[:1], -1)).entropy()
    crf.expand((2, 2, 3)).entropy()
    for x, (value, wanted_grad, version) in zip(inputs, before, strict=True):
        assert torch.equal(x, value)
        assert x.requires_grad == wanted_grad
        assert x._version == version


@over()
def test_modifying_an_answer_does_not_spoil_the_next(structure: Structure):
    crf = make(structure).crf()
    expected = crf.log_partition.clone(), crf.mean.clone()
    crf.log_partition.zero_()
    crf.mean.zero_()
    assert_close((crf.log_partition, crf.mean), expected)


@over()
def test_backward_of_a_backward_draws_no_random_numbers(structure: Structure):
    leaf = make(structure).leaves()
    draw = leaf.crf().rsample((3,))
    state = torch.get_rng_state()
    draw.square().sum().backward()
    assert torch.equal(state, torch.get_rng_state())


@over(form="forms")
def test_non_contiguous_inputs(structure: Structure, form: str):
    example = make(structure, form)
    strided = example.with_scores(
        *[x.transpose(0, -1).contiguous().transpose(0, -1) for x in example.scores.values()]
    )
    assert not next(iter(strided.scores.values())).is_contiguous()
    for ask in structure.asks.values():
        assert_close(ask(strided.crf()), ask(example.crf()))


@over()
def test_a_change_in_place_is_noticed(structure: Structure):
    example = make(structure).leaves()
    crf = example.crf()
    crf.log_partition.sum().backward()
    with torch.no_grad():
        for scores in example.scores.values():
            scores.add_(torch.rand(scores.shape, generator=seeded(3)))
    fresh = example.crf()
    assert_close(crf.log_partition, fresh.log_partition)
    assert_close(crf.entropy(), fresh.entropy())


@over()
def test_lengths_are_the_callers_no_longer(structure: Structure):
    example = make(structure)
    crf, expected = example.crf(), example.lengths.clone()
    example.lengths.add_(10**8)
    assert torch.equal(crf.lengths, expected)
    assert crf.log_partition.isfinite().all()


@over()
def test_nothing_in_the_batch(structure: Structure):
    crf = structure.random("nothing", (0,), lengths=None).crf()
    no_paths = torch.zeros(0, crf.event_shape[0], dtype=torch.long)
    for ask in (*structure.asks.values(), lambda d: d.log_prob(no_paths)):
        assert 0 in ask(crf).shape
