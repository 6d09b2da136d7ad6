"""Templates of phrases, as the decoder reads and predicts them."""

from __future__ import annotations

import torch
from torch.nn.functional import one_hot
from torch.testing import assert_close

from models.vae.phrases import classes_of, must_begin, read_phrases, scores_of_ends, word_states
from structdist import SemiMarkovCRF

K, L, T = 2, 3, 5


def chain(num_words=T) -> SemiMarkovCRF:
    """Of sentences of 5, 3, 1 and no words."""
    torch.manual_seed(0)
    lengths = torch.tensor([num_words, 3, 1, 0]).clamp(max=num_words)
    scores = torch.randn(4, num_words, K, dtype=torch.double, requires_grad=True)
    durations = torch.zeros(L, K, dtype=torch.double)
    return SemiMarkovCRF(scores, torch.zeros(K, K).double(), durations, lengths)


def test_the_states_of_words_are_those_of_their_segments():
    dist = chain()
    events = dist.sample((200,))
    labels, starts = dist.labels_of(events)
    active = torch.arange(T) < dist.lengths.unsqueeze(-1)
    expected = one_hot(labels, K).double() * active.unsqueeze(-1)
    assert torch.equal(word_states(events), expected)
    assert torch.equal(read_phrases(events), torch.cat([expected, starts.unsqueeze(-1)], -1))


def test_segments_may_be_longer_than_the_sentence():
    dist = chain(num_words=2)
    assert_close(word_states(dist.marginals), dist.token_marginals)


def test_relaxed_states_are_the_mean_of_hard_ones():
    """The states of words are linear in the events: those of marginals are the marginals."""
    dist = chain()
    assert_close(word_states(dist.marginals), dist.token_marginals)
    assert_close(read_phrases(dist.marginals)[..., -1], dist.boundary_marginals)


def test_classes_begin_a_state_or_go_on():
    phrases = torch.tensor([[0.0, 1, 1], [0, 1, 0], [1, 0, 1], [1, 0, 1], [0, 0, 0]])
    active = torch.tensor([True, True, True, True, False])
    expected = [[0, 1, 0], [0, 0, 1], [1, 0, 0], [1, 0, 0], [0, 0, 0]]
    assert classes_of(phrases, active).tolist() == expected


def test_a_phrase_begins_at_first_and_after_a_longest_one():
    begins = torch.tensor([[1.0, 0, 0, 1, 1, 0], [1, 1, 0, 1, 0, 0]])
    found = must_begin(begins.unsqueeze(-1), longest=3)
    assert found.tolist() == [
        [True, False, False, True, False, False],
        [True, False, False, False, False, False],
    ]
    assert must_begin(begins.unsqueeze(-1), longest=1).all()


def test_scores_of_segments_are_those_of_their_ends():
    first, last = torch.randn(2, T, K), torch.randn(2, T, K)
    found = scores_of_ends(first, last, L)
    assert found.shape == (2, T, L, K)
    for start in range(T):
        for size in range(1, min(L, T - start) + 1):
            expected = first[:, start] + last[:, start + size - 1]
            assert_close(found[:, start, size - 1], expected)
