"""Structured distributions for PyTorch, with exact inference and samples that carry gradients."""

from structdist.base import PathsWithLogProb, RelaxedWithPaths, StructuredDistribution, TopK
from structdist.lengths import lengths_from_mask
from structdist.linear_chain import LinearChainCRF
from structdist.nn import LinearChain, SemiMarkov
from structdist.relaxed import Relaxed, StraightThrough
from structdist.segment_events import RelaxedLabels, SegmentLabels
from structdist.semi_markov import SemiMarkovCRF

__all__ = [
    "LinearChain",
    "LinearChainCRF",
    "PathsWithLogProb",
    "Relaxed",
    "RelaxedLabels",
    "RelaxedWithPaths",
    "SegmentLabels",
    "SemiMarkov",
    "SemiMarkovCRF",
    "StraightThrough",
    "StructuredDistribution",
    "TopK",
    "__version__",
    "lengths_from_mask",
]
__version__ = "0.2.0"
