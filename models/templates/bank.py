"""The templates of the training sentences, to look up and to generate from.

A template that several sentences about tables with the same keys share is stored once. Templates
are numbered from 0, the most frequent first.
"""

from __future__ import annotations

import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path

from models.errors import RunError, SettingError
from models.files import replacing
from models.templates.patterns import as_characters, parse_pattern


@dataclass(frozen=True)
class StoredTemplate:
    number: int
    states: tuple[int, ...]  # one for each word
    keys: frozenset[str]  # of the tables that the sentences are about
    count: int  # how many training sentences have it
    example: int  # the first of them

    @cached_property
    def characters(self) -> str:
        """Its states as a pattern reads them."""
        return as_characters(self.states)


class TemplateBank:
    """Made from the templates of all sentences and the keys of their tables, in the same order.

    `num_states` are those a pattern may name; without it, up to the largest one there is. The
    `fingerprint` tells what the templates come from.
    """

    def __init__(
        self,
        templates: Iterable[Sequence[int]],
        key_sets: Iterable[Iterable[str]],
        fingerprint: str = "",
        num_states: int | None = None,
    ) -> None:
        every = [(tuple(s), frozenset(k)) for s, k in zip(templates, key_sets, strict=True)]
        counts, first = Counter(every), {own: i for i, own in reversed(list(enumerate(every)))}
        ordered = counts.most_common()  # of equals, the earlier first
        self.templates = [
            StoredTemplate(number, *own, count, first[own])
            for number, (own, count) in enumerate(ordered)
        ]
        numbers = {own: number for number, (own, _) in enumerate(ordered)}
        self.sentences = [numbers[own] for own in every]  # the template of each training sentence
        self.fingerprint = fingerprint
        self.num_states = _number_of_states({s for states, _ in counts for s in states}, num_states)

    def save(self, path: Path) -> None:
        content = {
            "fingerprint": self.fingerprint,
            "num_states": self.num_states,
            "templates": [(template.states, sorted(template.keys)) for template in self],
            "sentences": self.sentences,
        }
        with replacing(path) as unfinished:
            unfinished.write_bytes(gzip.compress(json.dumps(content).encode(), mtime=0))

    @classmethod
    def load(cls, path: Path) -> TemplateBank:
        make = "run `python -m models templates RUN`"
        if not path.exists():
            raise RunError(f"{path} does not exist; {make}")
        try:
            content = json.loads(gzip.decompress(path.read_bytes()))
            stored = dict(enumerate(content["templates"]))
            every = [stored[number] for number in content["sentences"]]
            templates, keys = [own[0] for own in every], [own[1] for own in every]
            return cls(templates, keys, str(content["fingerprint"]), int(content["num_states"]))
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
            match = parse_pattern(pattern, self.num_states).regex.fullmatch
            found = (template for template in found if match(template.characters))
        return list(islice(found, limit))

    def key_sets_like(self, keys: Iterable[str]) -> list[frozenset[str]]:
        """Sets of keys that templates have, the most alike first: those that share most of both."""
        wanted = frozenset(keys)
        return sorted(
            self.by_keys,
            key=lambda own: (-len(own & wanted) / max(1, len(own | wanted)), sorted(own)),
        )


def _number_of_states(used: set[int], asked: int | None) -> int:
    """As many as were asked for, or else as the largest used state needs."""
    needed = max(used, default=-1) + 1
    if min(used, default=0) < 0:
        raise ValueError(f"states are numbered from 0, not from {min(used)}")
    if asked is not None and asked < needed:
        raise ValueError(f"state {needed - 1} is not one of {asked}, numbered from 0")
    return needed if asked is None else asked
