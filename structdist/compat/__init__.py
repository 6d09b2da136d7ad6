"""Drop-ins for distributions of torch-struct, and conversions between them and ours."""

try:
    import torch_struct  # noqa: F401
except ImportError as error:
    raise ImportError(
        'structdist.compat needs torch-struct: pip install "structdist[torch-struct]"'
    ) from error

from structdist.compat.linear_chain import (
    TorchStructLinearChainCRF,
    from_torch_struct,
    to_torch_struct,
)
from structdist.compat.segment_conversions import (
    semi_markov_from_torch_struct,
    semi_markov_to_torch_struct,
)
from structdist.compat.semi_markov import TorchStructSemiMarkovCRF

__all__ = [
    "TorchStructLinearChainCRF",
    "TorchStructSemiMarkovCRF",
    "from_torch_struct",
    "semi_markov_from_torch_struct",
    "semi_markov_to_torch_struct",
    "to_torch_struct",
]
