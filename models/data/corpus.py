"""What every reader produces and every model reads, and the file it is kept in once prepared."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

from models.data.vocabulary import Vocabulary
from models.errors import DataError
from models.files import read_json, write_json

SPLITS = ("train", "dev", "test")
MOST_WORDS = 8000  # of the vocabulary of open-ended text, as in the paper
FILE = "corpus.json.gz"
FORMAT = 2  # of the file; a corpus in another format is prepared again, not converted
ADVICE = "run `python -m models data NAME ...` again"

Value = TypeVar("Value")


@dataclass(frozen=True)
class Example:
    """A sentence, and what is known about it."""

    words: tuple[str, ...]  # lower-cased, delexicalised where there is a table
    text: str = ""  # as it was written
    table: tuple[tuple[str, str], ...] = ()  # key and value, for data-to-text
    group: str = ""  # references of one instance share it: an image, a table
    slots: tuple[str, ...] | None = None  # the true slot of each word, where the corpus knows it


@dataclass(frozen=True)
class Corpus:
    name: str
    splits: Mapping[str, Sequence[Example]]  # by the names in SPLITS
    min_count: int = 1  # rarer words of the training split are unknown

    @cached_property
    def vocabulary(self) -> Vocabulary:
        return Vocabulary.of((e.words for e in self.splits["train"]), self.min_count)

    @cached_property
    def keys(self) -> Vocabulary:
        """The keys of the tables of the training split."""
        return Vocabulary.of([key for key, _ in e.table] for e in self.splits["train"])


def save_corpus(corpus: Corpus, directory: Path) -> None:
    defaults = vars(Example(()))  # which are not written
    splits = {
        split: [{k: v for k, v in vars(e).items() if v != defaults[k]} for e in examples]
        for split, examples in corpus.splits.items()
    }
    about = {"format": FORMAT, "name": corpus.name, "min_count": corpus.min_count}
    write_json(directory / FILE, about | {"splits": splits}, indent=None)


def load_corpus(directory: Path) -> Corpus:
    """What `save_corpus` wrote; a `DataError` for anything else."""
    path = directory / FILE
    if not path.is_file():
        raise DataError(directory, f"no prepared corpus here, {FILE} is missing; {ADVICE}")
    try:
        content = read_json(path)
        if content["format"] != FORMAT:
            raise ValueError(f"of format {content['format']}, not {FORMAT}")
        splits = {name: [_example(r) for r in split] for name, split in content["splits"].items()}
        return Corpus(str(content["name"]), splits, int(content["min_count"]))
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = "damaged" if isinstance(error, DataError) else f"no prepared corpus: {error}"
        raise DataError(path, f"{problem}; {ADVICE}") from error


def _example(record: dict[str, Any]) -> Example:
    listed = {key: tuple(record[key]) for key in ("words", "slots") if key in record}
    table = tuple((key, value) for key, value in record.get("table", ()))
    return Example(**({"words": ()} | record | listed | {"table": table}))


def grouped(examples: Sequence[Example]) -> dict[str, list[Example]]:
    """Examples by their groups, in the order in which those come."""
    groups: dict[str, list[Example]] = defaultdict(list)
    for example in examples:
        groups[example.group].append(example)
    return dict(groups)


def spread(values: Sequence[Value], number: int) -> list[Value]:
    """So many of the values, or all, evenly spread."""
    number = min(number, len(values))
    return [values[place * len(values) // number] for place in range(number)]


def smallest_min_count(examples: Sequence[Example]) -> int:
    """The lowest `min_count` that leaves the vocabulary `MOST_WORDS` or fewer."""
    counts = Counter(word for example in examples for word in example.words)
    first_left_out = sorted(counts.values(), reverse=True)[MOST_WORDS:][:1]
    return first_left_out[0] + 1 if first_left_out else 1
