"""What a sentence is written from: the pairs of a table, or the content words of another sentence.

Either becomes a set of items, one for each word. Copying an item says its word; where the corpus
has a key mark in place of the value, it says the mark.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from models.data.tables import TRUTH_VALUES, Table, key_mark
from models.data.tokens import content_words, tokenise
from models.data.vocabulary import Vocabulary

Task = Literal["text", "data2text", "paraphrase", "paraphrase-unpaired"]

OPEN_KEYS = ("name", "near")  # any value is possible, and none tells more than another
NO_KEY = ""  # what the words of a bag have as their key


class Item(NamedTuple):
    key: str
    place: int  # of the word in its value, from 1
    word: str  # as the encoder sees it
    says: str  # what it is to copy it


def table_items(table: Table, vocabulary: Vocabulary) -> list[Item]:
    """An item for each word of a value."""
    items = []
    for key, value in table:
        mark, value_words = key_mark(key), tokenise(value)
        delexicalised = mark in vocabulary and value_words not in TRUTH_VALUES
        for place, word in enumerate(value_words, 1):
            seen = mark if key in OPEN_KEYS else word
            items.append(Item(key, place, seen, mark if delexicalised else word))
    return items


def bag_items(words: Sequence[str]) -> list[Item]:
    """An item for each content word of a sentence."""
    return [Item(NO_KEY, 1, word, word) for word in content_words(words)]


class EncodedSource(NamedTuple):
    """Numbers of items. What the vocabulary lacks has a number of its own, beyond it."""

    keys: list[int]
    places: list[int]
    words: list[int]
    says: list[int]
    needed: list[int]
    new_words: list[str]  # by their numbers beyond the vocabulary


class SourceVocabulary(NamedTuple):
    """The words of sentences and sources, and the keys of tables."""

    words: Vocabulary
    keys: Vocabulary

    def encode(self, items: Sequence[Item]) -> EncodedSource:
        new = list(dict.fromkeys(item.says for item in items if item.says not in self.words))
        return EncodedSource(
            [self.keys.number(item.key) for item in items],
            [item.place for item in items],
            [self.words.number(item.word) for item in items],
            [self.number(item.says, new) for item in items],
            [int(item.key in OPEN_KEYS or item.says in new) for item in items],
            new,
        )

    def number(self, word: str, new_words: Sequence[str]) -> int:
        """The number of a word in the vocabulary, or beyond it."""
        if word in new_words:
            return len(self.words) + new_words.index(word)
        return self.words.number(word)
