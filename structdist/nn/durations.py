"""Learnable scores of the lengths of segments: a free table, or a family of distributions.

Every module here answers `[L, K]`, for the lengths 1..L of segments of each label, and has -inf
where a length is longer than its label may have.

The families are about `l - 1`, a count from 0 up, and are truncated: the scores of a label are the
log probabilities of its lengths given that they are allowed, so their exp sums to 1. All of
them are given by the log ratios of the probabilities of neighbouring counts, in which every factor
without the count cancels, and nothing overflows.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.functional import logsigmoid, pad

from structdist.nn.moves import forbid


class Durations(nn.Module):
    """Scores of lengths, each label having its own longest one.

    Args:
        longest: the longest length of a segment of each of the `K` labels; `L` is their maximum.
        device, dtype: of the parameters.
    """

    allowed: Tensor | None

    def __init__(
        self,
        longest: list[int],
        device: torch.device | str | int | None,
        dtype: torch.dtype | None,
    ) -> None:
        super().__init__()
        self.num_labels, self.max_duration = len(longest), max(longest)
        for name, shape in self._parameter_shapes().items():
            empty = torch.empty(shape, device=device, dtype=dtype)
            self.register_parameter(name, nn.Parameter(empty))
        allowed = None
        if min(longest) < self.max_duration:
            lengths = torch.arange(1, self.max_duration + 1, device=device).unsqueeze(-1)
            allowed = lengths <= torch.tensor(longest, device=device)
        self.register_buffer("allowed", allowed)

    def _parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes of what is learnt, by name."""
        raise NotImplementedError


class DurationTable(Durations):
    """A score of its own for each length and label, `scores` `[L, K]`; not normalised."""

    scores: nn.Parameter

    def _parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"scores": (self.max_duration, self.num_labels)}

    def forward(self) -> Tensor:
        """[L, K]."""
        return forbid(self.scores, self.allowed)


class DurationFamily(Durations):
    """Log probabilities of lengths, given that they are allowed; half precision in float32."""

    def forward(self) -> Tensor:
        """[L, K]."""
        parameter = next(self.parameters())
        dtype = torch.promote_types(parameter.dtype, torch.float32)
        counts = torch.arange(1, self.max_duration, device=parameter.device, dtype=dtype)
        scores = self._log_ratios(counts.unsqueeze(-1)).expand(-1, self.num_labels).cumsum(0)
        return forbid(pad(scores, (0, 0, 1, 0)), self.allowed).log_softmax(0)

    def _log_ratios(self, counts: Tensor) -> Tensor:
        """[L-1, K]: log p(n) - log p(n-1) of counts n [L-1, 1] from 1 up."""
        raise NotImplementedError


class PoissonDurations(DurationFamily):
    """`l - 1` follows `Poisson(log_rate.exp())`, with `log_rate` `[K]` learnt."""

    log_rate: nn.Parameter

    def _parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"log_rate": (self.num_labels,)}

    def _log_ratios(self, counts: Tensor) -> Tensor:
        return self.log_rate - counts.log()


class NegativeBinomialDurations(DurationFamily):
    """`l - 1` follows `NegativeBinomial(log_count.exp(), logits=logits)`; both `[K]`, learnt.

    Its mean is `exp(log_count + logits)`.
    """

    log_count: nn.Parameter
    logits: nn.Parameter

    def _parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"log_count": (self.num_labels,), "logits": (self.num_labels,)}

    def _log_ratios(self, counts: Tensor) -> Tensor:
        so_far = torch.logaddexp(self.log_count.to(counts), (counts - 1).log())
        return so_far - counts.log() + logsigmoid(self.logits.to(counts))


class GeometricDurations(DurationFamily):
    """`l - 1` follows `Geometric(logits=logits)`; `logits` `[K]`, learnt, of ending at each step.

    A segment ends with the same probability after each of its steps.
    """

    logits: nn.Parameter

    def _parameter_shapes(self) -> dict[str, tuple[int, ...]]:
        return {"logits": (self.num_labels,)}

    def _log_ratios(self, counts: Tensor) -> Tensor:
        return logsigmoid(-self.logits.to(counts)).expand(len(counts), -1)


KINDS: dict[str, type[Durations]] = {
    "table": DurationTable,
    "poisson": PoissonDurations,
    "negative-binomial": NegativeBinomialDurations,
    "geometric": GeometricDurations,
}
