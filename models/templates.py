"""The most likely template of a sentence."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from models.data.corpus import Example
from models.data.loader import encode, in_order
from models.data.vocabulary import Vocabulary
from models.template_vae import TemplateVAE


@torch.no_grad()
def map_templates(
    model: TemplateVAE,
    examples: Sequence[Example],
    vocabulary: Vocabulary,
    batch_size: int = 100,
) -> list[list[int]]:
    """MAP states of each sentence, one per word; the end mark's is left out."""
    templates: list[list[int]] = []
    for batch in in_order(encode([e.words for e in examples], vocabulary), batch_size):
        paths = model.posterior(batch).argmax.tolist()
        lengths = batch.lengths.tolist()
        templates += [path[: n - 1] for path, n in zip(paths, lengths, strict=True)]
    return templates


def segments(words: Sequence[str], states: Sequence[int]) -> list[tuple[int, list[str]]]:
    """Runs of words with the same state."""
    found: list[tuple[int, list[str]]] = []
    for word, state in zip(words, states, strict=True):
        if found and found[-1][0] == state:
            found[-1][1].append(word)
        else:
            found.append((state, [word]))
    return found
