"""The templates of the training sentences, to look up and to generate from.

A template that several sentences about tables with the same keys share is stored once. Templates
are numbered from 0, the most frequent first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from models.errors import RunError, SettingError
from models.state_patterns import FIRST, StatePattern, parse_pattern
from models.training.files import replacing

Integers = NDArray[np.integer]
TemplateOfKeys = tuple[tuple[int, ...], frozenset[str]]


@dataclass(frozen=True)
class StoredTemplate:
    number: int
    states: tuple[int, ...]  # one for each word
    keys: frozenset[str]  # of the tables that the sentences are about
    count: int  # how many training sentences have it
    example: int  # the first of them


@dataclass(frozen=True, eq=False)
class TemplateBank:
    """Made by `build`, kept by `save` and `load`."""

    states: Integers  # of all templates, one after the other
    offsets: Integers  # where each template begins; the last one ends the last template
    tables: Integers  # the row of `key_sets` of each template
    counts: Integers
    examples: Integers
    sentences: Integers  # the template of each training sentence
    key_names: NDArray[np.str_]
    key_sets: NDArray[np.bool_]  # a row for each set of keys, a column for each name
    num_states: int
    fingerprint: str  # of what the templates come from, as the caller gave it

    def __post_init__(self) -> None:
        if not (self._has_fitting_shapes() and self._has_fitting_values()):
            raise ValueError("these arrays do not fit together as a bank of templates")

    @classmethod
    def build(
        cls,
        templates: Iterable[Sequence[int]],
        key_sets: Iterable[Iterable[str]],
        fingerprint: str = "",
        num_states: int | None = None,
    ) -> TemplateBank:
        """Of the templates of all sentences, and of the keys of their tables, in the same order.

        `num_states` are those a pattern may name; without it, up to the largest one there is.
        """
        every = [(tuple(s), frozenset(k)) for s, k in zip(templates, key_sets, strict=True)]
        counts, first = _count(every)
        ordered = [stored for stored, _ in counts.most_common()]  # of equals, the earlier first
        sets = list(dict.fromkeys(keys for _, keys in ordered))
        rows = {keys: row for row, keys in enumerate(sets)}
        numbers = {stored: number for number, stored in enumerate(ordered)}
        names = sorted(frozenset().union(*sets))
        flat = np.array([state for states, _ in ordered for state in states], dtype=np.int64)
        num_states = _number_of_states(flat, num_states)
        return cls(
            states=flat.astype(np.min_scalar_type(max(num_states - 1, 0))),
            offsets=np.cumsum([0, *(len(states) for states, _ in ordered)]),
            tables=np.array([rows[keys] for _, keys in ordered], dtype=np.int32),
            counts=np.array([counts[stored] for stored in ordered], dtype=np.int32),
            examples=np.array([first[stored] for stored in ordered], dtype=np.int32),
            sentences=np.array([numbers[stored] for stored in every], dtype=np.int32),
            key_names=np.array(names, dtype=np.str_),
            key_sets=_membership(sets, names),
            num_states=num_states,
            fingerprint=fingerprint,
        )

    def save(self, path: Path) -> None:
        arrays: dict[str, Any] = {field.name: getattr(self, field.name) for field in fields(self)}
        with replacing(path) as unfinished, unfinished.open("wb") as file:
            np.savez_compressed(file, **arrays)

    @classmethod
    def load(cls, path: Path) -> TemplateBank:
        """Without running any code from the file."""
        make = "run `python -m models templates RUN`"
        if not path.exists():
            raise RunError(f"{path} does not exist; {make}")
        try:
            with np.load(path, allow_pickle=False) as file:
                arrays = {field.name: file[field.name] for field in fields(cls)}
            num_states, fingerprint = int(arrays["num_states"]), str(arrays["fingerprint"])
            return cls(**(arrays | {"num_states": num_states, "fingerprint": fingerprint}))
        except Exception as error:  # damage shows in many ways, all of them the file's fault
            raise RunError(f"{path} is damaged, or no bank of templates; {make} again") from error

    def __len__(self) -> int:
        return len(self.counts)

    def __getitem__(self, number: int) -> StoredTemplate:
        if not 0 <= number < len(self):
            raise IndexError(f"there is no template {number}: there are {len(self)}, from 0 on")
        return self._at([number])[0]

    def __iter__(self) -> Iterator[StoredTemplate]:
        return iter(self._at(range(len(self))))

    def search(
        self,
        keys: Iterable[str] | None = None,
        length: int | tuple[int, int] | None = None,
        pattern: str | None = None,
        limit: int | None = None,
    ) -> list[StoredTemplate]:
        """Templates that are all that is asked, the most frequent first.

        Args:
            keys: Of tables with these keys, no more and no fewer.
            length: In words, or the fewest and the most words.
            pattern: Of their states; `models/state_patterns.py` says how to write it.
            limit: How many at most; without it, all.
        """
        chosen = np.ones(len(self), dtype=bool)
        if keys is not None:
            chosen &= self._with_keys(frozenset(keys))
        if length is not None:
            chosen &= self._with_length(*((length, length) if isinstance(length, int) else length))
        found: Iterable[int] = np.flatnonzero(chosen).tolist()
        if pattern is not None:
            found = self._matching(parse_pattern(pattern, self.num_states), found)
        return self._at(list(islice(found, limit)))

    def key_sets_like(self, keys: Iterable[str]) -> list[frozenset[str]]:
        """Sets of keys that templates have, the most alike first: those that share most of both."""
        wanted = frozenset(keys)
        return sorted(
            self._named_sets,
            key=lambda own: (-len(own & wanted) / max(1, len(own | wanted)), sorted(own)),
        )

    def of_sentences(self) -> list[tuple[int, ...]]:
        """The template of each training sentence."""
        stored = [template.states for template in self]
        return [stored[number] for number in self.sentences.tolist()]

    def _with_keys(self, keys: frozenset[str]) -> NDArray[np.bool_]:
        rows = [row for row, named in enumerate(self._named_sets) if named == keys]
        return np.isin(self.tables, rows)

    def _with_length(self, least: int, most: int) -> NDArray[np.bool_]:
        if least > most:
            raise SettingError(f"no length is at least {least} and at most {most}")
        lengths = np.diff(self.offsets)
        return (least <= lengths) & (lengths <= most)

    def _matching(self, pattern: StatePattern, numbers: Iterable[int]) -> Iterator[int]:
        characters, bounds = self._collapsed
        match = pattern.regex.fullmatch
        return (n for n in numbers if match(characters, bounds[n], bounds[n + 1]))

    @cached_property
    def _collapsed(self) -> tuple[str, list[int]]:
        """The characters of all collapsed templates, and where each begins and the last ends."""
        begins_run = np.ones(len(self.states), dtype=bool)
        begins_run[1:] = self.states[1:] != self.states[:-1]
        begins_run[self.offsets[:-1][np.diff(self.offsets) > 0]] = True
        characters = (self.states[begins_run].astype("<u4") + np.uint32(FIRST)).tobytes()
        bounds = np.concatenate([[0], np.cumsum(begins_run)])[self.offsets]
        return characters.decode("utf-32-le"), bounds.tolist()

    @cached_property
    def _named_sets(self) -> list[frozenset[str]]:
        return [frozenset(self.key_names[row].tolist()) for row in self.key_sets]

    def _at(self, numbers: Sequence[int]) -> list[StoredTemplate]:
        index = np.asarray(numbers, dtype=np.int64)
        starts, ends = self.offsets[index].tolist(), self.offsets[index + 1].tolist()
        return [
            StoredTemplate(number, tuple(self.states[start:end].tolist()), keys, count, example)
            for number, start, end, keys, count, example in zip(
                numbers,
                starts,
                ends,
                (self._named_sets[row] for row in self.tables[index].tolist()),
                self.counts[index].tolist(),
                self.examples[index].tolist(),
                strict=True,
            )
        ]

    def _has_fitting_shapes(self) -> bool:
        one_each = self.tables.shape == self.counts.shape == self.examples.shape
        one_more = self.offsets.shape == (len(self.tables) + 1,)
        lists = (self.states, self.tables, self.sentences, self.key_names)
        flat = all(array.ndim == 1 for array in lists)
        return one_each and one_more and flat and self.key_sets.shape[1:] == self.key_names.shape

    def _has_fitting_values(self) -> bool:
        ends = self.offsets[0] == 0 and self.offsets[-1] == len(self.states)
        in_order = (np.diff(self.offsets) >= 0).all()
        known = _below(self.states, self.num_states) and _below(self.tables, len(self.key_sets))
        used = _below(self.sentences, len(self))
        seen = _below(self.examples, len(self.sentences))
        return bool(ends and in_order and known and used and seen)


def _count(
    every: Sequence[TemplateOfKeys],
) -> tuple[Counter[TemplateOfKeys], dict[TemplateOfKeys, int]]:
    """How many sentences each template has, and the number of the first."""
    first: dict[TemplateOfKeys, int] = {}
    for example, stored in enumerate(every):
        first.setdefault(stored, example)
    return Counter(every), first


def _number_of_states(states: Integers, asked: int | None) -> int:
    """As asked, if that is enough."""
    needed = int(states.max(initial=-1)) + 1
    if states.min(initial=0) < 0:
        raise ValueError(f"states are numbered from 0, not from {states.min()}")
    if asked is not None and asked < needed:
        raise ValueError(f"state {needed - 1} is not one of {asked}, numbered from 0")
    return needed if asked is None else asked


def _membership(sets: Sequence[frozenset[str]], names: Sequence[str]) -> NDArray[np.bool_]:
    rows = [[name in keys for name in names] for keys in sets]
    return np.array(rows, dtype=bool).reshape(len(sets), len(names))


def _below(numbers: Integers, bound: int) -> bool:
    """All of them are from 0 to `bound`, the last left out."""
    return bool(((numbers >= 0) & (numbers < bound)).all())
