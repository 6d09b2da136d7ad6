"""Drop-ins for other libraries: pytorch-crf's layer, and torch-struct's distributions.

`CRF` needs torch alone. What belongs to torch-struct is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from structdist.compat.crf import CRF

if TYPE_CHECKING:
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
    "CRF",
    "TorchStructLinearChainCRF",
    "TorchStructSemiMarkovCRF",
    "from_torch_struct",
    "semi_markov_from_torch_struct",
    "semi_markov_to_torch_struct",
    "to_torch_struct",
]

_OF_TORCH_STRUCT = {
    "TorchStructLinearChainCRF": "linear_chain",
    "from_torch_struct": "linear_chain",
    "to_torch_struct": "linear_chain",
    "TorchStructSemiMarkovCRF": "semi_markov",
    "semi_markov_from_torch_struct": "segment_conversions",
    "semi_markov_to_torch_struct": "segment_conversions",
}


def __getattr__(name: str) -> Any:
    if name not in _OF_TORCH_STRUCT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        import_module("torch_struct")
    except ImportError as error:
        raise ImportError(
            f'structdist.compat.{name} needs torch-struct: pip install "structdist[torch-struct]"'
        ) from error
    return getattr(import_module(f"{__name__}.{_OF_TORCH_STRUCT[name]}"), name)
