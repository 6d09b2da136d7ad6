"""The textbook recurrences, one step at a time.

Everything here is plain: each function is differentiable by autograd to any order, and is what the
fast kernels are tested against. Enumeration (`enumerate_paths`, `path_scores`) is in turn what this
file is tested against. The two back-tracking loops, which are O(K) a step as they stand, and the
search for the k best paths also serve the fast backends.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import Chain, in_chain, without_padding
from structdist.ops.edges import edges_at, edges_into
from structdist.ops.problem import Best, Draw, KBest, Temperature, Values
from structdist.semirings import (
    Element,
    EntropySemiring,
    ExpectationSemiring,
    LogSemiring,
    MaxSemiring,
    Semiring,
    softmax,
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


def expectation(chain: Chain, values: Values) -> Tensor:
    """[N]: E of the sum along the path of values on nodes [N, T, K] and on edges (of any form)."""
    chain, (node_values, edge_values) = chain.with_values(values)
    emissions, transitions, lengths = without_padding(chain)
    node_values, edge_values, _ = without_padding(Chain(node_values, edge_values, lengths))
    nodes, edges = (emissions, node_values), (transitions, edge_values)
    return scan(ExpectationSemiring(), nodes, edges, lengths).total[1]


def marginals(chain: Chain, part: int) -> Tensor:
    """Probabilities of each state at each step [N, T, K] (part 0), or move [N, T-1, K, K] (1)."""
    nodes, edges = _smooth(chain)
    return edges if part else nodes


def _smooth(chain: Chain) -> tuple[Tensor, Tensor]:
    """Marginals of nodes and edges, from last to first, 0 in the padding.

    Given the state j after it, a state i has the probability softmax_i(log_alpha_i + score_ij).
    """
    emissions, transitions, lengths = without_padding(chain)
    num_steps, num_states = emissions.shape[1:]
    (log_alpha,), _ = scan(LogSemiring(), (emissions,), (transitions,), lengths)
    active = in_chain(lengths, num_steps)[..., None]
    last = torch.where(active[:, 0], softmax(log_alpha[:, -1], -1), 0.0)
    nodes, edges = [last], [log_alpha[:, :0, :, None].expand(-1, -1, -1, num_states)]
    for t in reversed(range(1, num_steps)):
        before = softmax(log_alpha[:, t - 1, :, None] + edges_at(transitions, t - 1), -2)
        moves = torch.where(active[:, t, None], before * nodes[-1].unsqueeze(-2), 0.0)
        nodes[-1], stay = torch.where(active[:, t], nodes[-1], 0.0), nodes[-1]
        nodes.append(torch.where(active[:, t], moves.sum(-1), stay))
        edges.append(moves.unsqueeze(1))
    return torch.stack(nodes[::-1], 1), torch.cat(edges[::-1], 1)


def relaxed_backtrack(
    prefix: Tensor, transitions: Tensor, lengths: Tensor, noise: Tensor, temperature: Temperature
) -> Draw:
    """Choose states from last to first: softmax and argmax of prefix + move + noise.

    Each relaxed step depends on the *hard* choice after it. With log-sum prefixes [N, T, K] and
    Gumbel noise [S, N, T, K] this is Algorithm 2 of Fu et al., with best-path prefixes and no noise
    it is their relaxed Viterbi.
    """
    num_steps = prefix.shape[1]
    active = in_chain(lengths, num_steps)
    follows = in_chain(lengths - 1, num_steps)  # a step that is not the last
    if isinstance(temperature, Tensor):
        temperature = temperature.unsqueeze(-1)  # to divide [S, N, K]
    soft: list[Tensor] = []
    path: list[Tensor] = []
    for t in reversed(range(num_steps)):
        logits = prefix[:, t] + noise[:, :, t]
        if path:
            moves = edges_into(transitions, t, path[-1])
            logits = logits + torch.where(follows[:, t, None], moves, 0.0)
        logits = torch.where(active[:, t, None], logits, 0.0)
        possible = logits > -torch.inf  # -inf would leave the temperature a NaN gradient
        divided = torch.where(possible, logits, 0.0) / temperature
        relaxed = softmax(torch.where(possible, divided, -torch.inf), -1)
        soft.append(torch.where(active[:, t, None], relaxed, 0.0))
        path.append(logits.argmax(-1) * active[:, t])
    return Draw(torch.stack(soft[::-1], 2), torch.stack(path[::-1], 2))


def gumbel_ffbs(chain: Chain, gumbel: Tensor, temperature: Temperature) -> Draw:
    """Exact draws by Gumbel noise [S, N, T, K], with their relaxation."""
    emissions, transitions, lengths = without_padding(chain)
    (log_alpha,), _ = scan(LogSemiring(), (emissions,), (transitions,), lengths)
    return relaxed_backtrack(log_alpha, transitions, lengths, gumbel, temperature)


def relaxed_viterbi(chain: Chain, temperature: Temperature) -> Draw:
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
    cumulative = softmax(logits, -1).cumsum(-1)
    below = cumulative <= (uniform.unsqueeze(-1) * cumulative[..., -1:])
    last_possible = (cumulative < cumulative[..., -1:]).sum(-1)
    return torch.minimum(below.sum(-1), last_possible)


def enumerate_paths(num_steps: int, num_states: int, device: torch.device | None = None) -> Tensor:
    """[K^T, T]: every path, the last step changing fastest."""
    states = torch.arange(num_states, device=device)
    grid = torch.meshgrid(*[states] * num_steps, indexing="ij")
    return torch.stack(grid, -1).reshape(-1, num_steps)


def path_scores(chain: Chain, paths: Tensor) -> Tensor:
    """[S, N]: the score of each path [S, N, T]; 0 for an empty chain, -inf for what is no path."""
    emissions, transitions, lengths = without_padding(chain)
    num_chains, num_steps, num_states = emissions.shape
    active = in_chain(lengths, num_steps)
    paths = torch.where(active, paths, 0)
    possible = ((paths >= 0) & (paths < num_states)).all(-1)
    paths = paths.clamp(0, num_states - 1)
    chains = torch.arange(num_chains, device=paths.device)
    score = emissions.new_zeros(paths.shape[:2])
    for t in range(num_steps):
        step = emissions[chains, t, paths[:, :, t]]
        if t > 0:
            moves = edges_into(transitions, t - 1, paths[:, :, t])
            step = step + moves.gather(-1, paths[:, :, t - 1, None]).squeeze(-1)
        score = score + torch.where(active[:, t], step, 0.0)
    return torch.where(possible, score, -torch.inf)


def k_best(chain: Chain, k: int) -> KBest:
    """The k best distinct paths. O(N T K^2 k) time, O(N T K k) memory besides one step."""
    emissions, transitions, lengths = without_padding(chain)
    emissions = emissions.double()  # long chains and large scores need the digits
    batch, num_steps, num_states = emissions.shape
    active = in_chain(lengths, num_steps)
    best = emissions.new_full((batch, k, num_states), -torch.inf)  # [N, k, K]
    best[:, 0] = emissions[:, 0]
    stay = torch.arange(k * num_states, device=best.device).view(k, num_states)
    pointers = []  # into the flattened [k, K] of the step before
    for t in range(1, num_steps):
        moves = best.unsqueeze(-1) + edges_at(transitions, t - 1).unsqueeze(1)  # [N, k, K, K]
        scores, pointer = moves.flatten(1, 2).topk(k, dim=1)
        going_on = active[:, t, None, None]
        best = torch.where(going_on, scores + emissions[:, t, None], best)
        pointers.append(torch.where(going_on, pointer, stay).flatten(1))
    scores, place = best.flatten(1).topk(k, dim=1)  # [N, k]
    empty = torch.where(torch.arange(k, device=scores.device) == 0, 0.0, -torch.inf)
    scores = torch.where(lengths[:, None] > 0, scores, empty)
    path = [place % num_states]
    for pointer in reversed(pointers):
        place = pointer.gather(1, place)
        path.append(place % num_states)
    paths = torch.stack(path[::-1], -1) * active[:, None] * ~scores.isinf()[..., None]
    return KBest(paths.transpose(0, 1), scores.T)


def gumbel_noise(seed: int, count: int, dtype: torch.dtype) -> Tensor:
    """The twin of csrc/noise.cpp: [count] numbers from Philox 4x32-10, in float64 or rounded.

    Words come in blocks of 64 counters, the first words of all of them before the second ones; a
    double takes two words of one counter.
    """
    per_counter = 4 if dtype == torch.float32 else 2
    blocks = -(-count // (64 * per_counter))
    words = _philox(seed, torch.arange(64 * blocks).view(blocks, 64))  # [4, blocks, 64]
    if dtype == torch.float32:
        integers, most = words.movedim(0, 1) >> 1, 2.0**31 - 1
    else:
        pairs = (
            torch.stack([words[0], words[2]], 1) * 2**31,
            torch.stack([words[1], words[3]], 1) >> 1,
        )
        integers, most = pairs[0] + pairs[1], 2.0**63 - 1
    uniform = (integers.flatten()[:count].to(dtype) + 0.5) * ((1 - torch.finfo(dtype).eps) / most)
    return -(-torch.log1p(-uniform.double())).log().to(dtype)


def _philox(seed: int, counters: Tensor) -> Tensor:
    """[4, ...]: four random 32-bit words for each counter."""
    low = 2**32 - 1
    words = [counters & low, counters >> 32, torch.zeros_like(counters), torch.zeros_like(counters)]
    keys = [seed & low, seed >> 32]
    for _ in range(10):
        products = [_wide_product(0xD2511F53, words[0]), _wide_product(0xCD9E8D57, words[2])]
        words = [
            products[1][0] ^ words[1] ^ keys[0],
            products[1][1],
            products[0][0] ^ words[3] ^ keys[1],
            products[0][1],
        ]
        keys = [(keys[0] + 0x9E3779B9) & low, (keys[1] + 0xBB67AE85) & low]
    return torch.stack(words)


def _wide_product(factor: int, x: Tensor) -> tuple[Tensor, Tensor]:
    """The high and the low 32 bits of a product, without a number of more than 63 bits."""
    low_half, high_half = factor * (x & 0xFFFF), factor * (x >> 16)
    middle = high_half + (low_half >> 16)
    return middle >> 16, ((middle & 0xFFFF) << 16) | (low_half & 0xFFFF)
