"""The whole model: inference network and decoder."""

from __future__ import annotations

from torch import Tensor, nn

from models.config import Knobs, ModelConfig, RunConfig
from models.data.batches import Batch
from models.data.sources import SourceVocabulary
from models.vae.decoder import Decoder, LogJoint
from models.vae.inference_network import InferenceNetwork
from structdist import LinearChainCRF


class TemplateVAE(nn.Module):
    """With `latent=False`, the recurrent language model to compare with.

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
