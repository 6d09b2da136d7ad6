"""What states and their n-grams stand for (Fu et al. 2020, Figure 5)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any, TypeVar

from models.errors import SettingError
from models.templates.segments import Segment, segments

States = tuple[int, ...]
Counted = TypeVar("Counted", str, States)


@dataclass(frozen=True)
class StateNGram:
    states: States  # of segments in a row
    count: int
    segments: tuple[tuple[str, int], ...]  # the words under it and how often, most frequent first


@dataclass(frozen=True)
class WordShare:
    word: str
    share: float  # p(word | state)
    pmi: float  # log p(word | state) / p(word), in nats


@dataclass(frozen=True)
class StateWords:
    state: int
    share: float  # of all words
    words: tuple[WordShare, ...]  # those that tell most about the state


@dataclass(frozen=True)
class TemplateAnalysis:
    num_sentences: int
    num_templates: int  # different ones, with a state for each word
    ngrams: tuple[StateNGram, ...]  # by size, then the most frequent first
    states: tuple[StateWords, ...]  # all that some word has, by number

    def as_json(self) -> dict[str, Any]:
        """The analysis in plain types."""
        plain = asdict(self)
        for ngram in plain["ngrams"]:
            segments = ngram["segments"]
            ngram["segments"] = [{"text": text, "count": count} for text, count in segments]
        return plain


def analyse(
    templates: Sequence[Sequence[int]],
    sentences: Sequence[Sequence[str]],
    sizes: tuple[int, int] = (1, 4),
    top_ngrams: int = 100,
    top_segments: int = 5,
    top_words: int = 10,
) -> TemplateAnalysis:
    """Counts n-grams of states with the words under them, and words with their states.

    Args:
        templates: One state for each word.
        sentences: Their words.
        sizes: The smallest and the largest n of the n-grams.
        top_ngrams: How many of each size, so that short ones do not push out the long.
        top_segments: How many texts of each n-gram.
        top_words: How many words of each state.
    """
    if not 1 <= sizes[0] <= sizes[1]:
        raise SettingError(f"sizes of n-grams go from 1 or more to as many or more, not {sizes}")
    for index, (states, words) in enumerate(zip(templates, sentences, strict=True)):
        if len(states) != len(words):
            raise ValueError(f"sentence {index} has {len(states)} states but {len(words)} words")
    parts = [segments(states) for states in templates]
    ngrams = [
        ngram
        for size in range(sizes[0], sizes[1] + 1)
        for ngram in _top_ngrams(parts, sentences, size, top_ngrams, top_segments)
    ]
    return TemplateAnalysis(
        num_sentences=len(sentences),
        num_templates=len({own if isinstance(own, tuple) else tuple(own) for own in templates}),
        ngrams=tuple(ngrams),
        states=_state_words(templates, sentences, top_words),
    )


def _top_ngrams(
    parts: Sequence[Sequence[Segment]],
    sentences: Sequence[Sequence[str]],
    size: int,
    top_ngrams: int,
    top_segments: int,
) -> list[StateNGram]:
    counts = Counter(states for each in parts for states, _, _ in _ngrams(each, size))
    top = _most_frequent(counts, top_ngrams)
    texts: dict[States, Counter[str]] = {states: Counter() for states, _ in top}
    for each, words in zip(parts, sentences, strict=True):
        for states, start, end in _ngrams(each, size):
            if states in texts:
                texts[states][" ".join(words[start:end])] += 1
    return [
        StateNGram(states, count, tuple(_most_frequent(texts[states], top_segments)))
        for states, count in top
    ]


def _ngrams(parts: Sequence[Segment], size: int) -> Iterator[tuple[States, int, int]]:
    """The states of so many segments in a row, and where their words start and end."""
    for ngram in zip(*(parts[i:] for i in range(size)), strict=False):
        yield tuple([segment.state for segment in ngram]), ngram[0].start, ngram[-1].end


def _most_frequent(counts: Mapping[Counted, int], number: int) -> list[tuple[Counted, int]]:
    """The most frequent first; of equals, the smaller."""
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:number]


def _state_words(
    templates: Sequence[Sequence[int]], sentences: Sequence[Sequence[str]], number: int
) -> tuple[StateWords, ...]:
    words = Counter(chain.from_iterable(sentences))
    of_state: dict[int, Counter[str]] = defaultdict(Counter)
    for states, own in zip(templates, sentences, strict=True):
        for state, word in zip(states, own, strict=True):
            of_state[state][word] += 1
    return tuple(
        StateWords(state, counts.total() / words.total(), _telling(counts, words)[:number])
        for state, counts in sorted(of_state.items())
    )


def _telling(counts: Counter[str], overall: Counter[str]) -> tuple[WordShare, ...]:
    """Words of a state by share times PMI: their parts in KL(p(word | state) || p(word)).

    PMI alone would put words first that are seen once, the share alone those that are frequent
    everywhere. Of equals, the alphabet decides.
    """
    total, everything = counts.total(), overall.total()
    words = [
        WordShare(word, count / total, math.log(count * everything / (total * overall[word])))
        for word, count in counts.items()
    ]
    return tuple(sorted(words, key=lambda entry: (-entry.share * entry.pmi, entry.word)))
