"""The torch-struct plugin for segments: equal to torch-struct where that is right, and right."""

from __future__ import annotations

import copy
import inspect
import pickle
from collections.abc import Callable
from itertools import pairwise

import pytest
import torch
import torch_struct
from torch import Tensor
from torch.testing import assert_close

from structdist import SemiMarkovCRF, ops
from structdist.compat import (
    TorchStructSemiMarkovCRF,
    semi_markov_from_torch_struct,
    semi_markov_to_torch_struct,
)
from tests.chains import seeded

pytestmark = pytest.mark.filterwarnings("ignore:.*does not define `arg_constraints`")

B, N, K, C = 3, 5, 4, 2
LENGTHS = torch.tensor([5, 3, 2])


def random_potentials(seed: int = 0, shape: tuple[int, ...] = (B, N - 1, K, C, C)) -> Tensor:
    return torch.randn(shape, generator=seeded(seed), dtype=torch.float64)


def both(seed: int = 0) -> tuple[TorchStructSemiMarkovCRF, torch_struct.SemiMarkovCRF]:
    """With equal lengths: with others torch-struct is wrong."""
    potentials = random_potentials(seed)
    return TorchStructSemiMarkovCRF(potentials), torch_struct.SemiMarkovCRF(potentials.clone())


def sequences(length: int, num_nodes: int = N, num_sizes: int = K, num_labels: int = C) -> Tensor:
    """[P, N]: every sequence of a chain, -1 where no segment begins, by recursion."""
    if length == 0:
        return torch.full((1, num_nodes), -1)

    def continued(start: list[int]) -> list[list[int]]:
        if len(start) == length:
            return [start]
        return [
            whole
            for size in range(1, min(num_sizes - 1, length - len(start)) + 1)
            for label in range(num_labels)
            for whole in continued([*start, *[-1] * (size - 1), label])
        ]

    found = [whole for label in range(num_labels) for whole in continued([label])]
    padding = [-1] * (num_nodes - length)
    return torch.tensor([whole + padding for whole in found])


def scores_of(potentials: Tensor, every: Tensor) -> Tensor:
    """[P]: the scores of sequences [P, N] of one chain [N-1, K, C, C], part by part."""
    scores = potentials.new_zeros(len(every))
    for row, sequence in enumerate(every.tolist()):
        nodes = [n for n, label in enumerate(sequence) if label >= 0]
        for n, end in pairwise(nodes):
            scores[row] += potentials[n, end - n, sequence[end], sequence[n]]
    return scores


def p_value(drawn: Tensor, every: Tensor, probabilities: Tensor) -> Tensor:
    """Chi-square of whole sequences [M, N] against the probability of every one [P, N]."""
    counts = (drawn.unsqueeze(1) == every).all(-1).sum(0)
    assert counts.sum() == len(drawn)
    expected = len(drawn) * probabilities
    statistic = ((counts - expected) ** 2 / expected).sum()
    degrees = torch.tensor(len(every) - 1.0, dtype=statistic.dtype)
    return torch.special.gammaincc(degrees / 2, statistic / 2)


# Against enumeration --------------------------------------------------------------------------


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (4, 2), (4, 1), (7, 2), (3, 3)])
@pytest.mark.parametrize("length", [0, 1, 2, 4, 5])
def test_everything_equals_enumeration(sizes: tuple[int, int], length: int) -> None:
    """Values, gradients and best paths, with NaN beyond the length and where k = 0."""
    num_sizes, num_labels = sizes
    potentials = random_potentials(shape=(1, N - 1, num_sizes, num_labels, num_labels))
    every = sequences(length, N, num_sizes, num_labels)
    free = potentials[0].clone().requires_grad_()
    scores = scores_of(free, every)
    inside = torch.arange(num_sizes) + torch.arange(N - 1).unsqueeze(-1) < length
    inside = (inside & (torch.arange(num_sizes) > 0))[..., None, None]
    given = torch.where(inside, potentials, torch.nan).requires_grad_()
    dist = TorchStructSemiMarkovCRF(given, torch.tensor([length]))
    assert_close(dist.partition[0], scores.logsumexp(0))
    entropy = torch.special.entr(scores.softmax(0)).sum()
    assert_close(dist.entropy[0], entropy)
    assert_close(dist.max[0], scores.max())
    assert dist.count.item() == len(every)
    assert_close(dist.kmax(3)[: len(every), 0], scores.sort(descending=True).values[:3])
    if length > 1:
        best = every[scores.argmax()]
        assert torch.equal(dist.from_event(dist.argmax)[0][0], best)
        for answer, expected in ((dist.partition, scores.logsumexp(0)), (dist.entropy, entropy)):
            wanted = torch.autograd.grad(expected, free, retain_graph=True)[0]
            assert_close(torch.autograd.grad(answer.sum(), given)[0][0], wanted)
        marginals = torch.autograd.grad(scores.logsumexp(0), free)[0]
        assert_close(dist.marginals[0], marginals)
        events = dist.to_event(every.unsqueeze(1), (num_labels, num_sizes))
        assert_close(dist.log_prob(events)[:, 0], scores.log_softmax(0))


def test_chains_of_unequal_lengths_have_all_their_segments() -> None:
    """torch-struct leaves out what reaches beyond the shortest chain."""
    potentials = random_potentials()
    expected = torch.stack(
        [scores_of(x, sequences(n)).logsumexp(0) for x, n in zip(potentials, LENGTHS, strict=True)]
    )
    assert_close(TorchStructSemiMarkovCRF(potentials, LENGTHS).partition, expected)
    theirs = torch_struct.SemiMarkovCRF(potentials.clone(), LENGTHS).partition
    assert theirs[0] < expected[0] - 0.1


@pytest.mark.parametrize("scale", [30.0, 300.0])
@pytest.mark.parametrize("backend", ["rescaled", "reference"])
def test_large_scores(scale: float, backend: str) -> None:
    potentials = random_potentials() * scale
    expected = torch.stack([scores_of(x, sequences(N)).logsumexp(0) for x in potentials])
    with ops.use_backend(backend):
        assert_close(TorchStructSemiMarkovCRF(potentials).partition, expected)
    assert_close(TorchStructSemiMarkovCRF(potentials).partition, expected)


def test_forbidden_parts() -> None:
    potentials = random_potentials(shape=(1, N - 1, K, C, C))
    potentials[0, 1, 2, 0, 1] = potentials[0, :, 3] = -torch.inf
    potentials.requires_grad_()
    dist = TorchStructSemiMarkovCRF(potentials)
    every = sequences(N)
    scores = scores_of(potentials.detach()[0], every)
    assert_close(dist.entropy[0], torch.special.entr(scores.softmax(0)).sum())
    assert_close(dist.kl(dist), torch.zeros(1, dtype=torch.float64))
    assert dist.count.item() == (scores > -torch.inf).sum() < len(every)
    assert torch.autograd.grad(dist.entropy.sum(), potentials)[0].isfinite().all()
    log_probs = dist.log_prob(dist.to_event(every.unsqueeze(1), (C, K)))[:, 0]
    assert_close(log_probs.detach(), scores.log_softmax(0))


# Where torch-struct is right ------------------------------------------------------------------


@pytest.mark.parametrize("name", ["partition", "marginals", "argmax", "mode", "max", "entropy"])
def test_properties_equal_torch_struct(name: str) -> None:
    ours, theirs = (getattr(dist, name) for dist in both())
    assert_close(ours, theirs.detach())


def test_divergences_take_either_kind_of_other() -> None:
    """They equal enumeration: torch-struct has none for segments."""
    (p, _), (q, their_q) = both(seed=0), both(seed=1)
    every = sequences(N)
    log_p, log_q = (
        torch.stack([scores_of(x, every).log_softmax(0) for x in dist.log_potentials])
        for dist in (p, q)
    )
    for other in (q, their_q):
        assert_close(p.kl(other), (log_p.exp() * (log_p - log_q)).sum(-1))
        assert_close(p.cross_entropy(other), -(log_p.exp() * log_q).sum(-1))


def test_divergences_take_lengths_from_the_first() -> None:
    p, q = (TorchStructSemiMarkovCRF(random_potentials(seed), LENGTHS) for seed in (0, 1))
    without_lengths = TorchStructSemiMarkovCRF(q.log_potentials)
    assert_close(p.kl(without_lengths), p.kl(q))


@pytest.mark.parametrize("k", [1, 4])
def test_k_best_equal_torch_struct(k: int) -> None:
    ours, theirs = both()
    assert_close(ours.topk(k), theirs.topk(k).detach())
    assert_close(ours.kmax(k), theirs.kmax(k).detach())


def test_log_prob_equals_torch_struct() -> None:
    ours, theirs = both()
    events = ours.sample((2,))
    assert ours.log_prob(events).shape == (2, B)
    assert_close(ours.log_prob(events), theirs.log_prob(events).detach())
    assert_close(ours.log_prob(events.long()), ours.log_prob(events))
    relaxed = ours.marginals
    assert_close(ours.log_prob(relaxed), theirs.log_prob(relaxed).detach())


@pytest.mark.parametrize("name", ["partition", "entropy", "max"])
def test_gradients_equal_torch_struct(name: str) -> None:
    def gradient(kind: Callable[..., torch_struct.SemiMarkovCRF]) -> Tensor:
        potentials = random_potentials().requires_grad_()
        return torch.autograd.grad(getattr(kind(potentials), name).sum(), potentials)[0]

    assert_close(gradient(TorchStructSemiMarkovCRF), gradient(torch_struct.SemiMarkovCRF))


def test_events_equal_torch_struct_and_come_back() -> None:
    ours, theirs = both()
    every = sequences(N)
    event = ours.to_event(every, (C, K), torch.full((len(every),), N))
    assert torch.equal(event, theirs.to_event(every, (C, K)))
    for dist in (ours, theirs):
        back, sizes = dist.from_event(event)
        assert torch.equal(back, every)
        assert sizes == (C, K)


def test_it_is_a_torch_struct_chain_with_every_name_and_kind() -> None:
    ours, theirs = both()
    assert isinstance(ours, torch_struct.SemiMarkovCRF)
    assert (ours.batch_shape, ours.event_shape) == (theirs.batch_shape, theirs.event_shape)
    for name, member in vars(torch_struct.StructDistribution).items():
        if not name.startswith("_"):
            mine = inspect.getattr_static(TorchStructSemiMarkovCRF, name)
            assert mine is not member, name
            assert callable(mine) == callable(member), name
            assert isinstance(mine, property) != callable(member), name
    assert repr(ours) == "TorchStructSemiMarkovCRF(B=3, N=5, K=4, C=2)"


# Draws ----------------------------------------------------------------------------------------


def test_samples_have_their_probabilities() -> None:
    """Right code fails once in 10,000 seeds, here and below; the seed is fixed."""
    potentials = random_potentials(shape=(1, 3, K, C, C))
    dist, every = TorchStructSemiMarkovCRF(potentials), sequences(4, 4)
    drawn, _ = dist.from_event(dist.sample((5000,), generator=seeded(0))[:, 0])
    assert p_value(drawn, every, scores_of(potentials[0], every).softmax(0)) > 1e-4


@pytest.mark.parametrize("temperature", [0.1, 1.0, 5.0])
def test_gumbel_crf_has_the_probabilities_of_samples(temperature: float) -> None:
    potentials = random_potentials(shape=(1, 3, K, C, C))
    dist = TorchStructSemiMarkovCRF(potentials.expand(5000, -1, -1, -1, -1))
    drawn, _ = dist.from_event(dist.gumbel_crf(temperature, generator=seeded(0)))
    every = sequences(4, 4)
    assert p_value(drawn, every, scores_of(potentials[0], every).softmax(0)) > 1e-4


def test_gumbel_crf_is_hard_with_a_relaxed_gradient() -> None:
    potentials = random_potentials().requires_grad_()
    dist = TorchStructSemiMarkovCRF(potentials, LENGTHS)
    parts = dist.gumbel_crf(temperature=0.7, generator=seeded(0))
    assert torch.equal(parts, dist.to_event(dist.from_event(parts)[0], (C, K)).double())
    constant = torch.autograd.grad(parts.sum(), potentials, retain_graph=True)[0]
    assert_close(constant, torch.zeros_like(constant))
    reward = (parts * random_potentials(seed=1)).sum()
    assert torch.autograd.grad(reward, potentials)[0].abs().max() > 1e-3


@pytest.mark.parametrize("sample_shape", [(), (0,), (2, 3)])
def test_any_sample_shape(sample_shape: tuple[int, ...]) -> None:
    dist = TorchStructSemiMarkovCRF(random_potentials(), LENGTHS)
    parts = dist.sample(sample_shape)
    assert parts.shape == sample_shape + dist.batch_shape + dist.event_shape
    steps = (parts.sum((-1, -2, -4)) * torch.arange(K)).sum(-1)
    assert torch.equal(steps, (LENGTHS - 1).double().expand(steps.shape))


# State ----------------------------------------------------------------------------------------

PROPERTIES = ("partition", "marginals", "argmax", "max", "entropy", "count")


def test_the_callers_tensor_is_left_alone() -> None:
    potentials = random_potentials()
    before = potentials.clone()
    dist = TorchStructSemiMarkovCRF(potentials, LENGTHS)
    for name in PROPERTIES:
        getattr(dist, name)
    dist.topk(2), dist.kl(dist), dist.sample(), dist.gumbel_crf()
    assert not potentials.requires_grad
    assert torch.equal(potentials, before)


def test_any_number_of_backward_passes() -> None:
    potentials = random_potentials().requires_grad_()
    dist = TorchStructSemiMarkovCRF(potentials, LENGTHS)
    for name in ("partition", "entropy", "max", "marginals", "partition"):
        getattr(dist, name).square().sum().backward()
    dist.gumbel_crf().square().sum().backward()
    assert potentials.grad.isfinite().all()


def test_changes_in_place_are_seen() -> None:
    dist = TorchStructSemiMarkovCRF(random_potentials(), LENGTHS)
    before = dist.partition
    dist.log_potentials.neg_()
    fresh = TorchStructSemiMarkovCRF(dist.log_potentials, LENGTHS)
    assert torch.equal(dist.partition, fresh.partition)
    assert not torch.equal(dist.partition, before)


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies(duplicate: Callable[..., TorchStructSemiMarkovCRF]) -> None:
    dist = TorchStructSemiMarkovCRF(random_potentials(), LENGTHS)
    _ = dist.partition
    assert torch.equal(duplicate(dist).partition, dist.partition)


def test_no_grad_is_heeded() -> None:
    potentials = random_potentials().requires_grad_()
    with torch.no_grad():
        dist = TorchStructSemiMarkovCRF(potentials, LENGTHS)
        assert not any(getattr(dist, name).requires_grad for name in PROPERTIES)
    assert dist.partition.requires_grad


def test_inside_transforms() -> None:
    potentials = random_potentials()
    dist = TorchStructSemiMarkovCRF(potentials, LENGTHS)
    inside = torch.func.grad(lambda x: TorchStructSemiMarkovCRF(x, LENGTHS).partition.sum())
    assert_close(inside(potentials), dist.marginals)


# Bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("potentials", "lengths", "message"),
    [
        (torch.zeros(4, 3, 2, 2), None, "log_potentials"),
        (torch.zeros(2, 4, 3, 2, 3), None, "log_potentials"),
        (torch.zeros(2, 4, 1, 2, 2), None, "K at least 2"),
        (torch.zeros(2, 4, 3, 2, 2).long(), None, "log_potentials"),
        (torch.full((2, 4, 3, 2, 2), torch.nan), None, "log_potentials"),
        (torch.full((2, 4, 3, 2, 2), torch.inf), torch.tensor([1, 2]), "log_potentials"),
        (torch.zeros(2, 4, 3, 2, 2), torch.tensor([5, 6]), "lengths"),
        (torch.zeros(2, 4, 3, 2, 2), torch.tensor([5, -1]), "lengths"),
        (torch.zeros(2, 4, 3, 2, 2), torch.tensor([5]), "lengths"),
        (torch.zeros(2, 4, 3, 2, 2), torch.tensor([5.0, 4.5]), "lengths"),
        (torch.zeros(2, 4, 3, 2, 2), torch.tensor([True, True]), "lengths"),
    ],
)
def test_bad_arguments(potentials: Tensor, lengths: Tensor | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TorchStructSemiMarkovCRF(potentials, lengths)


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        ([0, -1, 2, -1, 1], r"labels in 0\.\.1, or -1, .* node 2"),
        ([-1, 0, 1, -1, 1], "first and at the last node of each chain: not so at node 0"),
        ([0, -1, 1, -1, -1], "first and at the last node of each chain: not so at node 4"),
        ([0, -1, -1, -1, 1], "segments of at most 3 steps"),
    ],
)
def test_bad_sequences(sequence: list[int], message: str) -> None:
    dist = TorchStructSemiMarkovCRF(random_potentials()[:1])
    with pytest.raises(ValueError, match=message):
        dist.to_event(torch.tensor([sequence]), (C, K))


def test_bad_calls() -> None:
    dist, _ = both()
    chain = torch_struct.LinearChainCRF(torch.zeros(B, N - 1, C, C))
    calls: list[tuple[str, Callable[[], object]]] = [
        ("value", lambda: dist.log_prob(torch.zeros(N, K, C, C))),
        ("value", lambda: dist.log_prob(torch.zeros(2, N - 1, K, C, C))),
        ("other", lambda: dist.kl(TorchStructSemiMarkovCRF(torch.zeros(1, N - 1, K, C, C)))),
        ("other must be a torch_struct.SemiMarkovCRF", lambda: dist.kl(chain)),
        ("dist must be a torch_struct.SemiMarkovCRF", lambda: semi_markov_from_torch_struct(chain)),
        ("temperature", lambda: dist.gumbel_crf(0.0)),
    ]
    for message, call in calls:
        with pytest.raises(ValueError, match=message):
            call()


def test_chains_without_a_path() -> None:
    forbidden = torch.full((1, 3, 2, C, C), -torch.inf)
    with pytest.raises(ValueError, match="no allowed path"):
        _ = TorchStructSemiMarkovCRF(forbidden).partition
    unchecked = TorchStructSemiMarkovCRF(forbidden, validate_args=False)
    assert unchecked.partition.tolist() == [-torch.inf]


def test_chains_of_one_node_have_no_parts() -> None:
    dist = TorchStructSemiMarkovCRF(torch.zeros(2, 0, K, 3, 3))
    assert_close(dist.partition, torch.full((2,), 3.0).log())
    assert dist.sample((4,)).shape == (4, 2, 0, K, 3, 3)
    assert dist.from_event(dist.argmax)[0].tolist() == [[-1], [-1]]


# Conversions ----------------------------------------------------------------------------------


def random_crf(batch_shape: tuple[int, ...], form: str, ends: bool) -> SemiMarkovCRF:
    torch.manual_seed(0)
    num_steps, longest = 4, 3
    shapes = {"shared": (C, C), "batch": (*batch_shape, C, C)}
    shapes["time"] = (*batch_shape, num_steps - 1, C, C)
    emissions = torch.randn(*batch_shape, num_steps, C)
    emissions[..., 1, 1] = -torch.inf
    return SemiMarkovCRF(
        emissions,
        torch.randn(shapes[form]),
        torch.randn(longest, C) if form != "batch" else torch.randn(*batch_shape, longest, C),
        torch.randint(0, num_steps + 1, batch_shape),
        segments=torch.randn(*batch_shape, num_steps, longest, C) if form == "time" else None,
        start=torch.randn(C) if ends else None,
        end=torch.randn(*batch_shape, C) if ends else None,
    )


@pytest.mark.parametrize("batch_shape", [(), (5,), (2, 3)])
@pytest.mark.parametrize("form", ["shared", "batch", "time"])
@pytest.mark.parametrize("ends", [False, True])
def test_every_segmentation_becomes_a_torch_struct_chain(
    batch_shape: tuple[int, ...], form: str, ends: bool
) -> None:
    """And back: with a last node of its own, which is labelled 0."""
    crf = random_crf(batch_shape, form, ends)
    parts = semi_markov_to_torch_struct(crf)
    assert parts.event_shape == (4, 4, C, C)
    assert_close(parts.partition, crf.log_partition.reshape(-1))
    assert_close(parts.entropy, crf.entropy().reshape(-1))
    by_segment = parts.marginals.sum(-2)[:, :, 1:]  # [B, T, L, K]
    assert_close(by_segment, crf.marginals.reshape(by_segment.shape))
    back = semi_markov_from_torch_struct(parts)
    assert_close(back.log_partition, parts.partition)
    assert_close(back.entropy(), parts.entropy)


def test_to_torch_struct_runs_in_torch_struct() -> None:
    crf = SemiMarkovCRF(torch.randn(2, 4, C), torch.randn(C, C), torch.randn(3, C))
    parts = semi_markov_to_torch_struct(crf)
    theirs = torch_struct.SemiMarkovCRF(parts.log_potentials.clone())
    assert_close(theirs.partition.detach(), crf.log_partition)


def test_gradients_pass_through_the_conversions() -> None:
    emissions, transitions = torch.randn(2, 4, C), torch.randn(C, C)
    emissions[0, 3:] = torch.nan
    given = [x.requires_grad_() for x in (emissions, transitions, torch.randn(3, C))]
    crf = SemiMarkovCRF(*given, torch.tensor([3, 4]))
    expected = torch.autograd.grad(crf.entropy().sum(), given)
    parts = semi_markov_to_torch_struct(crf)
    found = torch.autograd.grad(parts.entropy.sum(), given, retain_graph=True)
    assert_close(found, expected)
    back = semi_markov_from_torch_struct(parts)
    assert_close(torch.autograd.grad(back.entropy().sum(), given), expected)


def additive_potentials(seed: int = 0) -> Tensor:
    """[B, N-1, K, C, C]: scores of segments, and of moves by the node where they are made."""
    generator = seeded(seed)
    segments = torch.randn(B, N - 1, K, 1, C, generator=generator, dtype=torch.float64)
    moves = torch.randn(B, N + K, C, C, generator=generator, dtype=torch.float64)
    end = torch.arange(N - 1).unsqueeze(-1) + torch.arange(K)
    return segments + moves[:, end]


@pytest.mark.parametrize("lengths", [None, LENGTHS, torch.tensor([0, 1, 4])])
def test_sums_become_segmentations(lengths: Tensor | None) -> None:
    potentials = additive_potentials()
    potentials[:, :, :, 0, 1] = -torch.inf
    dist = TorchStructSemiMarkovCRF(potentials, lengths)
    crf = semi_markov_from_torch_struct(dist)
    assert crf.event_shape == (N, K - 1, C)
    assert_close(crf.log_partition, dist.partition)
    assert_close(crf.entropy(), dist.entropy)
    assert_close(crf.marginals[:, :-1], dist.marginals.sum(-2)[:, :, 1:] + last_nodes(crf))


def last_nodes(crf: SemiMarkovCRF) -> Tensor:
    """The marginals [B, T-1, L, K] of the segments of one step that stand for last nodes."""
    is_last = torch.arange(crf.event_shape[0]) == crf.lengths.unsqueeze(-1) - 1
    return (crf.marginals * is_last[..., None, None])[:, :-1]


def test_from_real_torch_struct_chains() -> None:
    theirs = torch_struct.SemiMarkovCRF(additive_potentials())
    assert_close(semi_markov_from_torch_struct(theirs).log_partition, theirs.partition.detach())


@pytest.mark.parametrize("value", [-torch.inf, 1.0])
def test_what_is_no_sum_is_named(value: float) -> None:
    potentials = additive_potentials()
    potentials[1, 1, 2, 0, 1] = value
    message = "batch index 1, a segment of label 1 and length . that ends at node 3, before label"
    with pytest.raises(ValueError, match=f"length of a segment and the label .* {message}"):
        semi_markov_from_torch_struct(TorchStructSemiMarkovCRF(potentials))
    shorter = TorchStructSemiMarkovCRF(potentials, torch.tensor([5, 3, 5]))  # beyond: inert
    assert_close(semi_markov_from_torch_struct(shorter).log_partition, shorter.partition)
