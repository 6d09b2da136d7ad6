"""Drawing segments from last to first: exact draws, and Gumbel-FFBS."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from structdist.ops.chain import full_precision, in_chain
from structdist.ops.edges import EdgeForm, sum_of_outer_products
from structdist.ops.problem import Draw, Grads, Needs, Temperature
from structdist.ops.semi_markov.backtrack import relaxed_backtrack, sampling_backtrack
from structdist.ops.semi_markov.problem import SemiMarkovChain, without_padding
from structdist.ops.semi_markov.rescaled.filtering import filter_adjoint
from structdist.ops.semi_markov.rescaled.state import Filtered, prefixes_of


def sample_paths(chain: SemiMarkovChain, filtered: Filtered, uniform: Tensor) -> Tensor:
    """Exact draws [S, N, T] from uniform float64 noise [S, N, T]. O(S N T (K + L))."""
    return sampling_backtrack(prefixes_of(without_padding(chain), filtered), uniform)


def gumbel_ffbs(
    chain: SemiMarkovChain, filtered: Filtered, gumbel: Tensor, temperature: Temperature
) -> Draw:
    """Exact draws from Gumbel noise [S, N, T, K + L], relaxed. O(S N T (K + L))."""
    prefixes = prefixes_of(without_padding(chain), filtered)
    draw = relaxed_backtrack(prefixes, gumbel, temperature)
    return Draw(draw.soft.to(gumbel.dtype), draw.path)


def gumbel_ffbs_adjoint(
    chain: SemiMarkovChain,
    filtered: Filtered,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    """Gradients from that of the relaxed draws [S, N, T, K + L]. One sweep for all samples."""
    pulled = through_softmax(chain, draw, temperature, grad)
    swept = filter_adjoint(chain, filtered, pulled.ends, needs, pulled.segments_at)
    transitions = swept.transitions
    if transitions is not None:
        transitions = transitions + pulled.transitions(EdgeForm.of(chain.transitions))
    of_temperature = grad_of_temperature(draw, temperature, grad, needs, chain.longest)
    return swept.emissions, transitions, swept.segments, of_temperature


class Pulled(NamedTuple):
    """Gradients of the logits of relaxed choices, by what they were made of."""

    labels: Tensor  # [S, N, T, K]
    sizes: Tensor  # [S, N, T, L], of the label that was chosen
    chosen: Tensor  # [S, N, T, K]: that label, one-hot within the lengths

    @property
    def ends(self) -> Tensor:
        """[N, T, K]"""
        return self.labels.sum(0)

    def transitions(self, form: EdgeForm) -> Tensor:
        """Those of the moves that were made."""
        with full_precision(self.labels.device):
            return sum_of_outer_products(self.labels[:, :, :-1], self.chosen[:, :, 1:], form)

    def segments_at(self, t: int) -> Tensor:
        """[N, l, K]: those of segments with last step t, the longest first."""
        share = self.sizes[:, :, t, : t + 1].flip(-1)  # [S, N, l]
        with full_precision(share.device):
            return torch.einsum("snl,snk->nlk", share, self.chosen[:, :, t])


def through_softmax(
    chain: SemiMarkovChain, draw: Draw, temperature: Temperature, grad: Tensor
) -> Pulled:
    """From the gradient of relaxed choices to those of prefixes, moves and segments."""
    num_labels, longest = chain.emissions.shape[-1], chain.longest
    labels, sizes = (
        _softmax_adjoint(soft, g, temperature)
        for soft, g in zip(_choices(draw.soft, longest), _choices(grad, longest), strict=True)
    )
    label = torch.where(in_chain(chain.lengths, labels.shape[2]), draw.path % num_labels, -1)
    chosen = label.unsqueeze(-1) == torch.arange(num_labels, device=label.device)
    return Pulled(labels, sizes, chosen.to(labels.dtype))


def _choices(x: Tensor, longest: int) -> tuple[Tensor, Tensor]:
    """The labels and the lengths of relaxed choices [S, N, T, K + L]."""
    return x[..., :-longest], x[..., -longest:]


def _softmax_adjoint(soft: Tensor, grad: Tensor, temperature: Temperature) -> Tensor:
    sharpness = 1 / _per_draw(temperature)
    pulled = soft * (grad - (grad * soft).sum(-1, keepdim=True)) * sharpness
    return pulled.to(soft.dtype)


def _per_draw(temperature: Temperature) -> Temperature:
    """A temperature that divides [S, N, T, K]."""
    return temperature[..., None, None] if isinstance(temperature, Tensor) else temperature


def grad_of_temperature(
    draw: Draw, temperature: Temperature, grad: Tensor, needs: Needs, longest: int
) -> Tensor | None:
    """The gradient of temperatures, from that of the relaxed draws, if it is wanted.

    With logits l and softmax s of l / temperature, s * (l - mean of l) / temperature^2 goes to the
    temperature, with a minus; and l / temperature is log s but for a constant, which drops out.
    """
    if not needs[-1] or not isinstance(temperature, Tensor):
        return None
    total = torch.zeros_like(temperature)
    pairs = zip(_choices(draw.soft, longest), _choices(grad, longest), strict=True)
    for soft, g in pairs:
        soft = soft.double()
        pulled = _softmax_adjoint(soft, g.double(), temperature)
        by_draw = -torch.where(soft > 0, pulled * soft.log(), 0.0).sum((-1, -2))
        total = total + by_draw.sum_to_size(temperature.shape)
    return total
