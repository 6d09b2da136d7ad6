"""q(z | x): a bidirectional LSTM that scores states, and learnt transitions between them."""

from __future__ import annotations

from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from models.config import Knobs, ModelConfig
from models.data.batches import Batch
from models.data.vocabulary import PAD
from models.vae.layers import LSTM, Dropout, drop_sentences
from structdist import LinearChain, LinearChainCRF


class InferenceNetwork(nn.Module):
    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        size = config.hidden_size
        self.embedding = nn.Embedding(vocabulary_size, size, padding_idx=PAD)
        self.lstm = LSTM(size, size, config.num_layers, bidirectional=True)
        self.dropout = Dropout(config.dropout)
        self.scores = nn.Linear(2 * size, config.num_states)
        self.word_scores = nn.Linear(size, config.num_states) if config.word_scores else None
        self.crf = LinearChain(config.num_states)

    def forward(self, batch: Batch, knobs: Knobs) -> LinearChainCRF:
        """The posterior over templates, batch shape [B], event shape [T, K].

        In training, `context_dropout` is the share of sentences whose words are scored alone.
        """
        words = self.dropout(self.embedding(batch.words))
        lengths = batch.lengths.cpu()
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(
            self.lstm(packed)[0], batch_first=True, total_length=batch.words.shape[1]
        )
        scores = self.scores(self.dropout(hidden))
        if self.word_scores is not None:
            rate = knobs.context_dropout if self.training else 0.0
            scores = drop_sentences(scores, rate) + self.word_scores(words)
        return self.crf(scores, batch.lengths)
