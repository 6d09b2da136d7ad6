"""The whole model: the inference network q(z | x), and with the decoder the template VAE."""

from __future__ import annotations

from torch import Tensor, nn

from models.config import Knobs, ModelConfig, RunConfig
from models.data.batches import Batch
from models.data.sources import SourceVocabulary
from models.data.vocabulary import PAD
from models.vae.decoder import Decoder, LogJoint
from models.vae.layers import BothWays, Dropout, drop_sentences
from models.vae.phrase_model import PhraseTeacher
from models.vae.phrases import read_phrases, scores_of_ends
from structdist import LinearChain, LinearChainCRF, SemiMarkov, SemiMarkovCRF

Posterior = LinearChainCRF | SemiMarkovCRF


class InferenceNetwork(nn.Module):
    """Scores states and, for templates of phrases, the words that these begin and end with."""

    crf: LinearChain | SemiMarkov

    def __init__(self, config: ModelConfig, vocabulary_size: int) -> None:
        super().__init__()
        size = config.hidden_size
        self.embedding = nn.Embedding(vocabulary_size, size, padding_idx=PAD)
        self.lstm = BothWays(size, size, config.num_layers)
        self.dropout = Dropout(config.dropout)
        self.scores = nn.Linear(2 * size, config.num_states)
        self.word_scores = nn.Linear(size, config.num_states) if config.word_scores else None
        if config.has_phrases:
            self.edges = nn.Linear(2 * size, 2 * config.num_states)
            self.crf = SemiMarkov(config.num_states, config.max_phrase)
        else:
            self.crf = LinearChain(config.num_states)

    def forward(self, batch: Batch, knobs: Knobs) -> Posterior:
        """The posterior over templates, batch shape [B], event shape [T, K] or [T, L, K].

        In training, `context_dropout` is the share of sentences whose words are scored alone.
        Weights beyond all bounds, whose scores are no numbers, are a `FloatingPointError`.
        """
        words = self.dropout(self.embedding(batch.words))
        hidden = self.dropout(self.lstm(words, batch.lengths))
        scores = self.scores(hidden)
        if self.word_scores is not None:
            rate = knobs.context_dropout if self.training else 0.0
            scores = drop_sentences(scores, rate) + self.word_scores(words)
        if not scores.isfinite().all():
            raise FloatingPointError("scores of states are not finite")
        if isinstance(self.crf, LinearChain):
            return self.crf(scores, batch.lengths)
        first, last = self.edges(hidden).chunk(2, -1)  # [B, T, K]
        segments = scores_of_ends(first, last, self.crf.max_duration)
        return self.crf(scores, batch.lengths, segments)


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
        teaches = latent and config.has_phrases
        self.phrase_teacher = PhraseTeacher(config, vocabulary_size, num_keys) if teaches else None

    @property
    def latent(self) -> bool:
        """Whether it has templates."""
        return self.inference_network is not None

    @property
    def has_phrases(self) -> bool:
        """Whether its templates say where phrases begin."""
        return self.phrase_teacher is not None

    def posterior(self, batch: Batch, knobs: Knobs | None = None) -> Posterior:
        """The distribution q(z | x) over templates [T, K] of states, or [T, L, K] of phrases."""
        if self.inference_network is None:
            raise ValueError("a model without templates has no posterior over them")
        return self.inference_network(batch, knobs or Knobs())

    def log_joint(
        self, batch: Batch, events: Tensor | None = None, knobs: Knobs | None = None
    ) -> LogJoint:
        """Log p(x, z) [S, B] for events [S, B, ...] of the posterior; log p(x) [B] without any."""
        knobs = knobs or Knobs()
        if events is None:
            return self.decoder(batch, None, knobs)
        states = read_phrases(events) if self.has_phrases else events
        flat = self.decoder(batch.repeat(len(events)), states.flatten(0, 1), knobs)
        return LogJoint(*(x.view(len(events), -1) for x in flat))


def build_model(config: RunConfig, vocabulary: SourceVocabulary) -> TemplateVAE:
    """What a run trains."""
    num_keys = None if config.task == "text" else len(vocabulary.keys)
    return TemplateVAE(config.model, len(vocabulary.words), config.objective.latent, num_keys)
