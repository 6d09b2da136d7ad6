"""Every fast backend against `ops/reference.py`: values and gradients, float64 and float32."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from structdist import ops
from structdist.ops import Chain, reference

FORMS = ["shared", "per_chain", "per_step"]
SCORES = ["plain", "forbidden", "wide"]
SIZES = [(1, 3), (2, 1), (3, 5), (7, 4), (63, 17)]  # T, K
NUM_CHAINS = 6


def make_chain(form: str, scores: str, num_steps: int, num_states: int) -> Chain:
    """Mixed lengths with 0, 1 and T among them; NaN in the padding."""
    generator = torch.Generator().manual_seed(num_steps * 100 + num_states)

    def draw(*shape: int) -> Tensor:
        return torch.randn(*shape, dtype=torch.float64, generator=generator)

    lead = {"shared": (), "per_chain": (NUM_CHAINS,), "per_step": (NUM_CHAINS, num_steps - 1)}
    emissions = draw(NUM_CHAINS, num_steps, num_states)
    transitions = draw(*lead[form], num_states, num_states)
    if scores == "wide":  # most products underflow, in float32 and in float64
        emissions, transitions = emissions * 1000, transitions * 1000
    if scores == "forbidden":
        forbid = torch.rand(transitions.shape, generator=generator) < 0.5
        keep = torch.eye(num_states, dtype=torch.bool)
        transitions = transitions.masked_fill(forbid & ~keep, -torch.inf)
        emissions[..., 1:] = emissions[..., 1:].masked_fill(
            torch.rand(emissions[..., 1:].shape, generator=generator) < 0.2, -torch.inf
        )
    lengths = torch.randint(0, num_steps + 1, (NUM_CHAINS,), generator=generator)
    lengths[:3] = torch.tensor([0, 1, num_steps])
    active = ops.in_chain(lengths, num_steps)
    emissions[~active] = torch.nan
    if form == "per_step":
        transitions[~active[:, 1:]] = torch.nan
    return Chain(emissions, transitions, lengths)


@pytest.fixture(params=SIZES, ids=str)
def size(request):
    return request.param


@pytest.fixture(params=FORMS)
def form(request):
    return request.param


@pytest.fixture(params=SCORES)
def chain(request, form, size):
    return make_chain(form, request.param, *size)


def values_for(chain: Chain) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    nodes = torch.randn(chain.emissions.shape, dtype=torch.float64, generator=generator)
    edges = torch.randn(chain.transitions.shape, dtype=torch.float64, generator=generator)
    return nodes, edges


def assert_same(function, plain, chain: Chain, *others: Tensor) -> None:
    """Equal values, and equal gradients of a random projection of them."""
    inputs = [chain.emissions, chain.transitions, *others]
    results = []
    for f in (function, plain):
        leaves = [x.clone().requires_grad_() for x in inputs]
        value = f(Chain(leaves[0], leaves[1], chain.lengths), *leaves[2:])
        weight = torch.randn(value.shape, generator=torch.Generator().manual_seed(2)).to(value)
        grads = torch.autograd.grad((value * weight).sum(), leaves, allow_unused=True)
        results.append([value, *grads])
    for fast, slow in zip(*results, strict=True):
        slow = torch.zeros_like(fast) if slow is None else slow
        assert fast.isfinite().all()
        torch.testing.assert_close(fast, slow, rtol=1e-7, atol=1e-8)


def test_log_partition(kernels, chain):
    assert_same(lambda c: ops.log_partition(c, ops.run_forward(c)), reference.log_partition, chain)


def test_node_marginals(kernels, chain):
    assert_same(
        lambda c: ops.marginals(c, ops.run_forward(c), 0),
        lambda c: reference.marginals(c, 0),
        chain,
    )


def test_edge_marginals(kernels, chain):
    assert_same(
        lambda c: ops.marginals(c, ops.run_forward(c), 1),
        lambda c: reference.marginals(c, 1),
        chain,
    )


def test_entropy(kernels, chain):
    assert_same(lambda c: ops.entropy(c, ops.run_forward(c)), reference.entropy, chain)


def test_expectation(kernels, chain):
    assert_same(
        lambda c, *values: ops.expectation(c, ops.run_forward(c), values),
        lambda c, *values: reference.expectation(c, values),
        chain,
        *values_for(chain),
    )


def test_expectation_with_edge_values_of_another_form(kernels, form):
    chain = make_chain(form, "plain", 7, 4)
    nodes, _ = values_for(chain)
    for edges in (torch.randn(4, 4), torch.randn(6, 4, 4), torch.randn(6, 6, 4, 4)):
        assert_same(
            lambda c, *values: ops.expectation(c, ops.run_forward(c), values),
            lambda c, *values: reference.expectation(c, values),
            chain,
            nodes,
            edges.double(),
        )


def test_path_scores(chain):
    highest = chain.emissions.shape[-1]
    paths = torch.randint(highest, (3, *chain.emissions.shape[:2]))
    expected = reference.path_scores(chain, paths)
    torch.testing.assert_close(ops.path_scores(chain, paths), expected)


@pytest.mark.parametrize("temperature", [0.1, 1.0, 5.0])
def test_gumbel_ffbs(kernels, chain, temperature):
    noise = -torch.empty(2, *chain.emissions.shape, dtype=torch.float64).exponential_().log()

    def fast(c: Chain) -> Tensor:
        return ops.gumbel_ffbs(c, ops.run_forward(c), noise, temperature).soft

    def plain(c: Chain) -> Tensor:
        return reference.gumbel_ffbs(c, noise, temperature).soft

    assert_same(fast, plain, chain)
    paths = ops.gumbel_ffbs(chain, ops.run_forward(chain), noise, temperature).path
    assert torch.equal(paths, reference.gumbel_ffbs(chain, noise, temperature).path)


@pytest.mark.parametrize("temperature", [0.1, 1.0, 5.0])
def test_relaxed_viterbi(kernels, chain, temperature):
    def fast(c: Chain) -> Tensor:
        return ops.relaxed_viterbi(c, temperature).soft

    def plain(c: Chain) -> Tensor:
        return reference.relaxed_viterbi(c, temperature).soft

    assert_same(fast, plain, chain)
    expected = reference.relaxed_viterbi(chain, temperature).path
    assert torch.equal(ops.relaxed_viterbi(chain, temperature).path, expected)


def test_sample_paths(kernels, chain):
    uniform = torch.rand(50, *chain.emissions.shape[:2], dtype=torch.float64)
    found = ops.sample_paths(chain, ops.run_forward(chain), uniform)
    assert torch.equal(found, reference.sample_paths(chain, uniform))


@pytest.mark.parametrize("edge", [0.0, math.nextafter(1.0, 0.0)])
def test_sampling_at_the_edge_never_takes_an_impossible_state(kernels, edge):
    emissions = torch.tensor([-math.inf, 0.0, -math.inf]).double().expand(1, 4, 3).clone()
    chain = Chain(emissions, torch.zeros(3, 3).double(), torch.tensor([4]))
    uniform = torch.full((1, 1, 4), edge, dtype=torch.float64)
    assert (ops.sample_paths(chain, ops.run_forward(chain), uniform) == 1).all()


def test_viterbi(kernels, chain):
    found, expected = ops.viterbi(chain), reference.viterbi(chain)
    torch.testing.assert_close(found.score, expected.score)
    assert torch.equal(found.path, expected.path)


def test_float32_is_close_to_float64(kernels, form):
    chain = make_chain(form, "forbidden", 63, 17)
    single = Chain(chain.emissions.float(), chain.transitions.float(), chain.lengths)
    double = Chain(single.emissions.double(), single.transitions.double(), chain.lengths)
    for f in (ops.log_partition, lambda c, forward: ops.marginals(c, forward, 0), ops.entropy):
        found, expected = f(single, ops.run_forward(single)), f(double, ops.run_forward(double))
        torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


def test_no_kernel_reads_what_it_did_not_write(kernels, monkeypatch, form):
    """Poison uninitialised memory with NaN: nothing may change."""
    chain = make_chain(form, "forbidden", 7, 4)
    expected = [f(chain, ops.run_forward(chain)) for f in (ops.log_partition, ops.entropy)]
    empty, empty_like = torch.empty, torch.empty_like

    def poisoned(make):
        return lambda *a, **k: make(*a, **k).fill_(torch.nan)

    monkeypatch.setattr(torch, "empty", poisoned(empty))
    monkeypatch.setattr(torch, "empty_like", poisoned(empty_like))
    found = [f(chain, ops.run_forward(chain)) for f in (ops.log_partition, ops.entropy)]
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))
