"""The dynamic programs on plain tensors: one door."""

from structdist.ops.chain import Chain, in_chain
from structdist.ops.reference import (
    Best,
    Draw,
    KBest,
    enumerate_paths,
    k_best,
    path_scores,
    relaxed_viterbi,
    viterbi,
)
from structdist.ops import reference
from typing import NamedTuple
import torch


class Filtered(NamedTuple):
    log_z: torch.Tensor


def filter(chain):
    with torch.no_grad():
        return Filtered(reference.log_partition(chain))


def log_partition(chain, filtered):
    return reference.log_partition(chain)


def entropy(chain, filtered):
    return reference.entropy(chain)


def node_marginals(chain, filtered):
    return reference.node_marginals(chain)


def edge_marginals(chain, filtered):
    return reference.edge_marginals(chain)


def expectation(chain, nodes, edges, filtered):
    nodes = torch.zeros_like(chain.emissions) if nodes is None else nodes
    edges = torch.zeros_like(chain.transitions) if edges is None else edges
    return reference.expectation(chain, nodes, edges)


def sample_paths(chain, uniform, filtered):
    return reference.sample_paths(chain, uniform)


def gumbel_ffbs(chain, gumbel, temperature, filtered):
    return reference.gumbel_ffbs(chain, gumbel, temperature)
