"""Gradients of answers by the scores of their examples."""

from __future__ import annotations

import torch
from torch import Tensor

from tests.structures.structure import BaseExample, normal


def weighted(answer: Tensor) -> Tensor:
    """A scalar with a different weight for each entry."""
    return (answer * normal(*answer.shape, seed=17)).sum()


def gradients(
    answer: Tensor, *examples: BaseExample, create_graph: bool = False
) -> tuple[Tensor, ...]:
    """With respect to every score of the examples; 0 where the answer does not depend on it."""
    scores = [x for example in examples for x in example.scores.values()]
    if not answer.requires_grad:
        return tuple(torch.zeros_like(x) for x in scores)
    options = {"create_graph": create_graph, "retain_graph": True, "materialize_grads": True}
    return torch.autograd.grad(weighted(answer), scores, **options)
