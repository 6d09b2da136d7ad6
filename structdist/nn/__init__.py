"""Layers that learn the scores of a structure, and turn emissions into a distribution."""

from structdist.nn.linear_chain import LinearChain
from structdist.nn.semi_markov import SemiMarkov

__all__ = ["LinearChain", "SemiMarkov"]
