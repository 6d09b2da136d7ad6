"""Structured distributions for PyTorch, with exact inference and samples that carry gradients."""

from structdist.linear_chain import LinearChainCRF, TopK
from structdist.nn import LinearChain

__all__ = ["LinearChain", "LinearChainCRF", "TopK", "__version__"]
__version__ = "0.1.0"
