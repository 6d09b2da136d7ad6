"""A tiny model, small enough to enumerate; the built-in corpus, small, and the real one."""

from __future__ import annotations

import pytest
import torch

from models.config import ModelConfig
from models.data.batches import Batch
from models.data.readers import E2E_FILES, Row, read_e2e
from models.data.vocabulary import PAD
from models.restaurants.corpus import synthetic_corpus
from models.vae.template_vae import TemplateVAE
from tests.models.data.conftest import real_data

CONFIG = ModelConfig(num_states=3, hidden_size=8)
VOCABULARY_SIZE = 6


@pytest.fixture
def model():
    torch.manual_seed(0)
    return TemplateVAE(CONFIG, VOCABULARY_SIZE).double().eval()


@pytest.fixture
def batch():
    words = torch.tensor([[4, 5, 4, 2], [5, 2, PAD, PAD], [4, 4, 2, PAD]])
    return Batch(words, torch.tensor([4, 2, 3]))


@pytest.fixture(scope="session")
def synthetic_examples():
    splits = synthetic_corpus(200, 50, 50).splits
    return [example for split in splits.values() for example in split]


@pytest.fixture(scope="session")
def e2e_dev_rows() -> list[Row]:
    return read_e2e(real_data("e2e") / f"{E2E_FILES['dev']}.gz")
