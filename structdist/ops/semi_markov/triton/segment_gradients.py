"""Where sweeps back put the gradients of segments, and how those that share a score are summed."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.edges import EdgeForm
from structdist.ops.semi_markov.problem import SemiMarkovChain
from structdist.ops.semi_markov.triton.state import table_strides


class SegmentGradients(NamedTuple):
    """Zeros that a kernel adds to: a table for each chain, or for each of its first steps.

    Each table is written by one program alone: nothing is added up by atomics.
    """

    tables: Tensor  # [N, l, K] with l = min(L, T), or [N, T, L, K]
    like: Tensor | None  # segments in the form that is wanted, if it is

    @classmethod
    def of(cls, chain: SemiMarkovChain, like: Tensor | None) -> SegmentGradients:
        """Memory for gradients of a chain's segments."""
        if like is None:
            return cls(chain.segments, None)  # which no kernel looks at
        num_chains, num_steps, num_labels = chain.emissions.shape
        shape: tuple[int, ...] = num_chains, min(chain.longest, num_steps), num_labels
        if EdgeForm.of(like) is EdgeForm.PER_STEP:
            shape = num_chains, num_steps, chain.longest, num_labels
        return cls(chain.emissions.new_zeros(shape), like)

    @property
    def arguments(self) -> tuple[Tensor, int, int]:
        """As kernels want them: tables, and how far those of two chains, and steps, are apart."""
        return self.tables, *table_strides(self.tables)

    def summed(self) -> Tensor | None:
        """The gradient, once a kernel has run."""
        if self.like is None or EdgeForm.of(self.like) is EdgeForm.PER_STEP:
            return None if self.like is None else self.tables
        found = self.tables.sum(0) if EdgeForm.of(self.like) is EdgeForm.SHARED else self.tables
        beyond = self.like.shape[-2] - found.shape[-2]
        return torch.nn.functional.pad(found, (0, 0, 0, beyond)) if beyond else found
