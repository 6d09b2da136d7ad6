"""Labels of tokens by name, to and from integers, and how sure a distribution is of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

import torch
from torch import Tensor

from structdist.base import StructuredDistribution
from structdist.checks import require_integers
from structdist.linear_chain import LinearChainCRF
from structdist.semi_markov import SemiMarkovCRF
from structdist.tagging.schemes import require_names

Tagged = LinearChainCRF | SemiMarkovCRF
UNKNOWN = -100  # what torch's losses ignore


def encode(sentences: Sequence[Sequence[str | None]], names: Sequence[str]) -> Tensor:
    """Integers `[B, T]` of sentences of labels, T being the length of the longest.

    A label is the place of its name among `names`. It is -100 beyond the end of a sentence and
    where it is None, which is unknown: `loss` ignores these with `ignore_index=-100`.

        >>> from structdist import tagging
        >>> tagging.encode([["O", "B-person"], [None]], names=["O", "B-person", "I-person"])
        tensor([[   0,    1],
                [-100, -100]])
    """
    require_names("names", names)
    number_of: dict[str | None, int] = {name: number for number, name in enumerate(names)}
    number_of[None] = UNKNOWN
    numbers = torch.full((len(sentences), max(map(len, sentences), default=0)), UNKNOWN)
    for index, sentence in enumerate(sentences):
        for position, label in enumerate(sentence):
            if label not in number_of:
                where = f"sentence {index}, position {position}"
                raise ValueError(f"sentences: {where}: {label!r} is none of {', '.join(names)}")
            numbers[index, position] = number_of[label]
    return numbers


@overload
def decode(dist: Tagged) -> list[list[int]]: ...


@overload
def decode(dist: Tagged, names: Sequence[str]) -> list[list[str]]: ...


def decode(dist: Tagged, names: Sequence[str] | None = None) -> list[list[int]] | list[list[str]]:
    """The labels of the best path of each chain, in a list as long as the chain.

    They are integers or, with the `names` of all `K` labels, strings. Of a `SemiMarkovCRF` they are
    the labels of tokens. A batch of several dimensions is one list of all its chains, in order.

        >>> import torch
        >>> from structdist import LinearChainCRF, tagging
        >>> emissions = torch.tensor([[[2.0, 0.0], [0.0, 1.0]], [[0.0, 3.0], [0.0, 0.0]]])
        >>> dist = LinearChainCRF(emissions, torch.zeros(2, 2), lengths=torch.tensor([2, 1]))
        >>> tagging.decode(dist)
        [[0, 1], [1]]
        >>> tagging.decode(dist, ["O", "B-person"])
        [['O', 'B-person'], ['B-person']]
    """
    paths = best_labels(dist)
    sizes = dist.lengths.flatten().tolist()
    rows = paths.reshape(len(sizes), -1).tolist()
    decoded = [row[:size] for row, size in zip(rows, sizes, strict=True)]
    if names is None:
        return decoded
    require_names("names", names)
    num_labels = dist.event_shape[-1]
    if len(names) != num_labels:
        raise ValueError(f"names must be those of all {num_labels} labels, got {len(names)}")
    return [[names[label] for label in row] for row in decoded]


def confidence(dist: Tagged, labels: Tensor | None = None) -> Tensor:
    """`[*B, T]`: the probability of the label of each token, given all scores of its chain.

    `labels` are integers `[*B, T]`, those of the best path by default. The probability of a label
    is its marginal, summed over all paths that have it there. Zeros stand beyond the lengths. How
    probable a path is as a whole is `dist.log_prob(path).exp()`.

        >>> import torch
        >>> from structdist import LinearChainCRF, tagging
        >>> dist = LinearChainCRF(torch.tensor([[0.0, 1.0], [0.0, 0.0]]), torch.zeros(2, 2))
        >>> tagging.confidence(dist, torch.tensor([1, 0]))
        tensor([0.7311, 0.5000])
    """
    if labels is None:
        labels = best_labels(dist)
    require_integers("labels", labels)
    marginals = dist.token_marginals if isinstance(dist, SemiMarkovCRF) else dist.marginals
    labels = dist._broadcast("labels", labels, dist.event_shape[:1])
    num_labels = dist.event_shape[-1]
    is_label = (labels >= 0) & (labels < num_labels)
    picked = marginals.expand(*labels.shape, -1).gather(
        -1, labels.clamp(0, num_labels - 1).long().unsqueeze(-1)
    )
    return torch.where(is_label, picked.squeeze(-1), 0.0)


def best_labels(dist: StructuredDistribution) -> Tensor:
    """`[*B, T]`: the label of each token on the best path, zeros beyond the lengths."""
    best = dist.argmax
    return dist.labels_of(best).labels if isinstance(dist, SemiMarkovCRF) else best
