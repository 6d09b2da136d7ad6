"""Sentences with named entities, out of files with a token and a BIO tag on each line."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from structdist.tagging import OUTSIDE, Span, spans_from_tags

FOLDER = "wnut17"  # in the folder of all data
SPLITS = ("train", "dev", "test")


class CorpusError(ValueError):
    """Files that are not there, or not what they should be."""


@dataclass(frozen=True)
class Sentence:
    words: tuple[str, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True)
class Corpus:
    train: list[Sentence]
    dev: list[Sentence]
    test: list[Sentence]

    @property
    def labels(self) -> list[str]:
        """`O` and the labels of the spans of the training sentences, in order."""
        return [OUTSIDE, *sorted({span.label for s in self.train for span in s.spans})]

    @property
    def longest(self) -> int:
        """The number of tokens of the longest span of the training sentences."""
        return max((span.end - span.start for s in self.train for span in s.spans), default=1)


def read_corpus(data: Path) -> Corpus:
    """The three splits of WNUT-17 in a folder, or in its own folder within that."""
    folder = data / FOLDER if (data / FOLDER).is_dir() else data
    return Corpus(**{split: read_file(_find(folder, split)) for split in SPLITS})


def _find(folder: Path, split: str) -> Path:
    names = f"{split}.conll", f"{split}.conll.gz"
    for name in names:
        if (folder / name).is_file():
            return folder / name
    raise CorpusError(f"{folder} holds neither {names[0]} nor {names[1]}")


def read_file(path: Path) -> list[Sentence]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8") as lines:
        try:
            return read_sentences(lines)
        except ValueError as error:
            raise CorpusError(f"{path}: {error}") from None


def read_sentences(lines: Iterable[str]) -> list[Sentence]:
    """Sentences from lines `token<tab>tag`, with blank ones (or mere white space) in between."""
    words, tags = [], []
    for sentence in _blocks(lines):
        words.append(tuple(word for word, _ in sentence))
        tags.append([tag for _, tag in sentence])
    spans = spans_from_tags(tags, "BIO")
    return [Sentence(w, tuple(s)) for w, s in zip(words, spans, strict=True)]


def _blocks(lines: Iterable[str]) -> Iterator[list[tuple[str, str]]]:
    block: list[tuple[str, str]] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            fields = line.rstrip("\n").split("\t")
            if len(fields) != 2:
                raise ValueError(f"line {number} is not a token, a tab and a tag: {line!r}")
            block.append((fields[0], fields[1].strip()))
        elif block:
            yield block
            block = []
    if block:
        yield block
