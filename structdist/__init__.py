"""Structured distributions for PyTorch, with exact inference and samples that carry gradients."""

from structdist.events import TopK
from structdist.linear_chain import LinearChainCRF
from structdist.nn import LinearChain

__all__ = ["LinearChain", "LinearChainCRF", "TopK", "__version__"]
__version__ = "0.1.0"
