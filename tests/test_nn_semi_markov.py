"""`SemiMarkov`: a layer that learns segments, and never breaks a rule it was given."""

from collections.abc import Callable

import pytest
import torch
from torch import nn
from torch.distributions import Distribution, Geometric, NegativeBinomial, Poisson
from torch.testing import assert_close

import structdist.nn
from structdist import SemiMarkov, SemiMarkovCRF
from tests.chains import seeded

KINDS = ["table", "poisson", "negative-binomial", "geometric"]
FAMILIES = KINDS[1:]
K, LONGEST = 3, [1, 4, 2]
NO_RETURN = torch.tensor([[True, True, True], [True, True, False], [True, True, True]])
NO_LAST = torch.tensor([True, True, False])


def strict_layer(**options) -> SemiMarkov:
    """With every kind of rule: label 0 is single, no label follows itself, nor 2 after 1."""
    return SemiMarkov(
        K,
        LONGEST,
        allow_self_transitions=False,
        allowed=NO_RETURN,
        allowed_start=NO_LAST,
        **options,
    )


def randomly_set(layer: SemiMarkov, std: float = 1.0, seed: int = 0) -> SemiMarkov:
    """The layer, with parameters that differ from their initial ones."""
    generator = seeded(seed)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * std)
    return layer


def breaks_a_rule(labels: torch.Tensor, starts: torch.Tensor) -> torch.Tensor:
    """Do segments [..., T] break a rule of `strict_layer`? Bool [...], step by step."""
    broken = labels[..., 0] == 2
    size = torch.ones_like(labels[..., 0])
    for t in range(labels.shape[-1]):
        if t > 0:
            before, after, begins = labels[..., t - 1], labels[..., t], starts[..., t]
            broken = broken | (begins & ((before == after) | ((before == 1) & (after == 2))))
            size = torch.where(begins, 1, size + 1)
        broken = broken | (size > torch.tensor(LONGEST)[labels[..., t]])
    return broken


def test_is_the_one_of_the_package():
    assert structdist.nn.SemiMarkov is SemiMarkov


# What it is made of --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("segments", [None, torch.randn(2, 5, 4, K)])
def test_equals_a_distribution_made_by_hand(kind: str, segments: torch.Tensor | None):
    layer = randomly_set(SemiMarkov(K, 4, durations=kind, start=True, end=True))
    emissions, lengths = torch.randn(2, 5, K), torch.tensor([5, 2])
    by_hand = SemiMarkovCRF(
        emissions,
        layer.transitions,
        layer.durations(),
        lengths,
        segments=segments,
        start=layer.start,
        end=layer.end,
    )
    dist = layer(emissions, lengths, segments)
    assert isinstance(dist, SemiMarkovCRF)
    assert torch.equal(dist.log_partition, by_hand.log_partition)


def test_table_is_the_scores():
    layer = randomly_set(SemiMarkov(K, 4))
    assert torch.equal(layer.durations(), layer.durations.scores)
    assert torch.equal(layer(torch.zeros(5, K)).durations, layer.durations.scores)


def count_distribution(layer: SemiMarkov) -> Distribution:
    """What torch has for the length less one of each label."""
    learnt = layer.durations
    return {
        "PoissonDurations": lambda: Poisson(learnt.log_rate.exp()),
        "NegativeBinomialDurations": lambda: NegativeBinomial(
            learnt.log_count.exp(), logits=learnt.logits
        ),
        "GeometricDurations": lambda: Geometric(logits=learnt.logits),
    }[type(learnt).__name__]()


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("longest", [1, 2, 9, LONGEST])
def test_families_are_those_of_torch_given_an_allowed_length(kind: str, longest: int | list):
    """Values and gradients, with the parameters far from their initial ones."""
    layer = randomly_set(SemiMarkov(K, longest, durations=kind, dtype=torch.float64), std=2.0)
    counts = torch.arange(layer.max_duration, dtype=torch.float64).unsqueeze(-1)
    expected = count_distribution(layer).log_prob(counts).expand(-1, K)
    by_label = torch.tensor(longest).expand(K)
    expected = torch.where(counts < by_label, expected, -torch.inf)
    expected = expected - expected.logsumexp(0)
    found = layer.durations()
    assert_close(found, expected)
    weights = torch.randn(found.shape, generator=seeded(1), dtype=torch.float64)
    parameters = list(layer.durations.parameters())
    totals = [(x.exp() * weights).sum() for x in (found, expected)]
    assert_close(*(torch.autograd.grad(x, parameters) for x in totals))


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("value", [-80.0, 80.0])
def test_extreme_parameters_give_finite_scores_and_gradients(kind: str, value: float):
    layer = SemiMarkov(K, 50, durations=kind)
    nn.init.constant_(
        layer.durations.logits if kind != "poisson" else layer.durations.log_rate, value
    )
    if kind == "negative-binomial":
        nn.init.constant_(layer.durations.log_count, value)
    scores = layer.durations()
    assert scores.isfinite().all()
    assert_close(scores.logsumexp(0), torch.zeros(K))
    layer(torch.randn(2, 60, K)).entropy().sum().backward()
    assert all(p.grad.isfinite().all() for p in layer.parameters())


@pytest.mark.parametrize("kind", KINDS)
def test_longest_of_each_label(kind: str):
    layer = SemiMarkov(K, LONGEST, durations=kind)
    assert layer.max_duration == 4
    assert ((layer.durations() > -torch.inf).sum(0) == torch.tensor(LONGEST)).all()
    for same in (tuple(LONGEST), torch.tensor(LONGEST)):
        twin = SemiMarkov(K, same, durations=kind)
        assert torch.equal(twin.durations.allowed, layer.durations.allowed)
    assert SemiMarkov(K, 4, durations=kind).durations.allowed is None


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("end", [False, True])
def test_start_and_end_flags(start: bool, end: bool):
    layer = SemiMarkov(4, 3, start=start, end=end)
    wanted = {"transitions": True, "durations.scores": True, "start": start, "end": end}
    assert {name for name, _ in layer.named_parameters()} == {n for n, on in wanted.items() if on}
    dist = layer(torch.randn(2, 5, 4))
    assert (dist.start is not None, dist.end is not None) == (start, end)


# What is forbidden ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_rules_are_never_broken(kind: str):
    """Not by the best segmentation, nor by any sample, whatever the emissions ask for."""
    emissions = torch.randn(20, 6, K, generator=seeded(1))
    emissions[:10, :, 2] += 20.0
    emissions[10:, :, 0] += 20.0
    free = SemiMarkov(K, 4, durations=kind)(emissions)
    assert breaks_a_rule(*free.labels_of(free.argmax)).all()
    dist = randomly_set(strict_layer(durations=kind))(emissions)
    draws = [dist.argmax, dist.topk(5).paths, dist.sample_paths((50,), generator=seeded(2))]
    draws += [dist.rsample((50,), straight_through=True, generator=seeded(3))]
    assert not any(breaks_a_rule(*dist.labels_of(x)).any() for x in draws)


def test_rules_are_the_only_ones():
    """The support is what the rules leave, no less."""
    layer = strict_layer()
    dist = layer(torch.zeros(5, K))
    every = dist.enumerate_support()
    allowed = dist.log_prob(every) > -torch.inf
    assert torch.equal(allowed, ~breaks_a_rule(*dist.labels_of(every)))
    assert 0 < allowed.sum() < len(every)


@pytest.mark.parametrize("kind", KINDS)
def test_rules_block_gradients_and_training(kind: str):
    layer = strict_layer(durations=kind, start=True)
    before = {name: p.detach().clone() for name, p in layer.named_parameters()}
    layer(torch.randn(2, 5, K)).entropy().sum().backward()
    for parameter in layer.parameters():
        assert parameter.grad.isfinite().all()
        assert parameter.grad.any()
    blocked = {"transitions": ~NO_RETURN | torch.eye(K, dtype=torch.bool), "start": ~NO_LAST}
    if kind == "table":
        blocked["durations.scores"] = ~layer.durations.allowed
    torch.optim.SGD(layer.parameters(), lr=1.0).step()
    for name, mask in blocked.items():
        parameter = layer.get_parameter(name)
        assert not parameter.grad[mask].any()
        assert torch.equal(parameter[mask], before[name][mask])


def test_single_lengths_of_a_family_learn_nothing():
    """A label with one length has the score 0, whatever its parameter."""
    layer = SemiMarkov(K, LONGEST, durations="poisson")
    layer(torch.randn(2, 5, K)).log_partition.sum().backward()
    assert layer.durations()[0, 0] == 0
    assert layer.durations.log_rate.grad[0] == 0
    assert layer.durations.log_rate.grad[1:].all()


def test_allowed_end():
    layer = SemiMarkov(K, 2, allowed_end=torch.tensor([True, False, False]))
    dist = layer(torch.randn(9, 4, K))
    assert (dist.labels_of(dist.argmax).labels[:, -1] == 0).all()


def test_ban_on_self_transitions_leaves_the_given_mask_alone():
    mask = NO_RETURN.clone()
    layer = SemiMarkov(K, 2, allowed=mask, allow_self_transitions=False)
    assert torch.equal(mask, NO_RETURN)
    assert not layer.allowed.diagonal().any()


# Learning ------------------------------------------------------------------------------------


def segments_task(num_chains: int = 32, length: int = 12) -> tuple[torch.Tensor, ...]:
    """Label 0 in segments of two, label 1 of three, in turn; words are silent half of the time."""
    generator = seeded(0)
    phase = torch.randint(5, (num_chains, 1), generator=generator)
    place = (torch.arange(length) + phase) % 5
    labels = (place >= 2).long()
    starts = (place == 0) | (place == 2)
    starts[:, 0] = True
    silent = torch.rand(labels.shape, generator=generator) < 0.5
    return torch.where(silent, 2, labels), labels, starts


def losses_of_training(modules: list, loss: Callable, num_steps: int = 60) -> list[float]:
    parameters = [p for module in modules for p in module.parameters()]
    optimizer = torch.optim.Adam(parameters, lr=0.1)
    losses = []
    for _ in range(num_steps):
        optimizer.zero_grad()
        losses.append(loss())
        losses[-1].backward()
        optimizer.step()
    return [x.item() for x in losses]


def test_learns_to_segment():
    torch.manual_seed(0)
    words, labels, starts = segments_task()
    encoder = nn.Embedding(3, 2)
    layer = SemiMarkov(2, 4, allow_self_transitions=False, start=True)
    losses = losses_of_training(
        [encoder, layer], lambda: layer.loss(encoder(words), labels, starts)
    )
    dist = layer(encoder(words))
    accuracy = (dist.labels_of(dist.argmax).labels == labels).double().mean()
    assert losses[-1] < losses[0] / 2
    assert accuracy > 0.9


@pytest.mark.parametrize("kind", KINDS)
def test_learns_what_another_layer_knows(kind: str):
    """The likelihood of draws of a teacher comes to be as high as under the teacher itself."""
    torch.manual_seed(0)
    teacher = randomly_set(SemiMarkov(2, 6, durations=kind))
    student = SemiMarkov(2, 6, durations=kind)
    emissions = torch.zeros(200, 20, 2)
    labels, starts = teacher(emissions).sample_labels(generator=seeded(1))
    losses = losses_of_training([student], lambda: student.loss(emissions, labels, starts), 150)
    wanted = teacher.loss(emissions, labels, starts).item()
    assert losses[0] > wanted + 0.5
    assert losses[-1] < wanted + 0.05


@pytest.mark.parametrize("lengths", [None, torch.tensor([5, 1, 0, 3])])
def test_loss_is_the_mean_negative_log_prob(lengths: torch.Tensor | None):
    layer = strict_layer(start=True)
    emissions = torch.randn(4, 5, K, generator=seeded(0))
    segments = torch.randn(4, 5, 4, K, generator=seeded(1))
    dist = layer(emissions, lengths, segments)
    labels, starts = dist.sample_labels(generator=seeded(2))
    loss = layer.loss(emissions, labels, starts, lengths, segments)
    assert loss.shape == ()
    assert_close(loss, -dist.log_prob((labels, starts)).mean())


@pytest.mark.parametrize("batch_shape", [(), (1,), (2, 3)])
def test_loss_over_any_batch(batch_shape: tuple):
    layer, labels = SemiMarkov(K, 2), torch.zeros(*batch_shape, 4, dtype=torch.int32)
    starts = torch.tensor([True, False, True, True]).expand(labels.shape)
    emissions = torch.randn(*batch_shape, 4, K)
    expected = -layer(emissions).log_prob((labels, starts)).mean()
    assert_close(layer.loss(emissions, labels, starts), expected)


def test_loss_ignores_what_stands_in_the_padding():
    layer, emissions, lengths = SemiMarkov(K, 2), torch.randn(2, 4, K), torch.tensor([4, 2])
    labels = torch.tensor([[0, 1, 1, 0], [0, 1, 0, 0]])
    padded = torch.tensor([[0, 1, 1, 0], [0, 1, -100, 2]])
    starts = torch.tensor([[True, True, False, True], [True, True, False, True]])
    other = torch.tensor([[True, True, False, True], [True, True, True, False]])
    expected = layer.loss(emissions, labels, starts, lengths)
    assert_close(layer.loss(emissions, padded, other, lengths), expected)


WRONG = [
    ([[0, 1, 1, 0], [0, 1, 1, 1]], "1101", "1110", "the move from 1 to 1 into step 2"),
    ([[0, 1, 1, 0], [1, 2, 1, 1]], "1101", "1110", "the move from 1 to 2 into step 1"),
    ([[0, 1, 1, 0], [0, 0, 1, 1]], "1101", "1010", "segment of label 0 and length 2 from step 0"),
    ([[0, 1, 1, 0], [2, 0, 1, 1]], "1101", "1110", "label 2 is forbidden"),
    ([[0, 1, 1, 0], [1, 0, 1, 1]], "1101", "1011", "must hold segmentations"),
]


def bits(*rows: str) -> torch.Tensor:
    return torch.tensor([[letter == "1" for letter in row] for row in rows])


@pytest.mark.parametrize(("labels", "first", "second", "message"), WRONG)
def test_loss_names_what_breaks_a_rule(labels: list, first: str, second: str, message: str):
    with pytest.raises(ValueError, match=message):
        strict_layer().loss(torch.randn(2, 4, K), torch.tensor(labels), bits(first, second))


def test_loss_names_the_chain():
    labels, starts = torch.tensor([[0, 1, 1, 0], [1, 2, 1, 1]]), bits("1101", "1110")
    with pytest.raises(ValueError, match=r"batch index \(1,\)"):
        strict_layer().loss(torch.randn(2, 4, K), labels, starts)


def test_loss_without_validation_is_infinite():
    layer, emissions = strict_layer(), torch.randn(2, 4, K, requires_grad=True)
    Distribution.set_default_validate_args(False)
    labels, starts = torch.tensor([[0, 1, 1, 0], [1, 2, 1, 1]]), bits("1101", "1110")
    loss = layer.loss(emissions, labels, starts)
    assert loss == torch.inf
    loss.backward()
    assert emissions.grad.isfinite().all()


def test_loss_of_no_chains():
    layer, emissions = SemiMarkov(K, 2, start=True), torch.randn(0, 4, K, requires_grad=True)
    labels = torch.zeros(0, 4, dtype=torch.long)
    loss = layer.loss(emissions, labels, labels.bool())
    loss.backward()
    assert loss == 0
    assert emissions.grad.shape == (0, 4, K)
    assert not layer.transitions.grad.any()


# State, device and dtype ---------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_state_dict_round_trip(kind: str):
    source, target = strict_layer(durations=kind, end=True), strict_layer(durations=kind, end=True)
    emissions = torch.randn(2, 5, K)
    assert not torch.equal(source(emissions).mean, target(emissions).mean)
    target.load_state_dict(source.state_dict())
    assert torch.equal(source(emissions).mean, target(emissions).mean)


def test_state_dict_of_other_rules_is_refused():
    with pytest.raises(RuntimeError, match=r"durations\.allowed"):
        SemiMarkov(K, 4).load_state_dict(SemiMarkov(K, LONGEST).state_dict())


@pytest.mark.parametrize("kind", KINDS)
def test_everything_is_made_on_the_device(kind: str):
    layer = strict_layer(durations=kind, start=True, end=True, device="meta")
    tensors = [*layer.parameters(), *layer.buffers()]
    assert len(tensors) == 7 + (kind == "negative-binomial")
    assert {x.device.type for x in tensors} == {"meta"}
    with torch.device("meta"):
        twin = strict_layer(durations=kind)
    assert {x.device.type for x in [*twin.parameters(), *twin.buffers()]} == {"meta"}


@pytest.mark.parametrize("kind", KINDS)
def test_shapes_on_meta(kind: str):
    layer = strict_layer(durations=kind, start=True, device="meta")
    emissions = torch.empty(2, 5, K, device="meta", requires_grad=True)
    labels = torch.empty(2, 5, device="meta", dtype=torch.long)
    loss = layer.loss(emissions, labels, labels.bool(), torch.tensor([5, 2]))
    assert (loss.shape, loss.device.type) == ((), "meta")
    loss.backward()
    assert emissions.grad.shape == emissions.shape


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_dtype(kind: str, dtype: torch.dtype):
    layer = strict_layer(durations=kind, end=True, dtype=dtype)
    assert {x.dtype for x in layer.parameters()} == {dtype}
    assert {x.dtype for x in layer.buffers()} == {torch.bool}
    wide = torch.promote_types(dtype, torch.float32)
    assert layer(torch.zeros(4, K, dtype=dtype)).log_partition.dtype == wide
    assert layer.double()(torch.zeros(4, K).double()).log_partition.dtype == torch.float64


@pytest.mark.parametrize("kind", FAMILIES)
def test_families_are_computed_in_single_precision_at_least(kind: str):
    half = randomly_set(SemiMarkov(K, 9, durations=kind, dtype=torch.bfloat16))
    single = SemiMarkov(K, 9, durations=kind)
    single.load_state_dict(half.state_dict())
    assert torch.equal(half.durations(), single.durations())


def test_init_std():
    layer = SemiMarkov(50, 50, init_std=3.0, dtype=torch.float64)
    assert 2.5 < layer.transitions.std() < 3.5
    assert 2.5 < layer.durations.scores.std() < 3.5
    assert not SemiMarkov(K, 2, start=True, init_std=0.0).start.any()


@pytest.mark.parametrize("kind", FAMILIES)
def test_first_lengths_are_two_on_average(kind: str):
    layer = SemiMarkov(K, 60, durations=kind, init_std=0.0)
    mean = (layer.durations().exp() * torch.arange(1, 61).unsqueeze(-1)).sum(0)
    assert_close(mean, torch.full((K,), 2.0))


def test_repr_tells_the_size_and_the_kind():
    text = repr(SemiMarkov(K, LONGEST, durations="poisson", start=True))
    assert "3, max_duration=4, allow_self_transitions=True, start=True, end=False" in text
    assert "PoissonDurations" in text


def test_hooks_run_at_a_call():
    assert SemiMarkov.__call__ is nn.Module.__call__
    layer, seen = SemiMarkov(K, 2), []
    layer.register_forward_hook(lambda module, args, output: seen.append(output))
    dist = layer(torch.zeros(4, K))
    layer.loss(torch.zeros(4, K), torch.zeros(4, dtype=torch.long), torch.ones(4).bool())
    assert seen[0] is dist
    assert len(seen) == 2


# Bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("num_labels", [0, -1, True, 3.0])
def test_bad_number_of_labels(num_labels: int):
    with pytest.raises(ValueError, match="num_labels"):
        SemiMarkov(num_labels, 2)


@pytest.mark.parametrize(
    "max_duration",
    [0, -1, True, 2.0, None, "4", [], [1, 2], [1, 2, 0], [1, 2, 3.0], torch.ones(3), [[1, 2, 3]]],
)
def test_bad_max_duration(max_duration: object):
    with pytest.raises(ValueError, match="max_duration must"):
        SemiMarkov(K, max_duration)


@pytest.mark.parametrize("durations", ["gamma", None, torch.zeros(2, 3), ["table"]])
def test_bad_durations(durations: object):
    with pytest.raises(ValueError, match="durations must be one of table, poisson"):
        SemiMarkov(K, 2, durations=durations)


@pytest.mark.parametrize("init_std", [-0.1, float("nan"), float("inf"), "wide"])
def test_bad_init_std(init_std: float):
    with pytest.raises(ValueError, match="init_std"):
        SemiMarkov(K, 2, init_std=init_std)


@pytest.mark.parametrize(
    ("name", "mask"),
    [
        ("allowed", torch.ones(3, 3)),
        ("allowed", torch.ones(3, dtype=torch.bool)),
        ("allowed_start", torch.ones(2, dtype=torch.bool)),
        ("allowed_end", [True, True, True]),
    ],
)
@pytest.mark.parametrize("allow_self_transitions", [False, True])
def test_bad_mask(name: str, mask: torch.Tensor, allow_self_transitions: bool):
    with pytest.raises(ValueError, match=f"{name} must"):
        SemiMarkov(K, 2, allow_self_transitions=allow_self_transitions, **{name: mask})


@pytest.mark.parametrize("emissions", [torch.zeros(2, 5, 4), torch.zeros(K), [[0.0] * K]])
def test_bad_emissions(emissions: object):
    with pytest.raises(ValueError, match="emissions must"):
        SemiMarkov(K, 2)(emissions)


@pytest.mark.parametrize("shape", [(2, 5, 3, K), (2, 4, 2, K), (5, 2)])
def test_bad_segments(shape: tuple):
    with pytest.raises(ValueError, match="segments must"):
        SemiMarkov(K, 2)(torch.zeros(2, 5, K), segments=torch.zeros(shape))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("labels", torch.zeros(2, 4)),
        ("labels", torch.zeros(4, dtype=torch.long)),
        ("labels", torch.full((2, 4), 3)),
        ("labels", [[0, 0, 0, 0], [0, 0, 0, 0]]),
        ("starts", torch.ones(2, 4, dtype=torch.long)),
        ("starts", torch.ones(1, 4, dtype=torch.bool)),
        ("starts", None),
    ],
)
def test_bad_labels_and_starts(name: str, wrong: object):
    good = {"labels": torch.zeros(2, 4, dtype=torch.long), "starts": torch.ones(2, 4).bool()}
    with pytest.raises(ValueError, match=f"{name} must"):
        SemiMarkov(K, 2).loss(torch.zeros(2, 4, K), **{**good, name: wrong})


def test_rules_that_leave_nothing():
    layer = SemiMarkov(1, 2, allow_self_transitions=False)
    assert layer(torch.zeros(2, 1)).log_partition.isfinite()
    with pytest.raises(ValueError, match="no allowed path"):
        layer(torch.zeros(3, 1)).entropy()
