"""The whole model: the inference network q(z | x), and with the decoder the template VAE."""

from __future__ import annotations

from torch import Tensor, nn

from models.config import Knobs, ModelConfig, RunConfig
from models.data.batches import Batch
from models.data.sources import SourceVocabulary
from models.data.vocabulary import PAD
from models.vae.decoder import Decoder, LogJoint
from models.vae.layers import BothWays, Dropout, drop_sentences
from structdist import LinearChain, LinearChainCRF


class InferenceNetwork(nn.Module):
    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        size = config.hidden_size
        self.embedding = nn.Embedding(vocabulary_size, size, padding_idx=PAD)
        self.lstm = BothWays(size, size, config.num_layers)
        self.dropout = Dropout(config.dropout)
        self.scores = nn.Linear(2 * size, config.num_states)
        self.word_scores = nn.Linear(size, config.num_states) if config.word_scores else None
        self.crf = LinearChain(config.num_states)

    def forward(self, batch: Batch, knobs: Knobs) -> LinearChainCRF:
        """The posterior over templates, batch shape [B], event shape [T, K].

        In training, `context_dropout` is the share of sentences whose words are scored alone.
        Weights beyond all bounds, whose scores are no numbers, are a `FloatingPointError`.
        """
        words = self.dropout(self.embedding(batch.words))
        scores = self.scores(self.dropout(self.lstm(words, batch.lengths)))
        if self.word_scores is not None:
            rate = knobs.context_dropout if self.training else 0.0
            scores = drop_sentences(scores, rate) + self.word_scores(words)
        if not scores.isfinite().all():
            raise FloatingPointError("scores of states are not finite")
        return self.crf(scores, batch.lengths)


class TemplateVAE(nn.Module):
    """Without `latent` it is the recurrent language model to compare with.

    With `num_keys`, the kinds of words that a source can have, the decoder reads sources. The
    inference network never does.
    """

    def __init__(
        self,
        config: ModelConfig,
        vocabulary_size: int,
        latent: bool = True,
        num_keys: int | None = None,
    ) -> None:
        super().__init__()
        self.inference_network = InferenceNetwork(config, vocabulary_size) if latent else None
        self.decoder = Decoder(config, vocabulary_size, latent, num_keys)

    @property
    def latent(self) -> bool:
        """Whether it has templates."""
        return self.inference_network is not None

    def posterior(self, batch: Batch, knobs: Knobs | None = None) -> LinearChainCRF:
        """The distribution q(z | x) over templates, batch shape [B], event shape [T, K]."""
        if self.inference_network is None:
            raise ValueError("a model without templates has no posterior over them")
        return self.inference_network(batch, knobs or Knobs())

    def log_joint(
        self, batch: Batch, states: Tensor | None = None, knobs: Knobs | None = None
    ) -> LogJoint:
        """Log p(x, z) [S, B] for templates [S, B, T, K]; log p(x) [B] without any."""
        knobs = knobs or Knobs()
        if states is None:
            return self.decoder(batch, None, knobs)
        flat = self.decoder(batch.repeat(len(states)), states.flatten(0, 1), knobs)
        return LogJoint(*(x.view(len(states), -1) for x in flat))


def build_model(config: RunConfig, vocabulary: SourceVocabulary) -> TemplateVAE:
    """What a run trains."""
    num_keys = None if config.task == "text" else len(vocabulary.keys)
    return TemplateVAE(config.model, len(vocabulary.words), config.objective.latent, num_keys)
