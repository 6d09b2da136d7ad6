"""What states and their n-grams stand for (Fu et al. 2020, Figure 5)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple, TypeVar

from models.errors import SettingError

States = tuple[int, ...]
Counted = TypeVar("Counted", str, States)


@dataclass(frozen=True)
class StateNGram:
    states: States  # neighbours differ: runs of equal states are one
    count: int
    segments: tuple[tuple[str, int], ...]  # the words under it and how often, most frequent first


class WordShare(NamedTuple):
    word: str
    share: float  # p(word | state)
    pmi: float  # log p(word | state) / p(word), in nats


class StateWords(NamedTuple):
    state: int
    share: float  # of all words
    words: tuple[WordShare, ...]  # those that tell most about the state


class Runs(NamedTuple):
    """A template, each run of equal states as one state."""

    states: States
    bounds: Sequence[int]  # run i has the words from bounds[i] on, up to bounds[i + 1]

    def ngrams(self, size: int) -> Iterator[States]:
        """The one of number i begins with run i."""
        return zip(*(self.states[i:] for i in range(size)), strict=False)


@dataclass(frozen=True)
class TemplateAnalysis:
    num_sentences: int
    num_templates: int  # different ones, with a state for each word
    ngrams: tuple[StateNGram, ...]  # by size, then the most frequent first
    states: tuple[StateWords, ...]  # all that some word has, by number

    def as_json(self) -> dict[str, Any]:
        """Of plain types."""
        states = [
            entry._asdict() | {"words": [word._asdict() for word in entry.words]}
            for entry in self.states
        ]
        return {
            "num_sentences": self.num_sentences,
            "num_templates": self.num_templates,
            "ngrams": [_ngram_as_json(ngram) for ngram in self.ngrams],
            "states": states,
        }


def _ngram_as_json(ngram: StateNGram) -> dict[str, Any]:
    segments = [{"text": text, "count": count} for text, count in ngram.segments]
    return {"states": list(ngram.states), "count": ngram.count, "segments": segments}


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
    _check(templates, sentences, sizes)
    runs = [_runs(states) for states in templates]
    ngrams = [
        ngram
        for size in range(sizes[0], sizes[1] + 1)
        for ngram in _top_ngrams(runs, sentences, size, top_ngrams, top_segments)
    ]
    return TemplateAnalysis(
        num_sentences=len(sentences),
        num_templates=len(set(map(tuple, templates))),
        ngrams=tuple(ngrams),
        states=_state_words(templates, sentences, top_words),
    )


def _check(
    templates: Sequence[Sequence[int]], sentences: Sequence[Sequence[str]], sizes: tuple[int, int]
) -> None:
    if not 1 <= sizes[0] <= sizes[1]:
        raise SettingError(f"sizes of n-grams go from 1 or more to as many or more, not {sizes}")
    for index, (states, words) in enumerate(zip(templates, sentences, strict=True)):
        if len(states) != len(words):
            raise ValueError(f"sentence {index} has {len(states)} states but {len(words)} words")


def _runs(states: Sequence[int]) -> Runs:
    starts = [i for i, state in enumerate(states) if i == 0 or state != states[i - 1]]
    return Runs(tuple([states[i] for i in starts]), [*starts, len(states)])


def _top_ngrams(
    runs: Sequence[Runs],
    sentences: Sequence[Sequence[str]],
    size: int,
    top_ngrams: int,
    top_segments: int,
) -> list[StateNGram]:
    counts = Counter(chain.from_iterable(each.ngrams(size) for each in runs))
    top = _most_frequent(counts, top_ngrams)
    segments = _segments(runs, sentences, size, {states: Counter() for states, _ in top})
    return [
        StateNGram(states, count, tuple(_most_frequent(segments[states], top_segments)))
        for states, count in top
    ]


def _most_frequent(counts: Mapping[Counted, int], number: int) -> list[tuple[Counted, int]]:
    """Of equals, the smaller first."""
    return sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))[:number]


def _segments(
    runs: Sequence[Runs],
    sentences: Sequence[Sequence[str]],
    size: int,
    counts: dict[States, Counter[str]],
) -> dict[States, Counter[str]]:
    """Adds the texts under the n-grams that are in `counts`."""
    for each, words in zip(runs, sentences, strict=True):
        for run, ngram in enumerate(each.ngrams(size)):
            if ngram in counts:
                segment = words[each.bounds[run] : each.bounds[run + size]]
                counts[ngram][" ".join(segment)] += 1
    return counts


def _state_words(
    templates: Sequence[Sequence[int]], sentences: Sequence[Sequence[str]], number: int
) -> tuple[StateWords, ...]:
    pairs = Counter(
        zip(chain.from_iterable(templates), chain.from_iterable(sentences), strict=True)
    )
    words = Counter(chain.from_iterable(sentences))
    of_state: dict[int, Counter[str]] = {}
    for (state, word), count in pairs.items():
        of_state.setdefault(state, Counter())[word] = count
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
