"""The schemes by which tags of tokens tell spans, and which tags may follow which.

A tag is `O`, of a token outside of every span, or a prefix and a label, `B-person`. In each scheme
every set of spans has one sequence of tags, and tags that no spans have are ill-formed:

| scheme | prefixes | rules |
| --- | --- | --- |
| `IOB1` | I, B | I, but B on the first token of a span right after another of the same label |
| `BIO` | B, I | B on the first token of a span, I on the others |
| `BIOES` | B, I, E, S | B on the first, E on the last, I between them; S on a span of one token |
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

OUTSIDE = "O"  #: The tag, and the label, of a token outside of every span.
INSIDE_A_SPAN = ("B", "I")  # prefixes after which a span may go on


class Tag(NamedTuple):
    prefix: str  # "" outside of every span
    label: str

    def __str__(self) -> str:
        return f"{self.prefix}-{self.label}" if self.prefix else OUTSIDE


@dataclass(frozen=True)
class Scheme:
    """What may stand beside what. Two tags are akin if B or I comes first, and the labels agree."""

    name: str
    prefixes: tuple[str, ...]
    only_after_akin: tuple[str, ...]  # prefixes that need a tag akin to theirs right before them
    unfinished: tuple[str, ...] = ()  # prefixes after which one of the above must come

    def parse(self, text: object) -> Tag:
        """The parts of a tag; a `ValueError` says what is wrong with it."""
        if text == OUTSIDE:
            return Tag("", "")
        forms = f"{OUTSIDE}, or one of {', '.join(self.prefixes)} with a dash and a label"
        prefix, dash, label = text.partition("-") if isinstance(text, str) else ("", "", "")
        if prefix not in self.prefixes or not dash or not label:
            raise ValueError(f"a tag of the scheme {self.name} is {forms}")
        return Tag(prefix, label)

    def prefixes_of(self, size: int, after_akin: bool) -> list[str]:
        """Those of the tokens of a span, which may come right after another of the same label."""
        if "S" in self.prefixes:
            return ["S"] if size == 1 else ["B", *["I"] * (size - 2), "E"]
        marks_all = "B" not in self.only_after_akin
        return ["B" if marks_all or after_akin else "I", *["I"] * (size - 1)]

    def fault(self, before: Tag | None, tag: Tag | None) -> str | None:
        """Why a tag cannot follow another, None if it can; None stands for the ends of a chain."""
        akin = are_akin(before, tag)
        if tag is not None and tag.prefix in self.only_after_akin and not akin:
            wanted = " or ".join(f"{prefix}-{tag.label}" for prefix in INSIDE_A_SPAN)
            return f"{tag} must come right after {wanted}, not {_place(before, 'at the start')}"
        goes_on = akin and tag is not None and tag.prefix in self.only_after_akin
        if before is not None and before.prefix in self.unfinished and not goes_on:
            wanted = " or ".join(f"{prefix}-{before.label}" for prefix in self.only_after_akin)
            return f"{before} must be followed by {wanted}, not {_place(tag, 'by the end')}"
        return None


def are_akin(before: Tag | None, tag: Tag | None) -> bool:
    """Is the tag before inside a span of the same label, which may go on?"""
    if before is None or tag is None:
        return False
    return before.prefix in INSIDE_A_SPAN and before.label == tag.label


def _place(tag: Tag | None, otherwise: str) -> str:
    return otherwise if tag is None else str(tag)


_SCHEMES = {
    scheme.name: scheme
    for scheme in (
        Scheme("IOB1", ("I", "B"), only_after_akin=("B",)),
        Scheme("BIO", ("B", "I"), only_after_akin=("I",)),
        Scheme("BIOES", ("B", "I", "E", "S"), only_after_akin=("I", "E"), unfinished=("B", "I")),
    )
}


def scheme_named(name: str) -> Scheme:
    if name not in _SCHEMES:
        raise ValueError(f"scheme must be one of {', '.join(_SCHEMES)}, got {name!r}")
    return _SCHEMES[name]


def require_names(name: str, values: Sequence[str]) -> None:
    """Raise unless these are strings, none of them twice."""
    if isinstance(values, str) or not all(isinstance(value, str) for value in values):
        raise ValueError(f"{name} must be a sequence of strings, got {values!r}")
    if len(set(values)) < len(values):
        twice = next(value for value in values if values.count(value) > 1)
        raise ValueError(f"{name} must differ from each other, but hold {twice!r} twice")


def tag_names(labels: Sequence[str], scheme: str = "BIO") -> list[str]:
    """All tags of a scheme for the labels of spans: `O`, then those of each label in turn.

    Example:
        >>> from structdist.tagging import tag_names
        >>> tag_names(["person", "place"])
        ['O', 'B-person', 'I-person', 'B-place', 'I-place']
    """
    require_names("labels", labels)
    prefixes = scheme_named(scheme).prefixes
    if OUTSIDE in labels or "" in labels:
        raise ValueError(f"labels are those of spans, neither {OUTSIDE!r} nor '', got {labels!r}")
    return [OUTSIDE, *(str(Tag(prefix, label)) for label in labels for prefix in prefixes)]


class AllowedTransitions(NamedTuple):
    """Masks for `structdist.LinearChain`, whose arguments have the same names."""

    allowed: Tensor  #: bool `[K, K]`: may tag j come right after tag i?
    allowed_start: Tensor  #: bool `[K]`: may a sentence begin with it?
    allowed_end: Tensor  #: bool `[K]`: may a sentence end with it?


def allowed_transitions(tags: Sequence[str], scheme: str = "BIO") -> AllowedTransitions:
    """Which moves between K tags, in any order, a scheme allows.

    A chain within these masks has well-formed tags alone. A tag that none of them can have, such as
    `I-place` where there is no `B-place`, is an error.

    Example:
        >>> from structdist import LinearChain
        >>> from structdist.tagging import allowed_transitions, tag_names
        >>> tags = tag_names(["person", "place"])
        >>> moves = allowed_transitions(tags)
        >>> bool(moves.allowed[tags.index("O"), tags.index("I-place")])
        False
        >>> crf = LinearChain(len(tags), **moves._asdict())
    """
    require_names("tags", tags)
    grammar, parsed = scheme_named(scheme), []
    for position, tag in enumerate(tags):
        try:
            parsed.append(grammar.parse(tag))
        except ValueError as error:
            raise ValueError(f"tags: {tag!r} at {position}: {error}") from None
    moves = [[grammar.fault(i, j) is None for j in parsed] for i in parsed]
    masks = AllowedTransitions(
        torch.tensor(moves, dtype=torch.bool).view(len(tags), len(tags)),
        torch.tensor([grammar.fault(None, j) is None for j in parsed], dtype=torch.bool),
        torch.tensor([grammar.fault(i, None) is None for i in parsed], dtype=torch.bool),
    )
    _require_each_can_be(tags, masks, scheme)
    return masks


def _require_each_can_be(tags: Sequence[str], masks: AllowedTransitions, scheme: str) -> None:
    """Raise unless there is a well-formed sequence with each tag."""
    moves, reached, leads_to_an_end = masks
    for _ in tags:
        reached = reached | (moves & reached.unsqueeze(-1)).any(0)
        leads_to_an_end = leads_to_an_end | (moves & leads_to_an_end).any(-1)
    never = [tag for tag, can in zip(tags, reached & leads_to_an_end, strict=True) if not can]
    if never:
        raise ValueError(
            f"tags: no well-formed sequence of the scheme {scheme} has {', '.join(never)}, because "
            f"tags that must come before or after are not among {', '.join(tags)}"
        )
