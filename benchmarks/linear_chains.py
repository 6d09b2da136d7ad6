"""Linear chains: their sizes, their contenders, and right answers by recurrence or enumeration."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarks.contenders import CONTENDERS
from benchmarks.operations import OPERATIONS
from benchmarks.ours import REFERENCE, gumbel_like, whole_chains
from benchmarks.problem import Inputs, Size
from benchmarks.structure import DRAWS, Scaling, Structure
from structdist.ops import reference


class LinearChains(Structure):
    name = "linear-chain"
    registered_name = "linear chain"
    form = "BxTxK"
    axes = ("batch", "length", "states")
    size_type = Size
    usual_sizes = "100x38x20,100x38x50,16x256x64,8x512x128"
    quick_sizes = "16x16x8"
    usual_grid = {"batch": (100,), "length": (38,), "states": (20, 50)}
    scaling = Scaling(
        (16, 64, 16),
        {
            "batch": (1, 4, 16, 64, 256),
            "length": (16, 32, 64, 128, 256, 512, 1024),
            "states": (4, 8, 16, 32, 64, 128),
        },
    )
    quick_scaling = Scaling(
        (4, 16, 8), {"batch": (1, 4, 16), "length": (8, 16, 32), "states": (4, 8, 16)}
    )
    operations = OPERATIONS
    contenders = CONTENDERS
    reference = REFERENCE
    path_size = Size(DRAWS, length=4, states=3)  # 81 paths
    pair_size = Size(DRAWS, length=3, states=2)  # 8 paths, 64 pairs
    gradient_size = Size(4, length=5, states=3)

    def entries(self, size: Size) -> int:
        """Of edges [T, K, K]."""
        return size.length * size.states**2

    def path_scores(self, inputs: Inputs, paths: Tensor) -> Tensor:
        return reference.path_scores(whole_chains(*inputs.scores), paths.unsqueeze(0))[0]

    def best_scores(self, inputs: Inputs) -> Tensor:
        return reference.viterbi(whole_chains(*inputs.scores)).score

    def outcomes(self, sample: Tensor, size: Size) -> Tensor:
        """The place of each path in `reference.enumerate_paths`."""
        paths = sample.argmax(-1) if sample.is_floating_point() else sample
        digits = torch.arange(size.length - 1, -1, -1, device=paths.device)
        return (paths * size.states**digits).sum(-1)

    def probabilities(self, inputs: Inputs) -> Tensor:
        one = inputs.items(0, 1).to(torch.float64)
        _, length, states = one.emissions.shape
        paths = reference.enumerate_paths(length, states, one.emissions.device)
        chain = whole_chains(*one.scores)
        return reference.path_scores(chain, paths.unsqueeze(1))[:, 0].softmax(0)

    def is_hard(self, sample: Tensor) -> bool:
        return bool(((sample == 0) | (sample == 1)).all() and (sample.sum(-1) == 1).all())

    def simulate_perturb_and_map(self, inputs: Inputs) -> Tensor:
        """Noise on the first node and on every edge, of its own for each item."""
        emissions, transitions = inputs.emissions.double(), inputs.transitions.double()
        batch, length, states = emissions.shape
        nodes = emissions.clone()
        nodes[:, 0] += gumbel_like((batch, states), nodes)
        edges = transitions + gumbel_like((batch, length - 1, states, states), nodes)
        paths = reference.enumerate_paths(length, states, emissions.device)
        scores = nodes[:, 0, paths[:, 0]]  # [B, K^T]
        for t in range(1, length):
            moves = edges[:, t - 1, paths[:, t - 1], paths[:, t]]
            scores = scores + nodes[:, t, paths[:, t]] + moves
        return torch.bincount(scores.argmax(1), minlength=len(paths))
