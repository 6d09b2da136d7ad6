"""The templates of the training sentences, to look up and to generate from.

A template that several sentences about tables with the same keys share is stored once. Templates
are numbered from 0, the most frequent first; of equals, the earlier.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from models.errors import RunError, SettingError
from models.files import read_json, write_json
from models.templates.patterns import parse_pattern
from models.templates.segments import Phrases


@dataclass(frozen=True)
class StoredTemplate:
    number: int
    states: tuple[int, ...]  # one for each word; `Phrases` if the model has any
    keys: frozenset[str]  # of the tables that the sentences are about
    count: int  # how many training sentences have it
    example: int  # the first of them


class TemplateBank:
    """Made from the templates of all sentences and the keys of their tables, in the same order.

    The `fingerprint` tells what the templates come from.
    """

    def __init__(
        self,
        templates: Iterable[Sequence[int]],
        key_sets: Iterable[Iterable[str]],
        num_states: int,
        fingerprint: str = "",
    ) -> None:
        states = (own if isinstance(own, tuple) else tuple(own) for own in templates)
        every = [(own, frozenset(keys)) for own, keys in zip(states, key_sets, strict=True)]
        counts, first = Counter(every), {own: i for i, own in reversed(list(enumerate(every)))}
        numbers = {own: number for number, (own, _) in enumerate(counts.most_common())}
        self.templates = [
            StoredTemplate(n, *own, counts[own], first[own]) for own, n in numbers.items()
        ]
        self.sentences = [numbers[own] for own in every]  # the template of each training sentence
        self.num_states, self.fingerprint = num_states, fingerprint
        strangers = {s for states, _ in counts for s in states if not 0 <= s < num_states}
        if strangers:
            raise ValueError(f"state {min(strangers)} is not one of {num_states}, numbered from 0")

    def save(self, path: Path) -> None:
        content = {
            "fingerprint": self.fingerprint,
            "num_states": self.num_states,
            "templates": [_entry(template) for template in self],
            "sentences": self.sentences,
        }
        write_json(path, content, indent=None)

    @classmethod
    def load(cls, path: Path) -> TemplateBank:
        make = "run `python -m models templates RUN`"
        if not path.exists():
            raise RunError(f"{path} does not exist; {make}")
        try:
            content = read_json(path)
            stored = {i: _read_entry(*entry) for i, entry in enumerate(content["templates"])}
            every = [stored[number] for number in content["sentences"]]
            templates, keys = [own[0] for own in every], [own[1] for own in every]
            return cls(templates, keys, int(content["num_states"]), str(content["fingerprint"]))
        except Exception as error:  # damage shows in many ways, all of them the file's fault
            raise RunError(f"{path} is damaged, or no bank of templates; {make} again") from error

    def __len__(self) -> int:
        return len(self.templates)

    def __iter__(self) -> Iterator[StoredTemplate]:
        return iter(self.templates)

    def __getitem__(self, number: int) -> StoredTemplate:
        if not 0 <= number < len(self):
            raise IndexError(f"there is no template {number}: there are {len(self)}, from 0 on")
        return self.templates[number]

    @cached_property
    def by_keys(self) -> dict[frozenset[str], list[StoredTemplate]]:
        found: dict[frozenset[str], list[StoredTemplate]] = defaultdict(list)
        for template in self:
            found[template.keys].append(template)
        return dict(found)

    @property
    def key_names(self) -> list[str]:
        return sorted(frozenset().union(*self.by_keys))

    def of_sentences(self) -> list[tuple[int, ...]]:
        """The template of each training sentence."""
        return [self.templates[number].states for number in self.sentences]

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
            pattern: Of their states; `models/templates/patterns.py` says how to write it.
            limit: How many at most; without it, all.
        """
        found: Iterable[StoredTemplate] = self
        if keys is not None:
            found = self.by_keys.get(frozenset(keys), [])
        if length is not None:
            least, most = (length, length) if isinstance(length, int) else length
            if least > most:
                raise SettingError(f"no length is at least {least} and at most {most}")
            found = [template for template in found if least <= len(template.states) <= most]
        if pattern is not None:
            matches = parse_pattern(pattern, self.num_states)
            found = (template for template in found if matches(template.states))
        return list(islice(found, limit))

    def key_sets_like(self, keys: Iterable[str]) -> list[frozenset[str]]:
        """Sets of keys that templates have, the most alike first: those that share most of both."""
        wanted = frozenset(keys)
        return sorted(
            self.by_keys,
            key=lambda own: (-len(own & wanted) / max(1, len(own | wanted)), sorted(own)),
        )


def _entry(template: StoredTemplate) -> tuple[Any, ...]:
    """States and keys; of phrases also the places where they start."""
    entry: tuple[Any, ...] = (template.states, sorted(template.keys))
    if isinstance(template.states, Phrases):
        entry += ([i for i, starts in enumerate(template.states.starts) if starts],)
    return entry


def _read_entry(
    states: Sequence[int], keys: Sequence[str], places: Sequence[int] | None = None
) -> tuple[tuple[int, ...], Sequence[str]]:
    if places is None:
        return tuple(states), keys
    return Phrases(states, [i in places for i in range(len(states))]), keys
