"""A model of sentences as phrases in a row, whose likelihood and best phrases are exact.

    p(x | s) = sum over phrases of  prod p(z_i | z_{i-1}, s) p(words of phrase i | z_i, s)

A phrase is a first word, then words in no order until it ends, which depends on the last of them. A
state looks up values of some keys in the table, and is likelier where the table has those keys. At
first each of the first states has a key of its own, and the others have none. Those with a key are
unlikely at first, prefer no word and have long phrases; words which tell of no value are left to
the others, which differ by chance in the words they prefer and have short phrases.

It knows nothing of the order within phrases nor of what was said before, so it writes badly. But
words belong together for it if they tell of the same value, or often stand together; and as all its
scores add up over phrases, it is a `SemiMarkovCRF` that maximises log Z, without any draws: hidden
semi-Markov templates as those of Wiseman et al. (2018), with bags of words for their recurrent
networks. The inference network learns phrases from it.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, one_hot, pad

from models.config import ModelConfig
from models.data.batches import Batch, Source
from models.data.vocabulary import MARKS
from models.vae.phrases import scores_of_ends
from structdist import SemiMarkovCRF

SPREAD = 0.5  # standard deviation of scores at first
NOTHING = 2.0  # the score of looking nothing up
LOOKS_UP, LIKES, RELUCTANT = 6.0, 5.0, 8.0  # scores, at first, of a state that has a key
ENDS, GOES_ON = 2.0, 2.0  # the log odds, at first, without a key and with one
RIVALS = 4  # models that learn side by side, of which one is to teach
TRIAL = 300  # steps, after which the best of them is chosen
RECENT = 0.02  # share of the last step in the mean likelihood by which they are compared


class PhraseModel(nn.Module):
    def __init__(self, config: ModelConfig, vocabulary_size: int, num_keys: int | None) -> None:
        super().__init__()
        num_states, self.max_phrase = config.num_states, config.max_phrase
        self.transitions = nn.Parameter(SPREAD * torch.randn(num_states, num_states))
        self.start = nn.Parameter(SPREAD * torch.randn(num_states))
        self.first_words = nn.Parameter(torch.zeros(num_states, vocabulary_size))
        self.ends_after = nn.Embedding(vocabulary_size, 1)
        nn.init.zeros_(self.ends_after.weight)
        self.embedding = nn.Embedding(vocabulary_size, config.hidden_size)
        self.told = nn.Linear(config.hidden_size, vocabulary_size, bias=False)
        nn.init.zeros_(self.told.weight)
        own_key = torch.eye(len(MARKS) + num_states, num_keys or 0)[len(MARKS) :]
        has_key = own_key.sum(-1)
        prefers = SPREAD * torch.randn(num_states, vocabulary_size)
        self.words = nn.Parameter((1 - has_key).unsqueeze(-1) * prefers)
        self.looks_up, self.likes = nn.Parameter(LOOKS_UP * own_key), nn.Parameter(LIKES * own_key)
        self.reluctance = nn.Parameter(RELUCTANT * has_key)
        self.ends = nn.Parameter(ENDS * (1 - has_key) - GOES_ON * has_key)

    def forward(self, batch: Batch) -> SemiMarkovCRF:
        """The posterior over phrases, batch shape [B]; its log Z is log p(x | s)."""
        words = self.words.unsqueeze(0)
        transitions: Tensor = self.transitions
        start: Tensor = self.start
        if batch.source is not None:
            words = words + self.told(self._found(batch.source))
            liked = self._keys(batch.source) @ self.likes.T - self.reluctance  # [B, K]
            transitions, start = transitions + liked.unsqueeze(1), start + liked
        begins = _said((words + self.first_words).log_softmax(-1), batch.words)  # [B, T, K]
        ending = self.ends + self.ends_after(batch.words)  # [B, T, K]
        not_ended = pad(logsigmoid(-ending[:, :-1]), (0, 0, 1, 0))
        goes_on = _said(words.log_softmax(-1), batch.words) + not_ended
        segments = scores_of_ends(begins - goes_on, logsigmoid(ending), self.max_phrase)
        return SemiMarkovCRF(
            goes_on,
            transitions.log_softmax(-1),
            None,
            batch.lengths,
            segments=segments,
            start=start.log_softmax(-1),
            validate_args=False,
        )

    def _found(self, source: Source) -> Tensor:
        """What each state finds in the table [B, K, H]."""
        scores = self.looks_up.T[source.keys].transpose(1, 2)  # [B, K, N]
        scores = scores.masked_fill(~source.active.unsqueeze(1), -torch.inf)
        nothing = torch.full_like(scores[..., :1], NOTHING)
        weights = torch.cat([nothing, scores], -1).softmax(-1)[..., 1:]
        return weights @ self.embedding(source.words)

    def _keys(self, source: Source) -> Tensor:
        """Which keys each table has [B, number of keys]."""
        every = one_hot(source.keys, self.likes.shape[-1]) * source.active.unsqueeze(-1)
        return every.amax(1).to(self.likes.dtype)


class PhraseTeacher(nn.Module):
    """The inference network learns phrases from a phrase model, the likeliest of several.

    What a phrase model finds depends on where it begins, and its likelihood tells how good that is:
    of beginnings that differ by chance alone, those that end some nats behind also find phrases
    that are farther from the true ones. So several learn side by side for a while, and then only
    the best does.
    """

    steps: Tensor
    log_likelihoods: Tensor

    def __init__(self, config: ModelConfig, vocabulary_size: int, num_keys: int | None) -> None:
        super().__init__()
        rivals = [PhraseModel(config, vocabulary_size, num_keys) for _ in range(RIVALS)]
        self.rivals = nn.ModuleList(rivals)
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
            now = found.detach().mean(-1)
            before = self.log_likelihoods if self.steps > 0 else now
            self.log_likelihoods.copy_(torch.lerp(before, now.to(before.dtype), RECENT))
            self.steps.add_(1)
        return taught.cross_entropy(posterior) - found.sum(0)


def _said(log_probs: Tensor, words: Tensor) -> Tensor:
    """Log probability of each word [B, T, K], of all words by state [B or 1, K, V]."""
    index = words.unsqueeze(1).expand(-1, log_probs.shape[1], -1)
    return log_probs.expand(len(words), -1, -1).gather(-1, index).transpose(1, 2)
