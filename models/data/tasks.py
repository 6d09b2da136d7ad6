"""What is learnt from a corpus: sentences alone, or sentences from their sources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.data.batches import EncodedPair, encode
from models.data.corpus import Corpus, Example, grouped
from models.data.sources import Item, SourceVocabulary, Task, bag_items, table_items
from models.errors import SettingError


class Pair(NamedTuple):
    """A sentence to write, and its source."""

    target: Example
    items: list[Item]


def encode_task(
    task: Task, examples: Sequence[Example], vocabulary: SourceVocabulary
) -> Sequence[list[int]] | Sequence[EncodedPair]:
    """The sentences as numbers, with sources if the task has any."""
    if task == "text":
        return encode([example.words for example in examples], vocabulary.words)
    return [encode_pair(pair, vocabulary) for pair in pairs(task, examples, vocabulary)]


def encode_pair(pair: Pair, vocabulary: SourceVocabulary) -> EncodedPair:
    words = pair.target.words
    source = vocabulary.encode(pair.items)
    copied = [vocabulary.number(word, source.new_words) for word in words]
    numbers = vocabulary.words.encode(words)
    return EncodedPair(numbers, source, [*copied, numbers[-1]])


def pairs(task: Task, examples: Sequence[Example], vocabulary: SourceVocabulary) -> list[Pair]:
    """Sentences with their sources; an example whose source says nothing is passed over."""
    if task == "data2text":
        found = [Pair(e, table_items(e.table, vocabulary.words)) for e in examples]
    elif task == "paraphrase-unpaired":  # each sentence from its own words
        found = [Pair(example, bag_items(example.words)) for example in examples]
    else:
        found = [Pair(target, bag_items(source.words)) for source, target in paraphrases(examples)]
    found = [pair for pair in found if pair.items]
    if not found:
        lacking = "tables" if task == "data2text" else "several sentences about one thing"
        raise SettingError(f"{task} learns from {lacking}, and the corpus has none")
    return found


def paraphrases(examples: Sequence[Example]) -> list[tuple[Example, Example]]:
    """Each sentence with the one after it in its group, the last one with the first."""
    return [
        (source, target)
        for name, group in grouped(examples).items()
        if name and len(group) > 1
        for source, target in zip(group, [*group[1:], group[0]], strict=True)
    ]


def corpus_vocabulary(corpus: Corpus) -> SourceVocabulary:
    return SourceVocabulary(corpus.vocabulary, corpus.keys)
