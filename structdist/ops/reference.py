"""The textbook recurrences, one step at a time.

Everything here is plain: each function is differentiable by autograd to any order, and is what the
fast kernels are tested against. Enumeration (`enumerate_paths`, `path_scores`) is in turn what this
file is tested against. The two back-tracking loops, which are O(K) a step as they stand, also serve
the torch backend.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import (
    Best,
    Chain,
    Draw,
    edges_at,
    edges_into,
    in_chain,
    per_step,
    without_padding,
)
from structdist.semirings import (
    Element,
    EntropySemiring,
    ExpectationSemiring,
    LogSemiring,
    MaxSemiring,
    Semiring,
    logsumexp,
    times,
)


class Scan(NamedTuple):
    prefix: Element  # each [N, T, K]: all paths that end in a state, step by step
    total: Element  # each [N]: all paths


def scan(semiring: Semiring, nodes: Element, edges: Element, lengths: Tensor) -> Scan:
    """Pool all paths from left to right. Nodes are [N, T, K]; edges have a form of `Chain`."""
    num_steps = nodes[0].shape[1]
    active = in_chain(lengths, num_steps)  # [N, T]
    prefix = [tuple(node[:, 0] for node in nodes)]
    for t in range(1, num_steps):
        edge = tuple(edges_at(e, t - 1) for e in edges)
        before = tuple(p.unsqueeze(-1) for p in prefix[-1])
        here = times(semiring.add(times(before, edge), dim=-2), tuple(n[:, t] for n in nodes))
        going_on = active[:, t, None]
        pairs = zip(here, prefix[-1], strict=True)
        prefix.append(tuple(torch.where(going_on, new, old) for new, old in pairs))
    total = semiring.add(prefix[-1], dim=-1)
    total = tuple(torch.where(lengths > 0, x, 0.0) for x in total)
    return Scan(tuple(torch.stack(steps, 1) for steps in zip(*prefix, strict=True)), total)


def log_partition(chain: Chain) -> Tensor:
    """[N]: log of the sum over all paths of exp(score). O(N T K^2)."""
    emissions, transitions, lengths = without_padding(chain)
    return scan(LogSemiring(), (emissions,), (transitions,), lengths).total[0]


def entropy(chain: Chain) -> Tensor:
    """[N]: the entropy of the path. O(N T K^2)."""
    emissions, transitions, lengths = without_padding(chain)
    nodes = emissions, torch.zeros_like(emissions)
    edges = transitions, torch.zeros_like(transitions)
    return scan(EntropySemiring(), nodes, edges, lengths).total[1]


def expectation(chain: Chain, node_values: Tensor, edge_values: Tensor) -> Tensor:
    """[N]: E of the sum of the values [N, T, K] and (of the transitions' form) along the path."""
    emissions, transitions, lengths = without_padding(chain)
    values = without_padding(Chain(node_values, edge_values, lengths))
    nodes = emissions, values.emissions
    edges = transitions, values.transitions
    return scan(ExpectationSemiring(), nodes, edges, lengths).total[1]


def _forward_backward(chain: Chain) -> tuple[Tensor, Tensor, Tensor]:
    """Log weights of prefixes that end, and suffixes that start, in a state [N, T, K]; log Z."""
    emissions, transitions, lengths = chain
    num_steps = emissions.shape[1]
    active = in_chain(lengths, num_steps)
    (log_alpha,), (log_z,) = scan(LogSemiring(), (emissions,), (transitions,), lengths)
    log_beta = [torch.zeros_like(emissions[:, 0])]
    for t in reversed(range(1, num_steps)):
        after = (emissions[:, t] + log_beta[-1]).unsqueeze(-2)
        here = logsumexp(edges_at(transitions, t - 1) + after, dim=-1)
        log_beta.append(torch.where(active[:, t, None], here, 0.0))
    return log_alpha, torch.stack(log_beta[::-1], 1), torch.where(log_z.isinf(), 0.0, log_z)


def node_marginals(chain: Chain) -> Tensor:
    """[N, T, K]: probability of each state at each step, 0 in the padding."""
    chain = without_padding(chain)
    log_alpha, log_beta, log_z = _forward_backward(chain)
    log_marginals = log_alpha + log_beta - log_z[:, None, None]
    active = in_chain(chain.lengths, log_marginals.shape[1])[..., None]
    return torch.where(active, log_marginals, -torch.inf).exp()


def edge_marginals(chain: Chain) -> Tensor:
    """[N, T-1, K, K]: probability of each move from i to j, 0 in the padding."""
    emissions, transitions, lengths = without_padding(chain)
    log_alpha, log_beta, log_z = _forward_backward(Chain(emissions, transitions, lengths))
    edges = per_step(transitions)
    after = (emissions + log_beta)[:, 1:, None, :]
    log_marginals = log_alpha[:, :-1, :, None] + edges + after - log_z[:, None, None, None]
    active = in_chain(lengths, emissions.shape[1])[:, 1:, None, None]
    return torch.where(active, log_marginals, -torch.inf).exp()


def relaxed_backtrack(
    prefix: Tensor, transitions: Tensor, lengths: Tensor, noise: Tensor, temperature: float
) -> Draw:
    """Choose states from last to first: softmax and argmax of prefix + move + noise.

    Each relaxed step depends on the *hard* choice after it. With log-sum prefixes [N, T, K] and
    Gumbel noise [S, N, T, K] this is Algorithm 2 of Fu et al., with best-path prefixes and no noise
    it is their relaxed Viterbi.
    """
    num_steps = prefix.shape[1]
    active = in_chain(lengths, num_steps)
    follows = in_chain(lengths - 1, num_steps)  # a step that is not the last
    soft: list[Tensor] = []
    path: list[Tensor] = []
    for t in reversed(range(num_steps)):
        logits = prefix[:, t] + noise[:, :, t]
        if path:
            moves = edges_into(transitions, t, path[-1])
            logits = logits + torch.where(follows[:, t, None], moves, 0.0)
        logits = torch.where(active[:, t, None], logits, 0.0)
        relaxed = torch.softmax(logits / temperature, -1)
        soft.append(torch.where(active[:, t, None], relaxed, 0.0))
        path.append(logits.argmax(-1) * active[:, t])
    return Draw(torch.stack(soft[::-1], 2), torch.stack(path[::-1], 2))


def gumbel_ffbs(chain: Chain, gumbel: Tensor, temperature: float) -> Draw:
    """Exact draws by Gumbel noise [S, N, T, K], with their relaxation."""
    emissions, transitions, lengths = without_padding(chain)
    (log_alpha,), _ = scan(LogSemiring(), (emissions,), (transitions,), lengths)
    return relaxed_backtrack(log_alpha, transitions, lengths, gumbel, temperature)


def relaxed_viterbi(chain: Chain, temperature: float) -> Draw:
    """The best path (S = 1) with relaxed back-tracking."""
    emissions, transitions, lengths = without_padding(chain)
    (best,), _ = scan(MaxSemiring(), (emissions,), (transitions,), lengths)
    return relaxed_backtrack(best, transitions, lengths, torch.zeros_like(best)[None], temperature)


def viterbi(chain: Chain) -> Best:
    """The best path. O(N T K^2)."""
    emissions, transitions, lengths = without_padding(chain)
    (best,), (score,) = scan(MaxSemiring(), (emissions,), (transitions,), lengths)
    no_noise = torch.zeros_like(best)[None]
    return Best(relaxed_backtrack(best, transitions, lengths, no_noise, 1.0).path[0], score)


def sample_paths(chain: Chain, uniform: Tensor) -> Tensor:
    """[S, N, T]: exact draws by inverting the distribution function at `uniform` [S, N, T]."""
    emissions, transitions, lengths = without_padding(chain)
    (log_alpha,), _ = scan(LogSemiring(), (emissions,), (transitions,), lengths)
    return sampling_backtrack(log_alpha, transitions, lengths, uniform)


def sampling_backtrack(
    prefix: Tensor, transitions: Tensor, lengths: Tensor, uniform: Tensor
) -> Tensor:
    """Choose states from last to first, each with its probability given the one after it."""
    num_steps = prefix.shape[1]
    active, follows = in_chain(lengths, num_steps), in_chain(lengths - 1, num_steps)
    path: list[Tensor] = []
    for t in reversed(range(num_steps)):
        logits = prefix[:, t].expand(*uniform.shape[:2], -1)
        if path:
            moves = edges_into(transitions, t, path[-1])
            logits = logits + torch.where(follows[:, t, None], moves, 0.0)
        path.append(_invert_cdf(logits, uniform[:, :, t]) * active[:, t])
    return torch.stack(path[::-1], 2)


def _invert_cdf(logits: Tensor, uniform: Tensor) -> Tensor:
    """The first state whose cumulative probability exceeds `uniform`; never an impossible one."""
    cumulative = torch.softmax(logits, -1).cumsum(-1)
    below = cumulative <= (uniform.unsqueeze(-1) * cumulative[..., -1:])
    last_possible = (cumulative < cumulative[..., -1:]).sum(-1)
    return torch.minimum(below.sum(-1), last_possible)


def enumerate_paths(num_steps: int, num_states: int, device: torch.device | None = None) -> Tensor:
    """[K^T, T]: every path, the last step changing fastest."""
    states = torch.arange(num_states, device=device)
    grid = torch.meshgrid(*[states] * num_steps, indexing="ij")
    return torch.stack(grid, -1).reshape(-1, num_steps)


def path_scores(chain: Chain, paths: Tensor) -> Tensor:
    """[S, N]: the score of each path [S, N, T]; 0 for an empty chain."""
    emissions, transitions, lengths = without_padding(chain)
    num_chains, num_steps, _ = emissions.shape
    active = in_chain(lengths, num_steps)
    paths = torch.where(active, paths, 0)
    chains = torch.arange(num_chains, device=paths.device)
    score = emissions.new_zeros(paths.shape[:2])
    for t in range(num_steps):
        step = emissions[chains, t, paths[:, :, t]]
        if t > 0:
            moves = edges_into(transitions, t - 1, paths[:, :, t])
            step = step + moves.gather(-1, paths[:, :, t - 1, None]).squeeze(-1)
        score = score + torch.where(active[:, t], step, 0.0)
    return score
