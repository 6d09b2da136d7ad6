"""Choosing segments from last to first: exact draws, Gumbel-FFBS and best paths.

Where the segment after it begins, a segment ends. Its label is chosen first, given the label after
it; then its length, given its label. That is the choice of a pair (label, length), at O(K + L)
instead of O(K L), and with L = 1 it is the linear chain's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import in_chain
from structdist.ops.edges import EdgeForm, edges_into
from structdist.ops.problem import Draw, Temperature
from structdist.ops.semi_markov.problem import ending_at
from structdist.semirings import softmax


class Prefixes(NamedTuple):
    """What is chosen by: scores of prefixes, and those of the chain without its padding.

    Each step of `ends` may have lost a constant that `begins` and `emissions` have lost too.
    """

    ends: Tensor  # [N, T, K]: of all that ends with a segment of a label whose last step is t
    begins: Tensor  # [N, T, K]: of all that may stand before a segment of a label from t on
    emissions: Tensor  # [N, T, K]
    transitions: Tensor
    segments: Tensor
    lengths: Tensor  # [N]

    def before(self, t: int, label: Tensor) -> Tensor:
        """[S, N, K]: of labels whose segment ends with step t, given the label [S, N] after it."""
        ends = self.ends[:, t].expand(*label.shape, -1)
        if t + 1 == self.ends.shape[1]:
            return ends
        moves = edges_into(self.transitions, t, label)
        return ends + torch.where((self.lengths > t + 1)[:, None], moves, 0.0)

    def by_first_step(self, t: int) -> Tensor:
        """[N, l, K]: of segments of every label whose last step is t, the longest first."""
        first = slice(max(t + 1 - self.segments.shape[-2], 0), t + 1)
        steps = self.emissions[:, first].flip(1).cumsum(1).flip(1)
        return self.begins[:, first] + steps + ending_at(self.segments, t + 1)

    def sizes(self, t: int, label: Tensor) -> Tensor:
        """[S, N, l]: of the lengths 1..l of a segment of a label [S, N] whose last step is t."""
        count = min(self.segments.shape[-2], t + 1)
        first = slice(t + 1 - count, t + 1)
        steps = pick_label(self.emissions[:, first], label).flip(-1).cumsum(-1)
        begins = pick_label(self.begins[:, first], label).flip(-1)
        return begins + steps + self._segments(t, count, label)

    def _segments(self, t: int, count: int, label: Tensor) -> Tensor:
        form = EdgeForm.of(self.segments)
        if form is EdgeForm.SHARED:
            return self.segments[:count].T[label]
        if form is EdgeForm.PER_CHAIN:
            return pick_label(self.segments[:, :count], label)
        size = torch.arange(count, device=label.device)
        return pick_label(self.segments[:, t - size, size], label)


def pick_label(scores: Tensor, label: Tensor) -> Tensor:
    """[S, N, l]: of scores [N, l, K], those of one label [S, N] of each chain."""
    chains = torch.arange(label.shape[-1], device=label.device)
    return scores.transpose(-1, -2)[chains, label]


Choose = Callable[[int, Tensor, Tensor], Tensor]  # of step, logits and which are at a boundary


def backtrack(
    prefixes: Prefixes, num_samples: int, choose_label: Choose, choose_size: Choose
) -> Tensor:
    """[S, N, T]: paths. A choice is made at every step, and kept where a segment ends."""
    lengths, num_labels = prefixes.lengths, prefixes.ends.shape[-1]
    num_steps = prefixes.ends.shape[1]
    ending = lengths.expand(num_samples, -1)  # where the next segment to be chosen ends
    label = begin = torch.zeros_like(ending)
    path = []
    for t in reversed(range(num_steps)):
        ends_here = ending == t + 1
        chosen = choose_label(t, prefixes.before(t, label), ends_here)
        label = torch.where(ends_here, chosen, label)
        size = choose_size(t, prefixes.sizes(t, label), ends_here) + 1
        begin = torch.where(ends_here, t + 1 - size, begin)
        path.append(torch.where(begin == t, label, label + num_labels))
        ending = torch.where(begin == t, t, torch.where(ends_here, 0, ending))
    return torch.stack(path[::-1], 2) * in_chain(lengths, num_steps)


def relaxed_backtrack(prefixes: Prefixes, noise: Tensor, temperature: Temperature) -> Draw:
    """Softmax and argmax of prefix + move + noise [S, N, T, K + L]: Algorithm 2 of Fu et al.

    The relaxation [S, N, T, K + L] holds, at the last step of each segment of the hard path, the
    relaxed label [K] and, given the hard label, the relaxed length [L]; zeros at other steps. Each
    depends on the *hard* choices after it.
    """
    num_labels, longest = prefixes.ends.shape[-1], prefixes.segments.shape[-2]
    if isinstance(temperature, Tensor):
        temperature = temperature.unsqueeze(-1)  # to divide [S, N, K]
    soft: list[list[Tensor]] = [[], []]

    def chooser(rows: list[Tensor], first: int, width: int) -> Choose:
        def choose(t: int, logits: Tensor, ends_here: Tensor) -> Tensor:
            count = logits.shape[-1]
            logits = logits + noise[:, :, t, first : first + count]
            logits = torch.where(ends_here.unsqueeze(-1), logits, 0.0)
            possible = logits > -torch.inf  # -inf would leave the temperature a NaN gradient
            divided = torch.where(possible, logits, 0.0) / temperature
            relaxed = softmax(torch.where(possible, divided, -torch.inf), -1)
            relaxed = torch.where(ends_here.unsqueeze(-1), relaxed, 0.0)
            rows.append(torch.nn.functional.pad(relaxed, (0, width - count)))
            return logits.argmax(-1)

        return choose

    by_label = chooser(soft[0], 0, num_labels)
    by_size = chooser(soft[1], num_labels, longest)
    path = backtrack(prefixes, len(noise), by_label, by_size)
    labels, sizes = (torch.stack(rows[::-1], 2) for rows in soft)
    return Draw(torch.cat([labels, sizes], -1), path)


def best_backtrack(prefixes: Prefixes, temperature: Temperature) -> Draw:
    """The same without noise, S = 1: with prefixes of best paths the relaxed Viterbi."""
    num_choices = prefixes.ends.shape[-1] + prefixes.segments.shape[-2]
    no_noise = torch.zeros_like(prefixes.ends[..., :1]).expand(-1, -1, num_choices)
    return relaxed_backtrack(prefixes, no_noise[None], temperature)


def sampling_backtrack(prefixes: Prefixes, uniform: Tensor) -> Tensor:
    """[S, N, T]: each label and length with its probability, by uniform noise [S, N, T].

    What is left of a uniform number once it has chosen a label is uniform again: it chooses the
    length.
    """
    rest: list[Tensor] = []

    def choose_label(t: int, logits: Tensor, ends_here: Tensor) -> Tensor:
        chosen, left = _invert_cdf(logits, uniform[:, :, t])
        rest.append(left)
        return chosen

    def choose_size(t: int, logits: Tensor, ends_here: Tensor) -> Tensor:
        return _invert_cdf(logits, rest.pop())[0]

    return backtrack(prefixes, len(uniform), choose_label, choose_size)


def _invert_cdf(logits: Tensor, uniform: Tensor) -> tuple[Tensor, Tensor]:
    """The first choice whose cumulative probability exceeds `uniform`, and what is left of that.

    It is never an impossible one.
    """
    prob = softmax(logits, -1)
    cumulative = prob.cumsum(-1)
    target = uniform.unsqueeze(-1) * cumulative[..., -1:]
    last_possible = (cumulative < cumulative[..., -1:]).sum(-1)
    chosen = torch.minimum((cumulative <= target).sum(-1), last_possible).unsqueeze(-1)
    share = prob.gather(-1, chosen)
    left = (target - cumulative.gather(-1, chosen) + share) / torch.where(share > 0, share, 1.0)
    return chosen.squeeze(-1), left.squeeze(-1).clamp(0, 1)
