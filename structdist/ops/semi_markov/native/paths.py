"""Scores of given segmentations, and their adjoint."""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops.native.library import pointers
from structdist.ops.problem import Grads, Needs
from structdist.ops.semi_markov.native.arguments import CPU, PathArguments, call, ready
from structdist.ops.semi_markov.problem import SemiMarkovChain


def path_scores(chain: SemiMarkovChain, paths: Tensor) -> Tensor:
    """[S, N] float64, of paths [S, N, T]: 0 if the chain is empty, -inf if none. O(S N T)."""
    chain, paths = ready(chain), paths.contiguous()
    scores = torch.zeros(paths.shape[:2], dtype=torch.float64, device=CPU)
    given = pointers(paths, scores, None, None, None, None)
    call("segment_scores", chain, PathArguments(len(paths), *given))
    return scores


def path_scores_adjoint(chain: SemiMarkovChain, paths: Tensor, grad: Tensor, needs: Needs) -> Grads:
    """Each part of a path [S, N, T] gets the gradient [S, N] of its path. O(S N T)."""
    chain, paths = ready(chain), paths.contiguous()
    grad = grad.to(chain.emissions.dtype).contiguous()
    found = [
        torch.zeros_like(x) if need else None for x, need in zip(chain.scores, needs, strict=True)
    ]
    given = pointers(paths, None, grad, *found)
    call("segment_scores_adjoint", chain, PathArguments(len(paths), *given))
    return found
