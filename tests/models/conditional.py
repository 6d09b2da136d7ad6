"""A tiny model that reads sources, and sentences to write from them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from models.data.batches import Batch, EncodedPair, Source, collate
from models.data.sources import EncodedSource
from models.data.vocabulary import END, UNKNOWN
from models.vae.template_vae import TemplateVAE
from tests.models.conftest import CONFIG, VOCABULARY_SIZE

NUM_KEYS = 6
NEW = VOCABULARY_SIZE  # the number of the first word beyond the vocabulary

# A new word that is seen as another, and one that two items say.
TABLE = EncodedSource([4, 4, 5], [1, 2, 1], [4, 5, 5], [4, NEW, 5], [0, 1, 0], ["new"])
SHORT = EncodedSource([5, 5], [1, 2], [UNKNOWN, UNKNOWN], [NEW, NEW], [1, 1], ["other"])
BAG = EncodedSource(
    [UNKNOWN] * 4, [1] * 4, [5, UNKNOWN, 4, UNKNOWN], [5, NEW, 4, NEW + 1], [0, 1, 0, 1], ["a", "b"]
)
PAIRS = [
    EncodedPair([4, UNKNOWN, 5, END], TABLE, [4, NEW, 5, END]),  # says all that the table says
    EncodedPair([UNKNOWN, END], SHORT, [UNKNOWN, END]),  # a word that nobody knows
    EncodedPair([UNKNOWN, 5, END], BAG, [NEW + 1, 5, END]),
]


def conditional_model(latent: bool = True, **changes: float) -> TemplateVAE:
    """In double precision and evaluation mode; changes are of `ModelConfig`."""
    torch.manual_seed(0)
    config = replace(CONFIG, **changes)
    return TemplateVAE(config, VOCABULARY_SIZE, latent, NUM_KEYS).double().eval()


def conditional_batch() -> Batch:
    return collate(PAIRS)


def with_items(source: Source, order: Sequence[int]) -> Source:
    """Its items in another order, or some of them, of each sentence alike."""
    return Source(*(part[:, list(order)] for part in source))
