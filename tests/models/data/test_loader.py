"""Every sentence once per epoch, in an order that the seed and the step decide alone."""

from __future__ import annotations

import random
from itertools import chain, pairwise

import pytest
import torch

from models.data.batches import (
    BATCHES_IN_A_POOL,
    Batch,
    BucketedLoader,
    EncodedPair,
    collate,
    encode,
    in_order,
    padded,
)
from models.data.sources import EncodedSource
from models.data.vocabulary import END, PAD, UNKNOWN, Vocabulary

RNG = random.Random(0)
SENTENCES = [[10 + n] * RNG.randint(1, 9) + [END] for n in range(53)]  # told apart by a word


def numbers(batches: list[Batch]) -> list[int]:
    """Of the sentences in the batches."""
    return list(chain.from_iterable((batch.words[:, 0] - 10).tolist() for batch in batches))


def loader(batch_size: int = 8, steps_done: int = 0, rank: int = 0, **options) -> BucketedLoader:
    made = BucketedLoader(SENTENCES, batch_size, **options)
    made.follow(lambda: steps_done, rank)
    return made


def test_padding():
    batch = collate([[4, 5, END], [END]])
    assert batch.words.tolist() == [[4, 5, END], [END, PAD, PAD]]
    assert batch.lengths.tolist() == [3, 1]
    assert batch.source is batch.goals is None
    assert batch.target is batch.words


def pair(number: int) -> EncodedPair:
    """A sentence of as many words, told apart by its source."""
    source = EncodedSource([4], [1], [UNKNOWN], [10 + number], [1], ["new"])
    return EncodedPair([UNKNOWN] * number + [END], source, [10 + number] * number + [END])


def test_padding_of_pairs():
    """Sentences, goals and sources are each as wide as their longest."""
    table = EncodedSource([4, 4, 5], [1, 2, 1], [6, 7, UNKNOWN], [6, 7, 9], [0, 0, 1], ["new"])
    batch = collate([pair(1), EncodedPair([END], table, [END])])
    assert batch.words.tolist() == [[UNKNOWN, END], [END, PAD]]
    assert batch.goals.tolist() == [[11, END], [END, PAD]]
    assert batch.lengths.tolist() == [2, 1]
    assert batch.source.keys.tolist() == [[4, PAD, PAD], [4, 4, 5]]
    assert batch.source.places.tolist() == [[1, PAD, PAD], [1, 2, 1]]
    assert batch.source.words.tolist() == [[UNKNOWN, PAD, PAD], [6, 7, UNKNOWN]]
    assert batch.source.says.tolist() == [[11, PAD, PAD], [6, 7, 9]]
    assert batch.source.needed.tolist() == [[1, 0, 0], [0, 0, 1]]


def test_padding_of_nothing():
    assert padded([[], [4]]).tolist() == [[PAD], [4]]
    assert padded([[], []]).shape == (2, 0)


def test_pairs_stay_together():
    """Sorted by length, shuffled and shared, each sentence keeps its source."""
    made = BucketedLoader([pair(number) for number in range(20)], 4, world_size=2)
    made.follow(lambda: 0, rank=1)
    batches = list(made)
    assert sum(len(batch.lengths) for batch in batches) == 10
    for batch in batches:
        assert (batch.source.says[:, 0] - 10).tolist() == (batch.lengths - 1).tolist()
        assert (batch.goals[:, 0] != UNKNOWN).all()


def test_batches_for_evaluation_come_in_order():
    batches = in_order(SENTENCES, 10)
    assert numbers(batches) == list(range(53))
    assert [len(batch.lengths) for batch in batches] == [10] * 5 + [3]
    assert in_order([], 10) == []


def test_words_become_numbers():
    assert encode([["pub"], []], Vocabulary(["pub"])) == [[4, END], [END]]


def test_active_words_and_repeats():
    batch = collate([[4, END], [END]])
    assert batch.active.tolist() == [[True, True], [True, False]]
    assert batch.repeat(2).words.tolist() == 2 * batch.words.tolist()
    assert batch.repeat(2).lengths.tolist() == [2, 1, 2, 1]


@pytest.mark.parametrize("batch_size", [1, 8, 53, 100])
@pytest.mark.parametrize("epoch", [0, 3])
def test_every_sentence_once_per_epoch(batch_size, epoch):
    per_epoch = len(loader(batch_size))
    batches = list(loader(batch_size, epoch * per_epoch))
    assert len(batches) == per_epoch
    assert sorted(numbers(batches)) == list(range(53))
    assert all(len(batch.lengths) <= batch_size for batch in batches)


def test_seed_and_epoch_decide():
    first = numbers(list(loader()))
    assert numbers(list(loader())) == first
    assert numbers(list(loader(seed=1))) != first
    assert numbers(list(loader(steps_done=7))) != first


def test_other_random_numbers_play_no_part():
    random.seed(1)
    torch.manual_seed(1)
    first = numbers(list(loader()))
    random.seed(2)
    torch.manual_seed(2)
    assert numbers(list(loader())) == first


@pytest.mark.parametrize("done", range(7))
def test_a_resumed_epoch_goes_on_where_it_was(done):
    whole = [batch.words.tolist() for batch in loader(steps_done=14)]
    rest = [batch.words.tolist() for batch in loader(steps_done=14 + done)]
    assert rest == whole[done:]


def test_the_count_of_steps_is_asked_for_anew_each_time():
    steps = [0]
    made = loader()
    made.follow(lambda: steps[0])
    first = numbers(list(made))
    steps[0] = len(made)
    assert numbers(list(made)) == numbers(list(loader(steps_done=len(made)))) != first


@pytest.mark.parametrize("world_size", [2, 3, 5])
def test_processes_share_every_batch(world_size):
    """Together they have the batches that a process alone would have, the same number each."""
    alone = list(loader(seed=5))
    shares = [list(loader(seed=5, world_size=world_size, rank=r)) for r in range(world_size)]
    assert {len(share) for share in shares} == {len(loader(world_size=world_size))}
    for whole, *parts in zip(alone, *shares, strict=True):
        assert sorted(numbers(parts)) == sorted(numbers([whole]))
        sizes = [len(part.lengths) for part in parts]
        assert max(sizes) - min(sizes) <= 1


def test_a_rest_too_small_to_share_is_left_out():
    """53 sentences in batches of 8 leave 5: enough for 5 processes, not for 6."""
    assert len(loader(world_size=5)) == 7
    assert len(loader(world_size=6)) == 6
    shares = [list(loader(world_size=6, rank=rank)) for rank in range(6)]
    assert len(set(numbers(list(chain(*shares))))) == 48


def test_sentences_of_a_batch_have_similar_lengths():
    """Those of a pool are sorted: its batches overlap in their ends alone."""
    assert len(loader()) < BATCHES_IN_A_POOL
    ranges = sorted((int(b.lengths.min()), int(b.lengths.max())) for b in loader())
    assert all(longest <= shortest for (_, longest), (shortest, _) in pairwise(ranges))


def test_pools_mix_batches_over_the_epochs():
    """Beyond one pool, who is together in a batch is a matter of chance."""
    sentences = [[10 + n, END] for n in range(100)]
    made = BucketedLoader(sentences, 2)
    pairs = [{frozenset(batch) for batch in made.order(epoch)} for epoch in range(2)]
    assert len(pairs[0] & pairs[1]) < 10


@pytest.mark.parametrize(
    ("count", "batch_size", "world_size", "message"),
    [
        (1, 2, 2, "1 sentences are too few for 2 processes"),
        (0, 2, 1, "0 sentences are too few for 1 processes"),
        (9, 1, 2, "a batch of 1 cannot be shared by 2 processes"),
        (9, 0, 1, "a batch of 0 cannot be shared by 1 processes"),
    ],
)
def test_too_little_to_share(count, batch_size, world_size, message):
    with pytest.raises(ValueError, match=message):
        BucketedLoader([[END]] * count, batch_size, world_size=world_size)
