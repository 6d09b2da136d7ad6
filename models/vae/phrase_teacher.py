"""The inference network learns phrases from a phrase model, the likeliest of several.

What a phrase model finds depends on where it begins, and its likelihood tells how good that is: of
beginnings that differ by chance alone, those that end some nats behind also find phrases that are
farther from the true ones. So several learn side by side for a while, and then only the best does.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.config import ModelConfig
from models.data.batches import Batch
from models.vae.phrase_model import PhraseModel
from structdist import SemiMarkovCRF

RIVALS = 4
TRIAL = 300  # steps, after which the best of them is chosen
RECENT = 0.02  # share of the last step in the mean likelihood by which they are compared


class PhraseTeacher(nn.Module):
    steps: Tensor
    log_likelihoods: Tensor

    def __init__(self, config: ModelConfig, vocabulary_size: int, num_keys: int | None) -> None:
        super().__init__()
        self.rivals = nn.ModuleList(
            [PhraseModel(config, vocabulary_size, num_keys) for _ in range(RIVALS)]
        )
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))
        self.register_buffer("log_likelihoods", torch.zeros(RIVALS))  # recent means, per sentence

    def lesson(self, batch: Batch, posterior: SemiMarkovCRF) -> Tensor:
        """Losses [B]: of the models that learn, and of `posterior`, which learns from the best one.

        In training it counts as a step of the trial.
        """
        best = int(self.log_likelihoods.argmax())
        with torch.no_grad():
            taught = self.rivals[best](batch)
        if self.steps >= TRIAL:
            return taught.cross_entropy(posterior) - self.rivals[best](batch).log_partition
        found = torch.stack([rival(batch).log_partition for rival in self.rivals])  # [R, B]
        if self.training:
            self._compare(found.detach().mean(-1))
        return taught.cross_entropy(posterior) - found.sum(0)

    def _compare(self, now: Tensor) -> None:
        before = self.log_likelihoods if self.steps > 0 else now
        self.log_likelihoods.copy_(torch.lerp(before, now.to(before.dtype), RECENT))
        self.steps.add_(1)
