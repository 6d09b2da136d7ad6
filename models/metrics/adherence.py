"""Do generated sentences follow the templates they were asked to? A state stands for a word."""

from __future__ import annotations

from collections.abc import Sequence

States = Sequence[int]


def template_adherence(requested: Sequence[States], decoded: Sequence[States]) -> float:
    """The share of words whose state is the one that the template asks for at their place.

    `decoded` holds the best states of the generated words (the inference network's MAP path), one
    sequence for each requested template. A word beyond the end of its template does not agree;
    what a template asks for beyond the end of the sentence does not count.
    """
    words = sum(map(len, decoded))
    if words == 0:
        raise ValueError("there are no words to compare")
    agreeing = sum(
        int(asked) == int(given)
        for template, states in zip(requested, decoded, strict=True)
        for asked, given in zip(template, states, strict=False)
    )
    return agreeing / words
