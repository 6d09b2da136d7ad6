"""A layer that turns encoder scores into a `LinearChainCRF`."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from structdist.checks import require_tensor
from structdist.linear_chain import LinearChainCRF


class LinearChain(nn.Module):
    """Learnable transitions between `num_states` states; optional start and end scores.

    A tagger is three lines:

        crf = LinearChain(num_tags)
        dist = crf(encoder(words), lengths)     # emissions [*B, T, K], lengths [*B]
        loss = -dist.log_prob(tags).mean()      # tags [*B, T]

    `allowed`, bool `[K, K]`, says which moves from i to j may be made (BIO tagging, say); the
    others are forbidden, whatever is learnt. `allowed_start` and `allowed_end`, bool `[K]`, do the
    same for the first and the last state.
    """

    allowed: Tensor | None
    allowed_start: Tensor | None
    allowed_end: Tensor | None

    def __init__(
        self,
        num_states: int,
        *,
        start: bool = False,
        end: bool = False,
        allowed: Tensor | None = None,
        allowed_start: Tensor | None = None,
        allowed_end: Tensor | None = None,
        init_std: float = 0.1,
    ) -> None:
        super().__init__()
        if not isinstance(num_states, int) or num_states < 1:
            raise ValueError(f"num_states must be an integer from 1 up, got {num_states!r}")
        self.num_states = num_states
        self.init_std = init_std
        self.transitions = nn.Parameter(torch.empty(num_states, num_states))
        self.start = nn.Parameter(torch.empty(num_states)) if start else None
        self.end = nn.Parameter(torch.empty(num_states)) if end else None
        self._keep_mask("allowed", allowed, (num_states, num_states))
        self._keep_mask("allowed_start", allowed_start, (num_states,))
        self._keep_mask("allowed_end", allowed_end, (num_states,))
        self.reset_parameters()

    def _keep_mask(self, name: str, mask: Tensor | None, shape: tuple[int, ...]) -> None:
        if mask is not None:
            require_tensor(name, mask)
            if mask.dtype != torch.bool or mask.shape != shape:
                raise ValueError(
                    f"{name} must be bool {shape}, got {mask.dtype} {tuple(mask.shape)}"
                )
            mask = mask.clone()
        self.register_buffer(name, mask)

    def reset_parameters(self) -> None:
        for parameter in self.parameters():
            nn.init.normal_(parameter, std=self.init_std)

    def forward(self, emissions: Tensor, lengths: Tensor | None = None) -> LinearChainCRF:
        """The distribution over paths for emissions `[*B, T, K]` and lengths `[*B]`."""
        require_tensor("emissions", emissions)
        if emissions.dim() < 2 or emissions.shape[-1] != self.num_states:
            raise ValueError(
                f"emissions must be [*B, T, {self.num_states}], got {tuple(emissions.shape)}"
            )
        transitions = _forbid(self.transitions, self.allowed)
        start, end = _forbid(self.start, self.allowed_start), _forbid(self.end, self.allowed_end)
        assert transitions is not None
        return LinearChainCRF(emissions, transitions, lengths, start=start, end=end)

    def extra_repr(self) -> str:
        return f"{self.num_states}, start={self.start is not None}, end={self.end is not None}"


def _forbid(scores: Tensor | None, allowed: Tensor | None) -> Tensor | None:
    """Scores with -inf where not allowed; without scores, the mask alone."""
    if allowed is None:
        return scores
    if scores is None:
        scores = torch.zeros(allowed.shape, device=allowed.device)
    return torch.where(allowed, scores, -torch.inf)
