"""Does an installed structdist work? `python tests/installed.py --backend native`

Needs torch and structdist alone, so that it can run in an environment that has nothing else. It
fails if another backend than this one is in use, or if an answer is not that of enumeration.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path

import torch

import structdist
from structdist import LinearChainCRF, SemiMarkovCRF, ops


def require_backend(wanted: str) -> None:
    """Of every structure, with the reasons of the others."""
    statuses = ops.backends()
    used = {status.structure: status.backend for status in statuses if status.in_use}
    if set(used.values()) != {wanted}:
        raise SystemExit("\n".join(f"{s.structure}: {s.backend}: {s.reason}" for s in statuses))


def require_close(name: str, found: torch.Tensor, expected: torch.Tensor) -> None:
    if not torch.allclose(found, expected, atol=1e-5, rtol=1e-5):
        raise SystemExit(f"{name} is {found}, expected {expected}")


def check_linear_chain() -> None:
    """Log Z, its gradient and the entropy of a chain with a forbidden move, by its 27 paths."""
    emissions = torch.randn(3, 3, requires_grad=True)
    transitions = torch.randn(3, 3).index_fill(0, torch.tensor([2]), -torch.inf)
    scores = []
    for path in itertools.product(range(3), repeat=3):
        steps = sum(emissions[t, state] for t, state in enumerate(path))
        scores.append(steps + sum(transitions[i, j] for i, j in itertools.pairwise(path)))
    log_probs = torch.stack(scores).log_softmax(0)
    possible = log_probs[log_probs > -torch.inf]
    dist = LinearChainCRF(emissions, transitions)
    require_close("log_partition", dist.log_partition, torch.stack(scores).logsumexp(0))
    require_close("entropy", dist.entropy(), -(possible.exp() * possible).sum())
    (grad,) = torch.autograd.grad(dist.log_partition, emissions)
    (expected,) = torch.autograd.grad(torch.stack(scores).logsumexp(0), emissions)
    require_close("gradient", grad, expected)


def check_segments_and_draws() -> None:
    """Segments of one step are a linear chain; draws have rows of ones, and gradients."""
    emissions, transitions = torch.randn(2, 5, 3, requires_grad=True), torch.randn(3, 3)
    dist = LinearChainCRF(emissions, transitions, torch.tensor([5, 2]))
    spans = SemiMarkovCRF(emissions, transitions, torch.zeros(1, 3), torch.tensor([5, 2]))
    require_close("log_partition of segments", spans.log_partition, dist.log_partition)
    SemiMarkovCRF(emissions, transitions, torch.zeros(4, 3)).rsample((2,)).sum().backward()
    draw = dist.rsample(temperature=0.5, straight_through=True)
    (draw * torch.randn_like(draw)).sum().backward()
    require_close("rows of a draw", draw.sum(-1), torch.tensor([[1.0] * 5, [1, 1, 0, 0, 0]]))
    if not emissions.grad.isfinite().all():
        raise SystemExit(f"a gradient is not finite: {emissions.grad}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--backend", required=True, help="that should be in use on the CPU")
    require_backend(parser.parse_args().backend)
    torch.manual_seed(0)
    check_linear_chain()
    check_segments_and_draws()
    place = Path(structdist.__file__).parent
    print(f"structdist {structdist.__version__} with torch {torch.__version__} works, from {place}")


if __name__ == "__main__":
    main()
