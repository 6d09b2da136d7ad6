"""The dynamic programs on plain tensors: one door, several backends.

Behind it: `reference` (textbook, differentiable to any order), `rescaled` (fast, torch, every
device) and `native` (the same, compiled, on the CPU), with `autograd` for their gradients. Inside
a `torch.func` transform everything goes through `reference`, which the transforms can follow.
"""

from __future__ import annotations

import torch
from torch import Tensor

from structdist.ops import autograd, reference
from structdist.ops.autograd import transforming
from structdist.ops.chain import (
    Best,
    Chain,
    Draw,
    Filtered,
    KBest,
    in_chain,
    per_step,
    same_form,
)
from structdist.ops.reference import enumerate_paths
from structdist.ops.scoring import path_scores
from structdist.ops.top_paths import k_best

__all__ = [
    "Best",
    "Chain",
    "Draw",
    "Filtered",
    "KBest",
    "edge_marginals",
    "entropy",
    "enumerate_paths",
    "expectation",
    "filter",
    "gumbel_ffbs",
    "in_chain",
    "k_best",
    "log_partition",
    "node_marginals",
    "path_scores",
    "per_step",
    "relaxed_viterbi",
    "same_form",
    "sample_paths",
    "transforming",
    "viterbi",
]


def _double(chain: Chain) -> Chain:
    """For `reference`, which does not normalise step by step, and needs the digits instead."""
    emissions, transitions, lengths = chain
    return Chain(emissions.double(), transitions.double(), lengths)


def _like(draw: Draw, chain: Chain) -> Draw:
    return Draw(draw.soft.to(chain.emissions.dtype), draw.path)


def filter(chain: Chain) -> Filtered | None:
    """The forward pass, to be given to the functions below; None inside a transform."""
    if transforming():
        return None
    with torch.no_grad():
        return autograd.kernels_for(chain).filter(chain)


def log_partition(chain: Chain, filtered: Filtered | None) -> Tensor:
    """[N], float64. O(N T K^2)."""
    if filtered is None:
        return reference.log_partition(_double(chain))
    return autograd.LogPartition.apply(*chain, *filtered)


def node_marginals(chain: Chain, filtered: Filtered | None) -> Tensor:
    """[N, T, K]. O(N T K^2)."""
    if filtered is None:
        return reference.node_marginals(_double(chain))
    return autograd.NodeMarginals.apply(*chain, *filtered)


def edge_marginals(chain: Chain, filtered: Filtered | None) -> Tensor:
    """[N, T-1, K, K]. O(N T K^2), memory too."""
    if filtered is None:
        return reference.edge_marginals(_double(chain))
    return autograd.EdgeMarginals.apply(*chain, *filtered)


def entropy(chain: Chain, filtered: Filtered | None) -> Tensor:
    """[N], float64. O(N T K^2)."""
    if filtered is None:
        return reference.entropy(_double(chain))
    return autograd.Entropy.apply(*chain, *filtered)


def expectation(
    chain: Chain, nodes: Tensor | None, edges: Tensor | None, filtered: Filtered | None
) -> Tensor:
    """[N], float64: E of node values [N, T, K] and edge values. O(N T K^2)."""
    emissions, transitions, lengths = chain
    if nodes is None:
        nodes = torch.zeros_like(emissions)
    if edges is not None:
        transitions, edges = same_form(transitions, edges)
    if filtered is None:
        edges = torch.zeros_like(transitions) if edges is None else edges
        chain = Chain(emissions, transitions, lengths)
        return reference.expectation(_double(chain), nodes.double(), edges.double())
    return autograd.Expectation.apply(emissions, transitions, nodes, edges, lengths, *filtered)


def sample_paths(chain: Chain, uniform: Tensor, filtered: Filtered | None) -> Tensor:
    """[S, N, T]: exact draws from uniform float64 noise [S, N, T]. O(S N T K)."""
    if filtered is None:
        return reference.sample_paths(_double(chain), uniform)
    return autograd.kernels_for(chain).sample_paths(chain, filtered, uniform)


def gumbel_ffbs(
    chain: Chain, gumbel: Tensor, temperature: float, filtered: Filtered | None
) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K], and their relaxation. O(S N T K)."""
    if filtered is None:
        return _like(reference.gumbel_ffbs(_double(chain), gumbel, temperature), chain)
    emissions, transitions, lengths = chain
    return Draw(
        *autograd.GumbelFFBS.apply(emissions, transitions, gumbel, temperature, lengths, *filtered)
    )


def relaxed_viterbi(chain: Chain, temperature: float) -> Draw:
    """The best path (S = 1) with relaxed back-tracking. O(N T K^2)."""
    if transforming():
        return _like(reference.relaxed_viterbi(_double(chain), temperature), chain)
    return Draw(*autograd.RelaxedViterbi.apply(*chain, temperature))


def viterbi(chain: Chain) -> Best:
    """The best path [N, T] and its score [N], without a gradient. O(N T K^2)."""
    if transforming():
        return reference.viterbi(_double(chain))
    with torch.no_grad():
        return autograd.kernels_for(chain).viterbi(chain)
