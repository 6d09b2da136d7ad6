"""What is learnt from a corpus: sentences alone, or sentences from their sources."""

from __future__ import annotations

from collections.abc import Sequence

from models.data.batches import EncodedPair, encode
from models.data.corpus import Corpus, Example, grouped
from models.data.sources import Item, SourceVocabulary, Task, bag_items, table_items
from models.errors import SettingError


def encode_task(
    task: Task, examples: Sequence[Example], vocabulary: SourceVocabulary
) -> Sequence[list[int]] | Sequence[EncodedPair]:
    """The sentences as numbers, with sources if the task has any."""
    if task == "text":
        return encode([example.words for example in examples], vocabulary.words)
    found = pairs(task, examples, vocabulary)
    return [encode_pair(target, items, vocabulary) for target, items in found]


def encode_pair(
    target: Example, items: Sequence[Item], vocabulary: SourceVocabulary
) -> EncodedPair:
    """A sentence to write, and its source."""
    source, words = vocabulary.encode(items), vocabulary.words.encode(target.words)
    copied = [vocabulary.number(word, source.new_words) for word in target.words]
    return EncodedPair(words, source, [*copied, words[-1]])


def pairs(
    task: Task, examples: Sequence[Example], vocabulary: SourceVocabulary
) -> list[tuple[Example, list[Item]]]:
    """Sentences to write with their sources; one whose source says nothing is passed over."""
    if task == "data2text":
        found = [(e, table_items(e.table, vocabulary.words)) for e in examples]
    elif task == "paraphrase-unpaired":  # each sentence from its own words
        found = [(example, bag_items(example.words)) for example in examples]
    else:
        found = [(target, bag_items(source.words)) for source, target in paraphrases(examples)]
    found = [(target, items) for target, items in found if items]
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
