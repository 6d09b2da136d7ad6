"""Sizes of the model."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ModelConfig:
    """Defaults are those of the released runs on E2E (the paper's text says 50 states)."""

    vocabulary_size: int
    num_states: int = 20
    hidden_size: int = 300  # both directions of the inference network together
    num_layers: int = 1
    dropout: float = 0.2
