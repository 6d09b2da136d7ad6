"""What is true of a batch of chains: answers from the list of all outcomes, and how sure they are.

The score of an outcome is a sum, and sums of floating point numbers are right but for a *slack*
that grows with the numbers in them: beside 1e38 nobody knows a 1, neither this oracle nor the
library. So an answer is an interval: what it may be if every score is off by its slack. It is
narrow (about 1e-12) where scores are moderate, and where masks (huge and negative) make outcomes
impossible; it is wide where outcomes that compete have huge scores, or stand beside an outcome that
begins with a huge positive score, from which the scores of others are taken off, and goes on with a
mask. Nothing of `structdist` is used here.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from tests.fuzz.listings import Listing, Sizes, keys_of, listing

EPSILON = torch.finfo(torch.float64).eps
FARTHEST = 600.0  # exponents beyond are not told apart: their exp, and sums of it, stay finite


class Interval(NamedTuple):
    low: Tensor
    high: Tensor


@dataclass(frozen=True)
class Group:
    """The chains of one length, and the scores of all their outcomes."""

    rows: Tensor  # [n]: which chains of the batch
    listed: Listing
    scores: Tensor  # [n, P]
    slack: Tensor  # [n, P]: how far each may be off

    @property
    def log_partition(self) -> Tensor:
        return self.scores.logsumexp(-1)

    @property
    def log_probs(self) -> Tensor:
        return self.scores - self.log_partition.unsqueeze(-1)

    def bounds(self) -> Interval:
        """Of log Z [n]."""
        return Interval(*((self.scores + x).logsumexp(-1) for x in (-self.slack, self.slack)))

    def weights(self, sign: int) -> Tensor:
        """[n, P]: of outcomes, if all scores were off to one side; the surest best one is 1."""
        surest = (self.scores - self.slack).amax(-1, keepdim=True)
        return (self.scores + sign * self.slack - surest).clamp(max=FARTHEST).exp()

    def part_bounds(self) -> Interval:
        """[n, F]: of the probabilities of parts, whose outcomes may be too heavy or too light."""
        least, most = self.weights(-1), self.weights(1)
        has, lacks = self.listed.counts, 1 - self.listed.counts
        low, high = least @ has, most @ has
        return Interval(
            low / (low + most @ lacks).clamp(min=1e-300),
            high / (high + least @ lacks).clamp(min=1e-300),
        )

    def doubt(self) -> Tensor:
        """[n]: how much probability may be elsewhere; small for all but huge scores."""
        moved = (self.log_probs + 2 * self.slack).clamp(max=FARTHEST).exp() - self.log_probs.exp()
        return moved.sum(-1).clamp(0, 1)

    def mean_of(self, values: Tensor) -> Tensor:
        """[n]: of values of outcomes [n, P]; what is forbidden may have any."""
        return torch.where(self.scores == -torch.inf, 0.0, self.log_probs.exp() * values).sum(-1)

    def entropy(self) -> Tensor:
        return -self.mean_of(self.log_probs)

    def entropy_by_parts(self) -> Tensor:
        """[n, F]: the gradient of the entropy, -p (log p + H) by the score of each outcome."""
        by_score = -self.log_probs.exp() * (self.log_probs + self.entropy().unsqueeze(-1))
        return torch.where(self.scores == -torch.inf, 0.0, by_score) @ self.listed.counts

    def find(self, paths: Tensor, sizes: Sizes) -> Tensor:
        """[..., n]: which outcomes paths [..., n, T] are, -1 if none."""
        keys = keys_of(paths, sizes)
        at = torch.searchsorted(self.listed.keys, keys).clamp(max=len(self.listed.keys) - 1)
        return torch.where(self.listed.keys[at] == keys, self.listed.order[at], -1)


class Exact:
    """The answers about a batch of N chains.

    `parts` [N, F] are the scores of their parts and `errors` [N, F] how far the library may be off
    with each because it adds up scores in their own dtype. Padding may hold anything.
    """

    def __init__(self, sizes: Sizes, parts: Tensor, errors: Tensor, lengths: Tensor) -> None:
        self.sizes, self.num_chains = sizes, len(lengths)
        self.groups = [self._group(parts, errors, lengths, n) for n in lengths.unique().tolist()]

    def _group(self, parts: Tensor, errors: Tensor, lengths: Tensor, length: int) -> Group:
        rows, listed = (lengths == length).nonzero().flatten(), listing(self.sizes, length)
        terms = parts[rows][:, listed.parts]  # [n, P, M]
        scores = terms.sum(-1)
        spread = torch.where(terms.isinf(), 0.0, terms.abs()).sum(-1)
        beside = terms.clamp(min=0).sum(-1).amax(-1, keepdim=True)  # see the head of the file
        slack = 4 * EPSILON * (terms.shape[-1] + 4) * (spread + beside)
        slack = slack + errors[rows][:, listed.parts].sum(-1)
        forbidden = scores == -torch.inf
        return Group(rows, listed, scores, torch.where(forbidden, 0.0, slack))

    def gather(self, answers: list[Tensor]) -> Tensor:
        """[N, ...] from one answer [n, ...] of each group."""
        whole = answers[0].new_zeros(self.num_chains, *answers[0].shape[1:])
        for group, answer in zip(self.groups, answers, strict=True):
            whole[group.rows] = answer
        return whole

    def intervals(self, found: list[Interval]) -> Interval:
        return Interval(*(self.gather(list(side)) for side in zip(*found, strict=True)))

    @property
    def impossible(self) -> Tensor:
        """[N] bool: which chains have no allowed outcome."""
        return self.gather([(g.scores == -torch.inf).all(-1) for g in self.groups])

    @property
    def log_num_outcomes(self) -> Tensor:
        """[N]: of those that are allowed."""
        counts = self.gather([(g.scores > -torch.inf).sum(-1) for g in self.groups])
        return counts.double().log()

    def log_partition(self) -> Interval:
        return self.intervals([group.bounds() for group in self.groups])

    def part_marginals(self) -> Interval:
        return self.intervals([group.part_bounds() for group in self.groups])

    def doubt(self) -> Tensor:
        return self.gather([group.doubt() for group in self.groups])

    def entropy(self) -> Tensor:
        return self.gather([group.entropy() for group in self.groups])

    def entropy_by_parts(self) -> Tensor:
        return self.gather([group.entropy_by_parts() for group in self.groups])

    def renyi_entropy(self, order: float) -> Tensor:
        """[N]: of an order above 1."""
        if math.isinf(order):
            return self.gather([-group.log_probs.max(-1).values for group in self.groups])
        return self.gather([(order * g.log_probs).logsumexp(-1) / (1 - order) for g in self.groups])

    def expectation(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """[N] of values of parts [N, F], and the largest size that an outcome's value has."""
        sums = [values[g.rows][:, g.listed.parts].sum(-1) for g in self.groups]
        means = [g.mean_of(x) for g, x in zip(self.groups, sums, strict=True)]
        return self.gather(means), self.gather([x.abs().amax(-1) for x in sums])

    def some_paths(self, count: int, generator: torch.Generator) -> Tensor:
        """[S, N, T]: outcomes picked at random, forbidden ones among them."""
        picked = []
        for group in self.groups:
            shape = (len(group.rows), count)
            which = torch.randint(len(group.listed.paths), shape, generator=generator)
            picked.append(group.listed.paths[which])
        return self.gather(picked).transpose(0, 1)

    def log_probs_of(self, paths: Tensor) -> tuple[Tensor, Tensor]:
        """[S, N] each: of paths [S, N, T], -inf for what is none or forbidden; and their slack."""
        found = [self._log_probs_of(group, paths[:, group.rows]) for group in self.groups]
        log_probs, slack = zip(*found, strict=True)
        return self.gather(list(log_probs)).T, self.gather(list(slack)).T

    def _log_probs_of(self, group: Group, paths: Tensor) -> tuple[Tensor, Tensor]:
        which = group.find(paths, self.sizes).T  # [n, S]
        log_probs = group.log_probs.gather(1, which.clamp(min=0)).where(which >= 0, -torch.inf)
        return log_probs, group.slack.gather(1, which.clamp(min=0))

    def parts_on(self, paths: Tensor) -> Tensor:
        """[N, F]: 1 for the parts that paths [N, T] have."""
        found = [group.find(paths[group.rows], self.sizes) for group in self.groups]
        pairs = zip(self.groups, found, strict=True)
        return self.gather([group.listed.counts[which] for group, which in pairs])

    def rivals(self, k: int) -> Tensor:
        """[k, N]: log probabilities that the k best have at least; -inf where there are fewer."""
        found = []
        for group in self.groups:
            surely = group.log_probs - group.slack
            best = surely.topk(min(k, surely.shape[1])).values
            found.append(torch.nn.functional.pad(best, (0, k - best.shape[1]), value=-torch.inf))
        return self.gather(found).T
