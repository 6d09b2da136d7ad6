"""Do a sampler's draws follow the right distribution, and do its gradients hold?

Draws, on small chains with a fixed seed, each test at p < 1e-6 (so a right sampler fails one of
its four at most four times in a million seeds):

- chi-square of whole paths over many identical batch items: an exact sampler against the enumerated
  probabilities, Perturb-and-MAP, which is biased by design, against a brute-force simulation (the
  best of all enumerated paths after noise on the first node and every edge);
- independence of two identical items: the joint of neighbours, of items half a batch apart, and of
  the same item in two calls.

Gradients, in float64 with the noise held still by its seed: that of a constant reward is zero;
a relaxed sample's agrees with central differences; a straight-through sample's is that of its
relaxation, and its value is one-hot.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.chi_square import goodness_of_fit, independence, same_distribution
from benchmarks.contenders import Work, forward, forward_backward
from benchmarks.operations import Kind, Operation
from benchmarks.ours import gumbel_like, whole_chains
from benchmarks.problem import Inputs, Size, identical_chains, make_inputs
from structdist.ops import reference

LEVEL = 1e-6
DRAWS = 10_000
PATH_CHAIN = Size(DRAWS, length=4, states=3)  # 81 paths
PAIR_CHAIN = Size(DRAWS, length=3, states=2)  # 8 paths, 64 pairs
SEED = 11
GRADIENT_TOLERANCE = 1e-5


def check_sampler(
    works: Mapping[str, Work], operation: Operation, device: torch.device
) -> tuple[str | None, str | None]:
    """What failed, if anything, and a note."""
    work = works[operation.name]
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(SEED)
        failure = _check_independence(work, device)
        wrong_paths, note = _check_paths(work, operation, device)
        failure = failure or wrong_paths
        if operation.differentiable:
            failure = failure or _check_gradient(works, operation, device)
    return failure, note


def _check_paths(
    work: Work, operation: Operation, device: torch.device
) -> tuple[str | None, str | None]:
    inputs = identical_chains(PATH_CHAIN, device, SEED)
    counts = path_counts(draw_paths(work, inputs), PATH_CHAIN.states)
    p_value = goodness_of_fit(counts, path_probabilities(inputs))
    if operation.kind is Kind.EXACT_SAMPLER:
        failed = p_value < LEVEL
        return (f"chi-square of whole paths: {shown(p_value)}" if failed else None), None
    note = f"biased by design: chi-square of whole paths against the chain, {shown(p_value)}"
    p_value = same_distribution(counts, simulate_perturb_and_map(inputs))
    failed = p_value < LEVEL
    return (f"chi-square against simulation: {shown(p_value)}" if failed else None), note


def _check_independence(work: Work, device: torch.device) -> str | None:
    inputs = identical_chains(PAIR_CHAIN, device, SEED)
    first, second = (path_index(draw_paths(work, inputs), PAIR_CHAIN.states) for _ in range(2))
    if len(first.unique()) == 1:
        return f"{DRAWS} identical batch items gave one and the same path: noise is shared"
    half = DRAWS // 2
    pairings = {
        "neighbours in a batch": (first[0::2], first[1::2]),
        "items half a batch apart": (first[:half], first[half:]),
        "two calls": (first, second),
    }
    for name, (one, other) in pairings.items():
        p_value = independence(_joint(one, other, PAIR_CHAIN.states**PAIR_CHAIN.length))
        if p_value < LEVEL:
            return f"{name} are not independent: chi-square of the joint, {shown(p_value)}"
    return None


def shown(p_value: float) -> str:
    return f"p = {p_value:.0e}" if p_value > 1e-99 else "p < 1e-99"


def draw_paths(work: Work, inputs: Inputs) -> Tensor:
    """[B, T]: the hard choices of a sample, whether paths, one-hot or relaxed."""
    sample = forward(work, inputs)
    return sample.argmax(-1) if sample.is_floating_point() else sample


def path_index(paths: Tensor, num_states: int) -> Tensor:
    """The place of each path [..., T] in `reference.enumerate_paths`."""
    digits = torch.arange(paths.shape[-1] - 1, -1, -1, device=paths.device)
    return (paths * num_states**digits).sum(-1)


def path_counts(paths: Tensor, num_states: int) -> Tensor:
    num_paths = num_states ** paths.shape[-1]
    return torch.bincount(path_index(paths, num_states), minlength=num_paths)


def _joint(first: Tensor, second: Tensor, num_paths: int) -> Tensor:
    counts = torch.bincount(first * num_paths + second, minlength=num_paths**2)
    return counts.view(num_paths, num_paths)


def path_probabilities(inputs: Inputs) -> Tensor:
    """[K^T] of the first chain, by enumeration."""
    one = inputs.items(0, 1).to(torch.float64)
    _, length, states = one.emissions.shape
    paths = reference.enumerate_paths(length, states, one.emissions.device)
    chain = whole_chains(one.emissions, one.transitions)
    return reference.path_scores(chain, paths.unsqueeze(1))[:, 0].softmax(0)


def simulate_perturb_and_map(inputs: Inputs) -> Tensor:
    """Counts [K^T]: the best of all paths, scored one by one, with noise of its own per item."""
    emissions, transitions = inputs.emissions.double(), inputs.transitions.double()
    batch, length, states = emissions.shape
    nodes = emissions.clone()
    nodes[:, 0] += gumbel_like((batch, states), nodes)
    edges = transitions + gumbel_like((batch, length - 1, states, states), nodes)
    paths = reference.enumerate_paths(length, states, emissions.device)
    scores = nodes[:, 0, paths[:, 0]]  # [B, K^T]
    for t in range(1, length):
        scores = scores + nodes[:, t, paths[:, t]] + edges[:, t - 1, paths[:, t - 1], paths[:, t]]
    return torch.bincount(scores.argmax(1), minlength=len(paths))


def _check_gradient(
    works: Mapping[str, Work], operation: Operation, device: torch.device
) -> str | None:
    work = works[operation.name]
    inputs = make_inputs(Size(4, length=5, states=3), device, SEED).to(torch.float64)
    flat = replace(inputs, event_weights=torch.ones_like(inputs.event_weights))
    largest = max(x.abs().max().item() for x in _seeded_gradient(work, flat))
    if largest > GRADIENT_TOLERANCE:
        return f"gradient of a constant reward is not 0 but up to {largest:.0e}"
    if operation.relaxation is None:
        return _check_central_difference(work, inputs)
    if not _is_one_hot(forward(work, inputs)):
        return "straight-through samples are not one-hot"
    if operation.relaxation in works:
        relaxed = _seeded_gradient(works[operation.relaxation], inputs)
        pairs = zip(_seeded_gradient(work, inputs), relaxed, strict=True)
        if not all(torch.allclose(a, b, atol=GRADIENT_TOLERANCE) for a, b in pairs):
            return "straight-through gradient is not that of the relaxation"
    return None


def _seeded_gradient(work: Work, inputs: Inputs) -> tuple[Tensor, ...]:
    torch.manual_seed(SEED)
    return forward_backward(work, inputs)


def _is_one_hot(sample: Tensor) -> bool:
    return bool(((sample == 0) | (sample == 1)).all() and (sample.sum(-1) == 1).all())


def _check_central_difference(work: Work, inputs: Inputs, step: float = 1e-5) -> str | None:
    directions = [torch.randn_like(x) for x in (inputs.emissions, inputs.transitions)]
    by_gradient = sum(
        (g * d).sum() for g, d in zip(_seeded_gradient(work, inputs), directions, strict=True)
    )

    def value(sign: float) -> Tensor:
        torch.manual_seed(SEED)
        emissions = inputs.emissions + sign * step * directions[0]
        transitions = inputs.transitions + sign * step * directions[1]
        moved = replace(inputs, emissions=emissions, transitions=transitions)
        return (forward(work, moved) * inputs.event_weights).sum()

    error = abs(((value(1) - value(-1)) / (2 * step) - by_gradient).item())
    if error > 100 * GRADIENT_TOLERANCE:
        return f"gradient is off the central difference by {error:.0e}"
    return None
