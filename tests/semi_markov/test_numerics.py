"""Float32 against float64 log space, scores that are meant as masks, and memory."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from structdist import SemiMarkovCRF
from structdist.ops import SemiMarkovChain
from structdist.ops.native import library
from structdist.ops.semi_markov import reference
from structdist.ops.semi_markov.native import arguments
from tests.structures.registry import backends_of, using
from tests.structures.semi_markov import SemiMarkovChains
from tests.structures.structure import seeded

KINDS = ["plain", "large", "one way", "sticky", "drifting"]


@pytest.fixture(params=backends_of(SemiMarkovChains()))
def kernels(request):
    """Each of the fast backends, behind the door."""
    with using(SemiMarkovChains(), request.param) as name:
        yield name


def make_scores(kind: str, num_steps: int, longest: int = 9, num_labels: int = 6) -> list[Tensor]:
    generator = seeded(3)
    shapes = ((2, num_steps, num_labels), (num_labels, num_labels), (longest, num_labels))
    emissions, transitions, durations = (torch.randn(s, generator=generator) for s in shapes)
    if kind == "large":
        return [emissions * 1e4, transitions * 1e4, durations * 1e4]
    if kind == "one way":  # all but one transition out of each label are forbidden
        only = torch.randperm(num_labels, generator=generator)
        allowed = torch.nn.functional.one_hot(only, num_labels).bool()
        transitions = transitions.masked_fill(~allowed, -torch.inf)
    if kind == "sticky":  # close calls at a large offset
        emissions, durations = emissions + 1e3, durations - 1e3
    if kind == "drifting":  # what is unfinished of some labels soon weighs nothing beside others
        emissions = emissions + torch.linspace(-20, 20, num_labels).roll(1)
        emissions[:, num_steps // 2 :] = emissions[:, num_steps // 2 :].flip(-1)
    return [emissions, transitions, durations]


LONG = 150  # steps


class Exact(NamedTuple):
    """By the reference in float64; gradients are those of log Z, then of the entropy."""

    log_z: Tensor
    entropy: Tensor
    token_marginals: Tensor
    gradients: list[tuple[Tensor, ...]]


@functools.cache
def exactly(kind: str) -> Exact:
    """It takes its time: once for all backends."""
    scores = [x.double().requires_grad_() for x in make_scores(kind, LONG)]
    chain = SemiMarkovChain(*scores, torch.full((2,), LONG))
    log_z, entropy = reference.log_partition(chain), reference.entropy(chain)
    gradients = [torch.autograd.grad(x.sum(), scores) for x in (log_z, entropy)]
    return Exact(log_z.detach(), entropy.detach(), reference.marginals(chain, 0), gradients)


@pytest.mark.parametrize("kind", KINDS)
def test_a_long_chain_in_float32(kind: str, kernels: str):
    scores, exact = [x.requires_grad_() for x in make_scores(kind, LONG)], exactly(kind)
    crf = SemiMarkovCRF(*scores)
    assert_close(crf.log_partition.double(), exact.log_z, rtol=1e-6, atol=1e-3)
    assert_close(crf.entropy().double(), exact.entropy, rtol=1e-4, atol=1e-3)
    assert_close(crf.token_marginals.double(), exact.token_marginals, rtol=0, atol=1e-4)
    for answer, expected in zip((crf.log_partition, crf.entropy()), exact.gradients, strict=True):
        found = torch.autograd.grad(answer.sum(), scores)
        for one, other in zip(found, expected, strict=True):
            assert ((one - other).abs() / other.abs().max().clamp(min=1) < 1e-3).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_beside_huge_scores_entropies_stay_in_their_range(kernels: str, dtype: torch.dtype):
    """Probabilities of 0 and 1 alone: what cancels in an entropy must not do so in 1e37."""
    generator = seeded(4)
    shapes = (64, 5, 3), (64, 4, 3, 3), (64, 5, 2, 3)
    scores = [torch.randn(s, generator=generator).to(dtype) * 1e37 for s in shapes]
    emissions, transitions, segments = (x.requires_grad_() for x in scores)
    entropy = SemiMarkovCRF(emissions, transitions, None, segments=segments).entropy()
    assert_close(entropy, torch.zeros_like(entropy))
    for grad in torch.autograd.grad(entropy.sum(), (emissions, transitions, segments)):
        assert_close(grad, torch.zeros_like(grad))


def test_a_mask_leaves_other_paths_their_digits(kernels: str):
    """-1e9 on what is not meant is as good as -inf, to all digits of what remains."""
    emissions, transitions, durations = (x.double() for x in make_scores("plain", 50))
    answers = []
    for mask in (-1e9, -torch.inf):
        masked = emissions.clone()
        masked[:, ::3, 2:] = mask
        no_single_steps = durations.clone()
        no_single_steps[0] = mask
        crf = SemiMarkovCRF(masked, transitions, no_single_steps)
        answers.append((crf.log_partition, crf.entropy(), crf.token_marginals))
    assert_close(*answers, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("mask", [-1e4, -1e9, None], ids=["-1e4", "-1e9", "least"])
@pytest.mark.parametrize("place", ["emissions", "transitions", "durations", "segments", "all"])
def test_masks_everywhere(place: str, mask: float | None, dtype: torch.dtype, kernels: str):
    """Nothing becomes NaN or infinite, probabilities sum to one, entropies stay in their range."""
    longest = 3 if place == "all" else 9
    emissions, transitions, durations = (x.to(dtype) for x in make_scores("plain", 9, longest, 2))
    scores = {"emissions": emissions, "transitions": transitions, "durations": durations}
    if place in ("segments", "all"):
        scores["segments"] = torch.randn(2, 9, longest, 2, generator=seeded(4)).to(dtype)
    for name, x in scores.items():
        if place in (name, "all"):
            x[torch.rand(x.shape, generator=seeded(5)) < 0.7] = (
                torch.finfo(dtype).min if mask is None else mask
            )
        x.requires_grad_()
    crf = SemiMarkovCRF(**scores)
    answers = [crf.log_partition, crf.entropy(), crf.token_marginals, crf.boundary_marginals]
    answers += [crf.marginals, crf.rsample((2,), generator=seeded(6))]
    for answer in answers:
        assert answer.isfinite().all()
        grads = torch.autograd.grad(answer.double().square().sum(), list(scores.values()))
        if answer.detach().abs().max() < 1e15:
            assert all(grad.isfinite().all() for grad in grads)
    assert ((crf.token_marginals.sum(-1) - 1).abs() < 1e-5).all()
    assert ((crf.entropy() >= 0) & (crf.entropy() < 9 * 3)).all()


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


ANSWERS: dict[str, Callable[[SemiMarkovCRF], Tensor]] = {
    "log_partition": lambda d: d.log_partition,
    "entropy": lambda d: d.entropy(),
    "expectation": lambda d: d.boundary_marginals.square(),
    "log_prob": lambda d: d.log_prob(d.argmax),
    "rsample": lambda d: d.rsample((2,), generator=seeded(1)).square(),
    "perturb_and_map": lambda d: d.perturb_and_map(generator=seeded(1)).square(),
}


@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("form", ["shared", "per_chain", "per_step"])
@pytest.mark.parametrize("ask", ANSWERS.values(), ids=ANSWERS)
def test_the_same_bits_on_any_number_of_threads(
    ask: Callable[[SemiMarkovCRF], Tensor], form: str, spread: float, set_threads: Callable
):
    """Enough work that threads are worth their wake-up; a wide spread makes sums underflow."""
    shapes = {"shared": (), "per_chain": (24,), "per_step": (24, 100)}
    emissions = torch.randn(24, 100, 12, generator=seeded(7)) * spread
    durations = torch.randn(*shapes[form], 40, 12, generator=seeded(8)) * spread
    transitions = torch.randn(*shapes[form][:1], 12, 12, generator=seeded(9)) * spread
    answers = []
    for count in (1, 2, 3):
        set_threads(count)
        leaves = [x.clone().requires_grad_() for x in (emissions, transitions, durations)]
        by_step = {"segments": leaves[2]} if form == "per_step" else {}
        crf = SemiMarkovCRF(*leaves[:2], None if by_step else leaves[2], **by_step)
        answer = ask(crf)
        answers.append((answer, *torch.autograd.grad(answer.sum(), leaves)))
    for one, *others in zip(*answers, strict=True):
        assert one.isfinite().all()
        assert all(torch.equal(one, other) for other in others)


@pytest.mark.parametrize("found", [None, object()], ids=["none", "of another version"])
def test_a_library_without_these_kernels_is_not_used(found: object, monkeypatch):
    monkeypatch.setattr(library, "library", found)
    monkeypatch.setattr(library, "unavailable", None if found else "it was not built")
    assert arguments.find_misfit() == (
        f"the compiled library is of another version: {library.REBUILD}"
        if found
        else "it was not built"
    )


PROGRAM = """
import sys, torch
from structdist import SemiMarkovCRF

def peak():
    lines = open("/proc/self/status").read().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) / 1024

def run(emissions, transitions, durations):
    dist = SemiMarkovCRF(emissions, transitions, durations)
    questions = {
        "log_partition": lambda: dist.log_partition.sum().backward(),
        "entropy": lambda: dist.entropy().sum().backward(),
        "boundaries": lambda: dist.boundary_marginals.pow(2).sum().backward(),
        "labels": lambda: dist.rsample_labels().labels.pow(2).sum().backward(),
        "sample": lambda: dist.sample_labels(),
    }
    for question in sys.argv[1].split(","):
        questions[question]()

torch.set_num_threads(1)
batch, steps, longest, labels = map(int, sys.argv[2:])
transitions = torch.randn(labels, labels, requires_grad=True)
durations = torch.randn(longest, labels, requires_grad=True)
run(torch.randn(batch, 2, labels, requires_grad=True), transitions, durations)  # code once
emissions = torch.randn(batch, steps, labels, requires_grad=True)
before = peak()
run(emissions, transitions, durations)
print(peak() - before)
"""
on_linux = pytest.mark.skipif(sys.platform != "linux", reason="reads peak memory from /proc")


def extra_megabytes(quantities: str, *size: int, backend: str) -> float:
    result = subprocess.run(
        [sys.executable, "-c", PROGRAM, quantities, *map(str, size)],
        capture_output=True,
        text=True,
        check=True,
        env={"STRUCTDIST_BACKEND": backend, "PATH": ""},
    )
    return float(result.stdout)


@on_linux
def test_memory_does_not_grow_with_segments(kernels: str):
    segments = 8 * 120 * 100 * 64 * 4 / 2**20  # a [B, T, L, K] tensor: 23 MB
    found = extra_megabytes("log_partition,boundaries", 8, 120, 100, 64, backend=kernels)
    assert found < segments


@on_linux
@pytest.mark.slow
@pytest.mark.parametrize("quantity", ["log_partition", "entropy", "boundaries", "labels", "sample"])
def test_long_chains_of_long_segments_fit(quantity: str, kernels: str):
    assert extra_megabytes(quantity, 8, 4000, 100, 64, backend=kernels) < 0.7 * 1024
