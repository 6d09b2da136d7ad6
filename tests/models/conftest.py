"""A tiny model, small enough to enumerate."""

from __future__ import annotations

import pytest
import torch

from models.config import ModelConfig
from models.data.batch import PAD, Batch
from models.template_vae import TemplateVAE

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
