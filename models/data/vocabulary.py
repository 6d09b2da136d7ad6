"""Words and their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

PAD, START, END, UNKNOWN = range(4)  # the first words of every vocabulary
MARKS = ("<pad>", "<s>", "</s>", "<unk>")  # how they are written


class Vocabulary:
    """The marks first, then words, most frequent first."""

    def __init__(self, words: Sequence[str]) -> None:
        """`words` without the marks."""
        self.words = (*MARKS, *words)
        self._numbers = {word: number for number, word in enumerate(self.words)}
        if len(self._numbers) != len(self.words):
            raise ValueError("a vocabulary names each word once")

    @classmethod
    def of(cls, sentences: Iterable[Sequence[str]], min_count: int = 1) -> Vocabulary:
        """All words seen `min_count` times or more."""
        counts = Counter(word for sentence in sentences for word in sentence)
        kept = [word for word, count in counts.items() if count >= min_count]
        return cls(sorted(kept, key=lambda word: (-counts[word], word)))

    @property
    def real_words(self) -> list[str]:
        """All words but the marks."""
        return list(self.words[len(MARKS) :])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.words == other.words

    def __hash__(self) -> int:
        return hash(self.words)

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: str) -> bool:
        return word in self._numbers

    def number(self, word: str) -> int:
        return self._numbers.get(word, UNKNOWN)

    def encode(self, words: Sequence[str]) -> list[int]:
        """Numbers of the words and of the end mark."""
        return [*map(self.number, words), END]
