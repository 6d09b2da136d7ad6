"""The torch-struct plugin: equal to torch-struct where that is right, and right where it is not."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
import torch
import torch_struct
from torch import Tensor
from torch.testing import assert_close

from structdist import LinearChainCRF, ops
from structdist.compat import TorchStructLinearChainCRF, from_torch_struct, to_torch_struct
from structdist.ops import enumerate_paths

pytestmark = pytest.mark.filterwarnings("ignore:.*does not define `arg_constraints`")

LENGTHS = torch.tensor([5, 3, 2, 5])  # torch-struct wants one that equals N
N, C = 5, 3


def random_potentials(seed: int = 0, lengths: Tensor = LENGTHS) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(lengths), N - 1, C, C, generator=generator, dtype=torch.float64)


def both(seed: int = 0) -> tuple[TorchStructLinearChainCRF, torch_struct.LinearChainCRF]:
    potentials = random_potentials(seed)
    ours = TorchStructLinearChainCRF(potentials, LENGTHS)
    return ours, torch_struct.LinearChainCRF(potentials.clone(), LENGTHS)


def path_probabilities(potentials: Tensor) -> Tensor:
    """[C^N]: of one chain [N-1, C, C], by enumeration, the last node changing fastest."""
    num_edges, num_states, _ = potentials.shape
    paths = enumerate_paths(num_edges + 1, num_states)
    scores = potentials[torch.arange(num_edges), paths[:, 1:], paths[:, :-1]].sum(-1)
    return scores.softmax(0)


def p_value(paths: Tensor, probabilities: Tensor, num_states: int) -> Tensor:
    """Chi-square of whole paths [M, N] against the probability of every path [C^N]."""
    place = num_states ** torch.arange(paths.shape[-1] - 1, -1, -1)
    counts = torch.bincount((paths * place).sum(-1), minlength=len(probabilities))
    expected = len(paths) * probabilities
    statistic = ((counts - expected) ** 2 / expected).sum()
    degrees = torch.tensor(len(probabilities) - 1.0, dtype=statistic.dtype)
    return torch.special.gammaincc(degrees / 2, statistic / 2)


# Where torch-struct is right ------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["partition", "marginals", "argmax", "mode", "max", "entropy", "count"]
)
def test_properties_equal_torch_struct(name: str) -> None:
    ours, theirs = (getattr(dist, name) for dist in both())
    assert_close(ours, theirs.detach())


@pytest.mark.parametrize("name", ["kl", "cross_entropy"])
def test_divergences_equal_torch_struct_for_either_kind_of_other(name: str) -> None:
    (p, their_p), (q, their_q) = both(seed=0), both(seed=1)
    expected = getattr(their_p, name)(their_q).detach()
    without_lengths = TorchStructLinearChainCRF(q.log_potentials)
    for other in (q, their_q, without_lengths):
        assert_close(getattr(p, name)(other).detach(), expected)


@pytest.mark.parametrize("k", [1, 4])
def test_k_best_equal_torch_struct(k: int) -> None:
    ours, theirs = both()
    assert_close(ours.topk(k), theirs.topk(k).detach())
    assert_close(ours.kmax(k), theirs.kmax(k).detach())


def test_log_prob_equals_torch_struct() -> None:
    ours, theirs = both()
    events = ours.sample((2,))
    assert ours.log_prob(events).shape == (2, len(LENGTHS))
    assert_close(ours.log_prob(events), theirs.log_prob(events).detach())
    assert_close(ours.log_prob(events.long()), ours.log_prob(events))
    relaxed = ours.marginals
    assert_close(ours.log_prob(relaxed), theirs.log_prob(relaxed).detach())


@pytest.mark.parametrize("leading", [(), (1,), (2, 1), (1, len(LENGTHS)), (2, 3, len(LENGTHS))])
def test_log_prob_broadcasts_over_the_batch(leading: tuple[int, ...]) -> None:
    ours, theirs = both()
    parts = torch.rand(*leading, N - 1, C, C, dtype=torch.float64)
    shape = torch.broadcast_shapes(leading, ours.batch_shape)
    inside = torch.arange(1, N)[:, None, None] < LENGTHS[:, None, None, None]
    expected = theirs.log_prob(parts.expand(*shape, N - 1, C, C) * inside).detach()
    assert ours.log_prob(parts).shape == shape
    assert_close(ours.log_prob(parts), expected)


def test_one_chain_scores_many_parts() -> None:
    dist = TorchStructLinearChainCRF(random_potentials()[:1])
    parts = dist.sample((7,))
    assert_close(dist.log_prob(parts[:, 0]), dist.log_prob(parts)[:, 0])


def test_it_takes_every_argument_of_torch_struct() -> None:
    potentials, args = random_potentials(), {"anything": 1}
    for kind in (TorchStructLinearChainCRF, torch_struct.LinearChainCRF):
        assert kind(potentials, LENGTHS, args).args is args
        assert kind(log_potentials=potentials, lengths=LENGTHS, args=args).args is args
        assert kind(potentials).args == {}
    first, second = (TorchStructLinearChainCRF(potentials) for _ in range(2))
    assert first.args is not second.args


def test_whole_floats_are_lengths() -> None:
    potentials = random_potentials()
    ours = TorchStructLinearChainCRF(potentials, LENGTHS.double())
    theirs = torch_struct.LinearChainCRF(potentials.clone(), LENGTHS.double())
    assert torch.equal(ours.lengths, LENGTHS)
    for name in ("partition", "marginals", "entropy", "max"):
        assert_close(getattr(ours, name), getattr(theirs, name).detach())
    sequence = torch.randint(C, (len(LENGTHS), N))
    assert torch.equal(ours.to_event(sequence, C), both()[0].to_event(sequence, C))


def test_events_equal_torch_struct_and_come_back() -> None:
    ours = TorchStructLinearChainCRF(random_potentials())
    theirs = torch_struct.LinearChainCRF(random_potentials())
    sequence = torch.randint(C, (len(LENGTHS), N))
    event = ours.to_event(sequence, C)
    assert torch.equal(event, theirs.to_event(sequence, C))
    for dist in (ours, theirs):
        back, num_states = dist.from_event(event)
        assert torch.equal(back, sequence)
        assert num_states == C
    parts = ours.struct.to_parts(sequence, C, lengths=LENGTHS)
    assert torch.equal(ours.to_event(sequence, C, LENGTHS), parts)


@pytest.mark.parametrize("name", ["partition", "entropy", "max"])
def test_gradients_equal_torch_struct(name: str) -> None:
    def gradient(kind: Callable[..., torch_struct.LinearChainCRF]) -> Tensor:
        potentials = random_potentials().requires_grad_()
        return torch.autograd.grad(getattr(kind(potentials, LENGTHS), name).sum(), potentials)[0]

    assert_close(gradient(TorchStructLinearChainCRF), gradient(torch_struct.LinearChainCRF))


def test_kl_gradient_equals_torch_struct() -> None:
    def gradients(kind: Callable[..., torch_struct.LinearChainCRF]) -> tuple[Tensor, ...]:
        given = [random_potentials(seed).requires_grad_() for seed in (0, 1)]
        p, q = (kind(potentials, LENGTHS) for potentials in given)
        return torch.autograd.grad(p.kl(q).sum(), given)

    assert_close(gradients(TorchStructLinearChainCRF), gradients(torch_struct.LinearChainCRF))


def test_it_is_a_torch_struct_chain_with_every_name_and_kind() -> None:
    ours, theirs = both()
    assert isinstance(ours, torch_struct.LinearChainCRF)
    assert (ours.batch_shape, ours.event_shape) == (theirs.batch_shape, theirs.event_shape)
    for name, member in vars(torch_struct.StructDistribution).items():
        if not name.startswith("_"):
            mine = inspect.getattr_static(TorchStructLinearChainCRF, name)
            assert mine is not member, name
            assert callable(mine) == callable(member), name
            assert isinstance(mine, property) != callable(member), name


def test_torch_struct_own_code_runs_on_it() -> None:
    ours, theirs = both()
    assert_close(theirs.kl(ours).detach(), torch.zeros(len(LENGTHS), dtype=torch.float64))


# Where it is not ------------------------------------------------------------------------------


def test_identical_chains_draw_independently() -> None:
    potentials = random_potentials()[:1].expand(64, -1, -1, -1)
    dist = TorchStructLinearChainCRF(potentials)
    torch.manual_seed(0)
    for parts in (dist.gumbel_crf(), dist.sample()):
        assert len(parts.flatten(1).unique(dim=0)) > 20  # one, where all share their noise


def test_sampled_paths_have_their_probabilities() -> None:
    """Right code fails once in 10,000 seeds, here and below; the seed is fixed."""
    potentials = random_potentials()[:1, :2]
    dist = TorchStructLinearChainCRF(potentials)
    torch.manual_seed(0)
    paths, _ = dist.from_event(dist.sample((5000,))[:, 0])
    assert p_value(paths, path_probabilities(potentials[0]), C) > 1e-4


@pytest.mark.parametrize("temperature", [0.1, 1.0, 5.0])
def test_gumbel_crf_paths_have_their_probabilities(temperature: float) -> None:
    potentials = random_potentials()[:1, :2]
    dist = TorchStructLinearChainCRF(potentials.expand(5000, -1, -1, -1))
    torch.manual_seed(0)
    paths, _ = dist.from_event(dist.gumbel_crf(temperature))
    assert p_value(paths, path_probabilities(potentials[0]), C) > 1e-4


def test_gumbel_crf_is_hard_with_a_relaxed_gradient() -> None:
    potentials = random_potentials().requires_grad_()
    dist = TorchStructLinearChainCRF(potentials, LENGTHS)
    parts = dist.gumbel_crf(temperature=0.7)
    assert torch.equal(parts, dist.to_event(dist.from_event(parts)[0], C).double())
    constant = torch.autograd.grad(parts.sum(), potentials, retain_graph=True)[0]
    assert_close(constant, torch.zeros_like(constant))
    reward = (parts * random_potentials(seed=1)).sum()
    assert torch.autograd.grad(reward, potentials)[0].abs().max() > 1e-3


def test_draws_repeat_with_a_generator() -> None:
    dist, _ = both()
    for draw in (lambda g: dist.sample((3,), generator=g), lambda g: dist.gumbel_crf(generator=g)):
        first, second = (draw(torch.Generator().manual_seed(7)) for _ in range(2))
        assert torch.equal(first, second)


@pytest.mark.parametrize("sample_shape", [(), (0,), (23,), (2, 3)])
def test_any_sample_shape(sample_shape: tuple[int, ...]) -> None:
    dist, _ = both()
    parts = dist.sample(sample_shape)
    assert parts.shape == sample_shape + dist.batch_shape + dist.event_shape
    num_edges = parts.flatten(-3).sum(-1)
    assert torch.equal(num_edges, (LENGTHS - 1).double().expand(num_edges.shape))


def test_the_callers_tensor_is_left_alone() -> None:
    potentials = random_potentials()
    before = potentials.clone()
    dist = TorchStructLinearChainCRF(potentials, LENGTHS)
    for name in ("partition", "marginals", "argmax", "max", "entropy", "count"):
        getattr(dist, name)
    dist.topk(2), dist.kl(dist), dist.sample(), dist.gumbel_crf()
    assert not potentials.requires_grad
    assert torch.equal(potentials, before)


def test_forbidden_edges() -> None:
    potentials = random_potentials()[:1]
    potentials[0, 1, 2, 0] = -torch.inf
    potentials.requires_grad_()
    dist = TorchStructLinearChainCRF(potentials)
    probabilities = path_probabilities(potentials.detach()[0])
    assert_close(dist.entropy[0], torch.special.entr(probabilities).sum())
    assert_close(dist.kl(dist), torch.zeros(1, dtype=torch.float64))
    assert dist.count.item() == (probabilities > 0).sum()
    assert torch.autograd.grad(dist.entropy.sum(), potentials)[0].isfinite().all()
    event = dist.to_event(torch.tensor([[1, 0, 2, 1, 1]]), C)
    assert dist.log_prob(event).item() == -torch.inf
    assert torch.autograd.grad(dist.log_prob(dist.sample()).sum(), potentials)[0].isfinite().all()


def test_no_length_need_equal_the_number_of_nodes_and_padding_is_inert() -> None:
    lengths = torch.tensor([0, 1, 2, 4])
    potentials = random_potentials()
    edge = torch.arange(N - 1)[:, None, None]
    padded = torch.where(edge < lengths[:, None, None, None] - 1, potentials, torch.nan)
    dist = TorchStructLinearChainCRF(padded, lengths)
    assert dist.count.tolist() == [1, 3, 9, 81]
    assert_close(dist.entropy[:2], torch.tensor([1.0, 3.0], dtype=torch.float64).log())
    alone = TorchStructLinearChainCRF(potentials[3:, :3])
    for name in ("partition", "entropy", "max"):
        assert_close(getattr(dist, name)[3:], getattr(alone, name))
    assert_close(dist.marginals.sum((1, 2, 3)), (lengths - 1).clamp(min=0).double())
    assert_close(dist.log_prob(dist.topk(1)[0]), dist.max - dist.partition)


def test_to_event_heeds_lengths_and_ignores_what_stands_beyond() -> None:
    dist, _ = both()
    sequence = torch.randint(C, (len(LENGTHS), N))
    padding = torch.arange(N) >= LENGTHS[:, None]
    event = dist.to_event(sequence.masked_fill(padding, -100), C)
    assert torch.equal(event, dist.to_event(sequence, C, LENGTHS))
    back, _ = dist.from_event(event)
    assert torch.equal(back, sequence.masked_fill(padding, 0))


def test_fewer_than_k_paths() -> None:
    dist = TorchStructLinearChainCRF(torch.zeros(1, 1, 2, 2))
    assert dist.kmax(5)[:, 0].tolist() == [0, 0, 0, 0, -torch.inf]
    assert dist.topk(5).sum((1, 2, 3, 4)).tolist() == [1, 1, 1, 1, 0]


@pytest.mark.parametrize("name", ["partition", "marginals", "entropy", "max", "argmax", "count"])
def test_no_grad_is_heeded(name: str) -> None:
    potentials = random_potentials().requires_grad_()
    with torch.no_grad():
        dist = TorchStructLinearChainCRF(potentials, LENGTHS)
        assert not getattr(dist, name).requires_grad
        assert not dist.gumbel_crf().requires_grad


def test_chains_of_one_node_have_no_edges() -> None:
    dist = TorchStructLinearChainCRF(torch.zeros(2, 0, 3, 3))
    assert_close(dist.partition, torch.full((2,), 3.0).log())
    assert dist.sample((4,)).shape == (4, 2, 0, 3, 3)
    paths, num_states = dist.from_event(dist.argmax)
    assert (paths.tolist(), num_states) == ([[0], [0]], 3)


@pytest.mark.parametrize(
    ("potentials", "lengths", "message"),
    [
        (torch.zeros(4, 3, 3), None, "log_potentials"),
        (torch.zeros(2, 4, 3, 2), None, "log_potentials"),
        (torch.zeros(2, 4, 3, 3).long(), None, "log_potentials"),
        (torch.full((2, 4, 3, 3), torch.nan), None, "log_potentials"),
        (torch.full((2, 4, 3, 3), torch.inf), torch.tensor([1, 2]), "log_potentials"),
        (torch.zeros(2, 4, 3, 3), torch.tensor([5, 6]), "lengths"),
        (torch.zeros(2, 4, 3, 3), torch.tensor([5]), "lengths"),
        (torch.zeros(2, 4, 3, 3), torch.tensor([5.0, 4.5]), "lengths"),
        (torch.zeros(2, 4, 3, 3), torch.tensor([5.0, torch.nan]), "lengths"),
        (torch.zeros(2, 4, 3, 3), torch.tensor([5.0, torch.inf]), "lengths"),
        (torch.zeros(2, 4, 3, 3), torch.tensor([True, True]), "lengths"),
    ],
)
def test_bad_arguments(potentials: Tensor, lengths: Tensor | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TorchStructLinearChainCRF(potentials, lengths)


def test_without_validation_values_are_not_looked_at() -> None:
    nan = torch.full((2, 4, 3, 3), torch.nan)
    dist = TorchStructLinearChainCRF(nan, torch.tensor([5.0, 4.5]), validate_args=False)
    assert dist.lengths.tolist() == [5, 4]
    forbidden = torch.full((2, 4, 3, 3), -torch.inf)
    unchecked = TorchStructLinearChainCRF(forbidden, validate_args=False)
    assert unchecked.partition.tolist() == [-torch.inf] * 2
    assert from_torch_struct(unchecked).log_partition.tolist() == [-torch.inf] * 2
    with pytest.raises(ValueError, match="no allowed path"):
        _ = TorchStructLinearChainCRF(forbidden).partition
    with pytest.raises(ValueError, match="log_potentials"):
        TorchStructLinearChainCRF(nan, validate_args=True)


@pytest.mark.parametrize("default", [True, False])
def test_validation_follows_the_default_of_torch(
    default: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.distributions.Distribution, "_validate_args", default)
    for given, expected in ((None, default), (True, True), (False, False)):
        dist = TorchStructLinearChainCRF(random_potentials(), validate_args=given)
        assert dist._validate_args is expected
        assert from_torch_struct(dist)._validate_args is expected


def test_bad_calls() -> None:
    dist, _ = both()
    calls: list[tuple[str, Callable[[], object]]] = [
        ("value", lambda: dist.log_prob(torch.zeros(N, C, C))),
        ("value", lambda: dist.log_prob(torch.zeros(C, C))),
        ("value", lambda: dist.log_prob(torch.zeros(2, N - 1, C, C))),
        ("sequence", lambda: dist.to_event(torch.full((len(LENGTHS), N), C), C)),
        ("other", lambda: dist.kl(TorchStructLinearChainCRF(torch.zeros(1, 4, 3, 3)))),
        ("other", lambda: dist.kl(LinearChainCRF(torch.zeros(5, 3), torch.zeros(3, 3)))),
        ("k must", lambda: dist.topk(-1)),
        ("temperature", lambda: dist.gumbel_crf(0.0)),
        ("dist must", lambda: from_torch_struct(torch.distributions.Normal(0.0, 1.0))),
    ]
    for message, call in calls:
        with pytest.raises(ValueError, match=message):
            call()


# Nothing is computed twice, and nothing is stale ----------------------------------------------

PROPERTIES = ("partition", "marginals", "argmax", "mode", "max", "entropy", "count")
WITH_GRADIENT = ("partition", "marginals", "max", "entropy")


@contextmanager
def counting(monkeypatch: pytest.MonkeyPatch, *names: str) -> Iterator[list[str]]:
    """The names of those functions of `ops` that are called within the block, call by call."""
    calls: list[str] = []

    def counted(name: str, function: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **options: object) -> object:
            calls.append(name)
            return function(*args, **options)

        return call

    with monkeypatch.context() as patch:
        for name in names:
            patch.setattr(ops, name, counted(name, getattr(ops, name)))
        yield calls


@pytest.mark.parametrize("name", PROPERTIES)
def test_a_property_is_computed_once(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    dist, _ = both()
    programs = ("forward_by", "log_partition", "marginals", "entropy", "viterbi", "log_prob")
    first = getattr(dist, name)
    with counting(monkeypatch, *programs) as calls:
        assert torch.equal(getattr(dist, name), first)
        with torch.no_grad():
            assert torch.equal(getattr(dist, name), first)
    assert calls == []


@pytest.mark.parametrize("requires_grad", [False, True])
def test_one_forward_pass_serves_all(requires_grad: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    with counting(monkeypatch, "forward_by", "viterbi") as calls:
        potentials = random_potentials().requires_grad_(requires_grad)
        dist = TorchStructLinearChainCRF(potentials, LENGTHS)
        for grad_enabled in (True, False, True):
            with torch.set_grad_enabled(grad_enabled):
                for name in PROPERTIES * 2:
                    getattr(dist, name)
                dist.log_prob(dist.sample((2,))), dist.gumbel_crf(), dist.kmax(2), dist.kl(dist)
    assert sorted(calls) == ["forward_by", "viterbi"]


@pytest.mark.parametrize("name", WITH_GRADIENT)
@pytest.mark.parametrize("first", [torch.no_grad, torch.inference_mode, torch.enable_grad])
def test_the_mode_in_which_a_property_is_asked_counts(
    name: str, first: Callable[[], torch.no_grad]
) -> None:
    """It does not matter in which mode the distribution was made, or asked before."""
    potentials = random_potentials().requires_grad_()
    alone = getattr(TorchStructLinearChainCRF(potentials, LENGTHS), name)
    weights = torch.rand_like(alone)
    expected = torch.autograd.grad(alone, potentials, weights)[0]
    with first():
        dist = TorchStructLinearChainCRF(potentials, LENGTHS)
        getattr(dist, name)
    with torch.no_grad():
        assert not getattr(dist, name).requires_grad
    for _ in range(2):  # each graph is freed by its backward pass
        value = getattr(dist, name)
        assert torch.equal(value, alone)
        assert_close(torch.autograd.grad(value, potentials, weights)[0], expected)
    with torch.inference_mode():
        assert not getattr(dist, name).requires_grad


@pytest.mark.parametrize("name", PROPERTIES)
def test_answers_of_inference_mode_are_ordinary_outside(name: str) -> None:
    with torch.inference_mode():
        dist, _ = both()
        expected = getattr(dist, name)
    value = getattr(dist, name)
    assert not value.is_inference()
    assert torch.equal(value, expected)
    weight = torch.ones_like(value, requires_grad=True)
    (weight * value).sum().backward()  # saves the value, which inference tensors do not allow
    assert_close(weight.grad, value)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
@pytest.mark.parametrize("name", PROPERTIES)
def test_a_change_in_place_is_seen(name: str, dtype: torch.dtype) -> None:
    potentials = random_potentials().to(dtype)
    dist = TorchStructLinearChainCRF(potentials, LENGTHS)
    before = getattr(dist, name)
    potentials.neg_()
    potentials[:, 0, 1, 2] = -torch.inf
    expected = getattr(TorchStructLinearChainCRF(potentials.clone(), LENGTHS), name)
    assert torch.equal(getattr(dist, name), expected)
    assert not torch.equal(before, expected)
    parts = dist.argmax
    assert_close(dist.log_prob(parts), dist.max - dist.partition)
    potentials[0, 0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match="log_potentials"):
        getattr(dist, name)


@pytest.mark.parametrize("name", WITH_GRADIENT)
def test_two_backward_passes_in_half_precision(name: str) -> None:
    potentials = random_potentials().bfloat16().requires_grad_()
    dist = TorchStructLinearChainCRF(potentials, LENGTHS)
    weights = torch.rand_like(getattr(dist, name))
    first, second = (
        torch.autograd.grad(getattr(dist, name), potentials, weights)[0] for _ in range(2)
    )
    assert torch.equal(first, second)
    assert first.isfinite().all()
    assert first.abs().max() > 0


def test_a_gradient_that_is_asked_for_late_is_there() -> None:
    potentials = random_potentials()
    dist = TorchStructLinearChainCRF(potentials, LENGTHS)
    assert not dist.partition.requires_grad
    potentials.requires_grad_()
    gradient = torch.autograd.grad(dist.partition.sum(), potentials)[0]
    assert_close(gradient, dist.marginals.detach())


def test_callers_may_change_answers_and_lengths() -> None:
    lengths = LENGTHS.clone()
    dist, expected = TorchStructLinearChainCRF(random_potentials(), lengths), both()[0]
    lengths.fill_(2)
    for name in PROPERTIES:
        for _ in range(2):
            value = getattr(dist, name)
            assert torch.equal(value, getattr(expected, name))
            value.zero_()


def test_another_backend_gives_its_own_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    dist, _ = both()
    with ops.use_backend("rescaled"):
        expected = dist.entropy
    with ops.use_backend("reference"), counting(monkeypatch, "entropy") as calls:
        assert_close(dist.entropy, expected)
        assert torch.equal(dist.entropy, dist.entropy)
    assert calls == ["entropy"]


def pickled(dist: TorchStructLinearChainCRF) -> TorchStructLinearChainCRF:
    return pickle.loads(pickle.dumps(dist))


@pytest.mark.parametrize("duplicate", [copy.copy, copy.deepcopy, pickled])
def test_copies_compute_for_themselves(duplicate: Callable[..., TorchStructLinearChainCRF]) -> None:
    dist, _ = both()
    _ = dist.partition
    dist.log_potentials.neg_()
    twin = duplicate(dist)
    assert torch.equal(twin.partition, dist.partition)
    twin.log_potentials.mul_(2)
    expected = TorchStructLinearChainCRF(twin.log_potentials, LENGTHS)
    assert torch.equal(twin.partition, expected.partition)


def test_inside_transforms_nothing_is_kept() -> None:
    potentials = random_potentials()
    dist = TorchStructLinearChainCRF(potentials, LENGTHS)
    inside = torch.func.grad(lambda x: TorchStructLinearChainCRF(x, LENGTHS).partition.sum())
    assert_close(inside(potentials), dist.marginals)
    stacked = torch.stack([potentials, -potentials])
    found = torch.func.vmap(lambda x: TorchStructLinearChainCRF(x, LENGTHS).entropy)(stacked)
    assert_close(found[0], dist.entropy)
    compiled = torch.compile(
        lambda x: TorchStructLinearChainCRF(x, LENGTHS).partition, backend="eager", fullgraph=True
    )
    assert_close(compiled(potentials), dist.partition)
    scaled = torch.func.vmap(lambda c: c * dist.partition)(torch.ones(3, dtype=torch.float64))
    assert_close(scaled, dist.partition.expand(3, -1))


# Conversions ----------------------------------------------------------------------------------


@pytest.mark.parametrize("batch_shape", [(), (5,), (2, 3)])
@pytest.mark.parametrize("form", ["shared", "batch", "time"])
@pytest.mark.parametrize("ends", [False, True])
def test_round_trip_keeps_log_probs(batch_shape: tuple[int, ...], form: str, ends: bool) -> None:
    torch.manual_seed(0)
    shapes = {"shared": (C, C), "batch": (*batch_shape, C, C), "time": (*batch_shape, N - 1, C, C)}
    crf = LinearChainCRF(
        torch.randn(*batch_shape, N, C),
        torch.randn(shapes[form]),
        torch.randint(2, N + 1, batch_shape),
        start=torch.randn(C) if ends else None,
        end=torch.randn(*batch_shape, C) if ends else None,
    )
    edges = crf.to_torch_struct()
    back = LinearChainCRF.from_torch_struct(edges)
    paths = crf.sample_paths((4,))
    flat = paths.reshape(4, -1, N)
    expected = crf.log_prob(paths).reshape(4, -1)
    assert_close(back.log_prob(flat), expected)
    assert_close(edges.log_prob(edges.to_event(flat, C)), expected)
    assert_close(edges.partition, crf.log_partition.reshape(-1))


def test_gradients_pass_through_the_conversion() -> None:
    emissions, transitions = torch.randn(2, N, C), torch.randn(C, C)
    emissions[0, 3:] = torch.nan
    given = [emissions.requires_grad_(), transitions.requires_grad_()]
    crf = LinearChainCRF(*given, torch.tensor([3, N]))
    expected = torch.autograd.grad(crf.entropy().sum(), given)
    assert_close(torch.autograd.grad(to_torch_struct(crf).entropy.sum(), given), expected)


def test_from_real_torch_struct_chains() -> None:
    _, theirs = both()
    crf = from_torch_struct(theirs)
    assert_close(crf.log_partition, theirs.partition)
    assert_close(crf.edge_marginals.transpose(-1, -2), theirs.marginals)
    scores = [torch.randn(shape).log_softmax(-1) for shape in ((C, C), (7, C), (C,))]
    hmm = torch_struct.HMM(*scores, torch.randint(7, (2, N)))
    assert_close(from_torch_struct(hmm).log_partition, hmm.partition)


@pytest.mark.parametrize("num_steps", [1, 4])
def test_one_scored_node_cannot_become_an_edge(num_steps: int) -> None:
    emissions = torch.zeros(2, num_steps, 3)
    transitions, lengths = torch.randn(3, 3), torch.tensor([0, 1])
    unscored = to_torch_struct(LinearChainCRF(emissions, transitions, lengths))
    assert_close(unscored.partition, torch.tensor([1.0, 3.0]).log())
    emissions[1, 0, 2] = 1.0
    with pytest.raises(ValueError, match=r"crf .*length 1 .*index \(1,\)"):
        to_torch_struct(LinearChainCRF(emissions, transitions, lengths))
