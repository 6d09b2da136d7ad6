"""From what the decoder knows to the next word: one of the vocabulary, or one of the source.

    p(x) = (1 - g) softmax(FF(features))[x] + g (sum of the weights of items that say x)

where the gate g and the weights of the items come from the features, too (See et al., 2017).
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, linear, logsigmoid

from models.data.batches import Batch
from models.data.vocabulary import PAD, START, UNKNOWN

SMALLEST = 1e-30  # a probability; keeps logarithms and their gradients finite


class WordOutput(nn.Module):
    never: Tensor

    def __init__(self, size: int, vocabulary_size: int, copies: bool) -> None:
        super().__init__()
        self.to_words = nn.Linear(size, vocabulary_size)
        self.gate = nn.Linear(size, 1) if copies else None
        never = torch.zeros(vocabulary_size)
        never[[PAD, START]] = -torch.inf
        self.register_buffer("never", never, persistent=False)

    def score(self, features: Tensor, weights: Tensor | None, batch: Batch) -> Tensor:
        """Log probability of the target words [B, T], 0 in the padding.

        Features [B, T, D], weights of the source's items [B, T, N].
        """
        target = batch.target
        logits = self._logits(features).flatten(0, 1)  # [B T, V]
        known = target.masked_fill(target >= logits.shape[-1], UNKNOWN).flatten()
        losses = cross_entropy(logits, known, ignore_index=PAD, reduction="none")
        written = -losses.view(target.shape)
        if weights is None or self.gate is None or batch.source is None:
            return written
        says_it = batch.source.says.unsqueeze(1) == target.unsqueeze(-1)  # [B, T, N]
        copied = (weights * says_it).sum(-1).clamp(min=SMALLEST).log()
        gate = self.gate(features).squeeze(-1)
        written = written.masked_fill(target >= logits.shape[-1], -torch.inf)
        either = torch.logaddexp(written + logsigmoid(-gate), copied + logsigmoid(gate))
        return either.masked_fill(~batch.active, 0.0)

    def log_probs(self, features: Tensor, weights: Tensor | None, says: Tensor | None) -> Tensor:
        """Log probabilities of all words [B, V + N]; the last N are those that only the source has.

        Features [B, D], weights [B, N], what each item says [B, N].
        """
        written = self._logits(features).log_softmax(-1)
        if weights is None or says is None or self.gate is None:
            return written
        gate = self.gate(features)
        beyond = written.new_zeros(weights.shape)
        probs = torch.cat([(written + logsigmoid(-gate)).exp(), beyond], -1)
        probs = probs.scatter_add(-1, says, weights * gate.sigmoid())
        return probs.index_fill(-1, torch.tensor(PAD, device=says.device), 0.0).log()

    def _logits(self, features: Tensor) -> Tensor:
        """Marks that are no words are never said."""
        return linear(features, self.to_words.weight, self.to_words.bias + self.never)
