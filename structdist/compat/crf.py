"""A drop-in for the layer `torchcrf.CRF` of pytorch-crf."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from structdist import ops
from structdist.lengths import lengths_from_mask
from structdist.linear_chain import LinearChainCRF
from structdist.tagging.decoding import decode

REDUCTIONS = ("none", "sum", "mean", "token_mean")


class CRF(nn.Module):
    """`torchcrf.CRF` by the kernels of this package: the same arguments, answers and errors.

    Args:
        num_tags: the number of tags `K`.
        batch_first: whether tensors are `[B, T, ...]`; by default they are `[T, B, ...]`.

    The parameters are `start_transitions` `[K]`, `end_transitions` `[K]` and `transitions`
    `[K, K]`, from a tag to the next. They have pytorch-crf's names, so that a `state_dict` of
    either layer loads into the other.

    Example:
        >>> import torch
        >>> from structdist.compat import CRF
        >>> crf = CRF(num_tags=3, batch_first=True)
        >>> emissions, tags = torch.zeros(2, 4, 3), torch.zeros(2, 4, dtype=torch.long)
        >>> mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]], dtype=torch.bool)
        >>> loss = -crf(emissions, tags, mask, reduction="mean")
        >>> [len(path) for path in crf.decode(emissions, mask)]
        [4, 2]

    Different by intent:

    - What stands where the mask is off never matters: tags of -100 are as good as any, and so is
      NaN among the emissions.
    - A mask with holes is an error, and so are tags out of range where the mask is on.
    - Scores of -inf forbid, and every gradient stays finite.
    - Half precision is computed, and answered, in float32.
    - `distribution` gives all that a `LinearChainCRF` has: marginals, the k best, samples, ...
    - `torch.jit.script` is refused. `torch.export` and `torch.compile` take the layer, with
      validation off (`torch.distributions.Distribution.set_default_validate_args(False)`). Best
      tags in a tensor `[B, T]`, for a graph of them, are `distribution(emissions, mask).argmax`.
    """

    def __init__(self, num_tags: int, batch_first: bool = False) -> None:
        if num_tags <= 0:
            raise ValueError(f"invalid number of tags: {num_tags}")
        super().__init__()
        self.num_tags, self.batch_first = num_tags, batch_first
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters anew, uniformly between -0.1 and 0.1."""
        for parameter in (self.start_transitions, self.end_transitions, self.transitions):
            nn.init.uniform_(parameter, -0.1, 0.1)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(num_tags={self.num_tags})"

    def forward(
        self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: str = "sum"
    ) -> Tensor:
        """The log likelihood of tags: `[B]` if the reduction is "none", else a scalar.

        Args:
            emissions: `[T, B, K]`, or `[B, T, K]` if `batch_first`.
            tags: integers `[T, B]`, or `[B, T]` if `batch_first`.
            mask: the same shape, bool or of zeros and ones: which tokens there are (default all).
            reduction: "none", "sum" or "mean" over the batch, or "token_mean", the sum over the
                batch by the number of tokens.
        """
        self._require_shapes(emissions, tags, mask)
        if reduction not in REDUCTIONS:
            raise ValueError(f"invalid reduction: {reduction}")
        dist = self.distribution(emissions, mask)
        log_likelihood = dist.log_prob(tags if self.batch_first else tags.transpose(0, 1))
        if reduction == "none":
            return log_likelihood
        if reduction == "mean":
            return log_likelihood.mean()
        total = log_likelihood.sum()
        return total / dist.lengths.sum() if reduction == "token_mean" else total

    if TYPE_CHECKING:  # `nn.Module` has it return Any.

        def __call__(
            self,
            emissions: Tensor,
            tags: Tensor,
            mask: Tensor | None = None,
            reduction: str = "sum",
        ) -> Tensor: ...

    def decode(self, emissions: Tensor, mask: Tensor | None = None) -> list[list[int]]:
        """The best tags of each sentence, in a list as long as the sentence."""
        return decode(self.distribution(emissions, mask))

    def distribution(self, emissions: Tensor, mask: Tensor | None = None) -> LinearChainCRF:
        """The distribution over tags, batch first; pytorch-crf has no such method."""
        self._require_shapes(emissions, None, mask)
        if not self.batch_first:
            emissions = emissions.transpose(0, 1)
            mask = None if mask is None else mask.transpose(0, 1)
        return LinearChainCRF(
            emissions,
            self.transitions,
            None if mask is None else lengths_from_mask(mask),
            start=self.start_transitions,
            end=self.end_transitions,
        )

    def _require_shapes(self, emissions: Tensor, tags: Tensor | None, mask: Tensor | None) -> None:
        """Raise the errors of pytorch-crf, in its words."""
        if emissions.dim() != 3:
            raise ValueError(f"emissions must have dimension of 3, got {emissions.dim()}")
        if emissions.shape[2] != self.num_tags:
            raise ValueError(
                f"expected last dimension of emissions is {self.num_tags}, got {emissions.shape[2]}"
            )
        for name, x in (("tags", tags), ("mask", mask)):
            if x is not None and x.shape != emissions.shape[:2]:
                raise ValueError(
                    f"the first two dimensions of emissions and {name} must match, "
                    f"got {tuple(emissions.shape[:2])} and {tuple(x.shape)}"
                )
        if mask is not None and not (mask.is_meta or ops.numbers_are_hidden()):
            first = mask[:, 0] if self.batch_first else mask[0]
            if not first.all():
                raise ValueError("mask of the first timestep must all be on")

    def __prepare_scriptable__(self) -> nn.Module:
        """What `torch.jit.script` asks first."""
        raise NotImplementedError(
            "structdist.compat.CRF cannot be scripted: take torch.export.export (with "
            "torch.distributions.Distribution.set_default_validate_args(False)), which keeps the "
            "fast kernels, or load the state_dict into torchcrf.CRF and script that"
        )
