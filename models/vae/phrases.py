"""Templates of phrases, as the decoder reads and predicts them.

It reads the state of each word, one-hot, and a bit that is 1 where a phrase begins: K + 1 numbers a
word. It predicts one of K + 1 classes: class k begins a phrase of state k, and the last class goes
on with the phrase, and with its state. So log p(z) has one term a word and is normalised.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn.functional import pad


def word_states(segments: Tensor) -> Tensor:
    """The state of each word [..., T, K], from segments [..., T, L, K] by first word and length.

    Linear in the segments: of relaxed ones, the weight of those that cover the word.
    """
    num_words, longest = segments.shape[-3:-1]
    reaching = segments.flip(-2).cumsum(-2).flip(-2)  # of those longer than l words
    covering = reaching[..., 0, :]
    for after in range(1, min(longest, num_words)):
        covering = covering + pad(reaching[..., :-after, after, :], (0, 0, after, 0))
    return covering


def read_phrases(segments: Tensor) -> Tensor:
    """What the decoder is told [..., T, K + 1]: the state of each word, and if a phrase begins."""
    begins = segments.sum((-1, -2)).unsqueeze(-1)
    return torch.cat([word_states(segments), begins], -1)


def classes_of(phrases: Tensor, active: Tensor) -> Tensor:
    """What the decoder predicts [..., T, K + 1]; zero where there is no word, bool [..., T]."""
    states, begins = phrases[..., :-1], phrases[..., -1:]
    return torch.cat([states * begins, (1 - begins) * active.unsqueeze(-1)], -1)


def must_begin(phrases: Tensor, longest: int) -> Tensor:
    """Where no phrase can go on, bool [..., T]: at first, and after one of `longest` words."""
    begins = phrases[..., -1].detach() > 0.5
    steps = torch.arange(begins.shape[-1], device=begins.device)
    last = torch.where(begins, steps, 0).cummax(-1).values  # the first word of each word's phrase
    return (steps == 0) | (steps - pad(last[..., :-1], (1, 0)) >= longest)


def scores_of_ends(first: Tensor, last: Tensor, longest: int) -> Tensor:
    """Scores of segments [..., T, L, K], from those of their first and last words [..., T, K].

    Segments that reach beyond the last word have its score; they are never in a chain.
    """
    steps, sizes = (torch.arange(n, device=last.device) for n in (last.shape[-2], longest))
    ends = (steps.unsqueeze(-1) + sizes).clamp(max=len(steps) - 1)  # [T, L]
    return first.unsqueeze(-2) + last[..., ends, :]
