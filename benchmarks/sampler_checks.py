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

import torch
from torch import Tensor

from benchmarks.chi_square import goodness_of_fit, independence, same_distribution
from benchmarks.contenders import Work, forward, forward_backward
from benchmarks.operations import Kind, Operation
from benchmarks.problem import Inputs, identical_chains, make_inputs
from benchmarks.structure import DRAWS, Structure

LEVEL = 1e-6
SEED = 11
GRADIENT_TOLERANCE = 1e-5


def check_sampler(
    works: Mapping[str, Work], operation: Operation, structure: Structure, device: torch.device
) -> tuple[str | None, str | None]:
    """What failed, if anything, and a note."""
    work = works[operation.name]
    devices = [device] if device.type == "cuda" else []
    with torch.random.fork_rng(devices):
        torch.manual_seed(SEED)
        failure = _check_independence(work, structure, device)
        wrong_paths, note = _check_paths(work, operation, structure, device)
        failure = failure or wrong_paths
        if operation.differentiable:
            failure = failure or _check_gradient(works, operation, structure, device)
    return failure, note


def _check_paths(
    work: Work, operation: Operation, structure: Structure, device: torch.device
) -> tuple[str | None, str | None]:
    inputs = identical_chains(structure.path_size, device, SEED)
    probabilities = structure.probabilities(inputs)
    drawn = structure.outcomes(forward(work, inputs), structure.path_size)
    counts = torch.bincount(drawn, minlength=len(probabilities))
    p_value = goodness_of_fit(counts, probabilities)
    if operation.kind is Kind.EXACT_SAMPLER:
        failed = p_value < LEVEL
        return (f"chi-square of whole paths: {shown(p_value)}" if failed else None), None
    note = f"biased by design: chi-square of whole paths against the chain, {shown(p_value)}"
    p_value = same_distribution(counts, structure.simulate_perturb_and_map(inputs))
    failed = p_value < LEVEL
    return (f"chi-square against simulation: {shown(p_value)}" if failed else None), note


def _check_independence(work: Work, structure: Structure, device: torch.device) -> str | None:
    size = structure.pair_size
    inputs = identical_chains(size, device, SEED)
    first, second = (structure.outcomes(forward(work, inputs), size) for _ in range(2))
    if len(first.unique()) == 1:
        return f"{DRAWS} identical batch items gave one and the same path: noise is shared"
    half, num_outcomes = DRAWS // 2, len(structure.probabilities(inputs))
    pairings = {
        "neighbours in a batch": (first[0::2], first[1::2]),
        "items half a batch apart": (first[:half], first[half:]),
        "two calls": (first, second),
    }
    for name, (one, other) in pairings.items():
        p_value = independence(_joint(one, other, num_outcomes))
        if p_value < LEVEL:
            return f"{name} are not independent: chi-square of the joint, {shown(p_value)}"
    return None


def shown(p_value: float) -> str:
    return f"p = {p_value:.0e}" if p_value > 1e-99 else "p < 1e-99"


def _joint(first: Tensor, second: Tensor, num_outcomes: int) -> Tensor:
    counts = torch.bincount(first * num_outcomes + second, minlength=num_outcomes**2)
    return counts.view(num_outcomes, num_outcomes)


def _check_gradient(
    works: Mapping[str, Work], operation: Operation, structure: Structure, device: torch.device
) -> str | None:
    work = works[operation.name]
    inputs = make_inputs(structure.gradient_size, device, SEED).to(torch.float64)
    flat = inputs.with_constant_reward()
    largest = max(x.abs().max().item() for x in _seeded_gradient(work, flat))
    if largest > GRADIENT_TOLERANCE:
        return f"gradient of a constant reward is not 0 but up to {largest:.0e}"
    if operation.relaxation is None:
        return _check_central_difference(work, inputs)
    if not structure.is_hard(forward(work, inputs)):
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


def _check_central_difference(work: Work, inputs: Inputs, step: float = 1e-5) -> str | None:
    directions = [torch.randn_like(x) for x in inputs.scores]
    by_gradient = sum(
        (g * d).sum() for g, d in zip(_seeded_gradient(work, inputs), directions, strict=True)
    )

    def value(sign: float) -> Tensor:
        torch.manual_seed(SEED)
        moves = zip(inputs.scores, directions, strict=True)
        output = forward(work, inputs.with_scores(*(x + sign * step * d for x, d in moves)))
        return (output * inputs.weights_like(output)).sum()

    error = abs(((value(1) - value(-1)) / (2 * step) - by_gradient).item())
    if error > 100 * GRADIENT_TOLERANCE:
        return f"gradient is off the central difference by {error:.0e}"
    return None
