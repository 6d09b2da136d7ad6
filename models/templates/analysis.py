"""What states and their n-grams stand for (Fu et al. 2020, Figure 5)."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain
from typing import Any

from models.templates.segments import segments

States = tuple[int, ...]

SIZES = range(1, 5)  # of n-grams
TOP_NGRAMS = 100  # of each size, so that short ones do not push out the long
TOP_SEGMENTS, TOP_WORDS = 5, 10  # of each n-gram, of each state


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
            ngram["segments"] = [{"text": text, "count": n} for text, n in ngram["segments"]]
        return plain


def analyse(
    templates: Sequence[Sequence[int]], sentences: Sequence[Sequence[str]]
) -> TemplateAnalysis:
    """Counts n-grams of states with the words under them, and words with their states."""
    for index, (states, words) in enumerate(zip(templates, sentences, strict=True)):
        if len(states) != len(words):
            raise ValueError(f"sentence {index} has {len(states)} states but {len(words)} words")
    return TemplateAnalysis(
        num_sentences=len(sentences),
        num_templates=len({own if isinstance(own, tuple) else tuple(own) for own in templates}),
        ngrams=tuple(ngram for n in SIZES for ngram in _top_ngrams(templates, sentences, n)),
        states=tuple(_state_words(templates, sentences)),
    )


def _top_ngrams(
    templates: Sequence[Sequence[int]], sentences: Sequence[Sequence[str]], size: int
) -> Iterator[StateNGram]:
    """The most frequent n-grams of a size with their texts; of equals, the smaller first."""
    found: dict[States, Counter[str]] = defaultdict(Counter)
    for template, words in zip(templates, sentences, strict=True):
        parts = segments(template)
        for ngram in zip(*(parts[i:] for i in range(size)), strict=False):
            text = " ".join(words[ngram[0].start : ngram[-1].end])
            found[tuple([segment.state for segment in ngram])][text] += 1
    ordered = sorted(found.items(), key=lambda entry: (-entry[1].total(), entry[0]))
    for states, counts in ordered[:TOP_NGRAMS]:
        texts = sorted(counts.items(), key=lambda entry: (-entry[1], entry[0]))
        yield StateNGram(states, counts.total(), tuple(texts[:TOP_SEGMENTS]))


def _state_words(
    templates: Sequence[Sequence[int]], sentences: Sequence[Sequence[str]]
) -> Iterator[StateWords]:
    """Words of each state by share times PMI: their parts in KL(p(word | state) || p(word)).

    PMI alone would put words first that are seen once, the share alone those that are frequent
    everywhere. Of equals, the alphabet decides.
    """
    overall = Counter(chain.from_iterable(sentences))
    of_state: dict[int, Counter[str]] = defaultdict(Counter)
    for state, word in zip(chain(*templates), chain(*sentences), strict=True):
        of_state[state][word] += 1
    for state, counts in sorted(of_state.items()):
        total, everything = counts.total(), overall.total()
        words = [
            WordShare(word, count / total, math.log(count * everything / (total * overall[word])))
            for word, count in counts.items()
        ]
        words.sort(key=lambda entry: (-entry.share * entry.pmi, entry.word))
        yield StateWords(state, total / everything, tuple(words[:TOP_WORDS]))
