"""The compiled kernels as operators, which `torch.compile` and `torch.export` keep in graphs.

Each has the functions of a backend behind one signature: the tensors of the chain and of its
forward state, further tensors, and which gradients are wanted. The eager path does not go
through here: an operator costs more than a small kernel. Temperatures are always tensors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from structdist.ops import native
from structdist.ops.chain import Chain
from structdist.ops.finite import rounded
from structdist.ops.native import Filtered, library
from structdist.ops.problem import Best, Draw, Expected, Grads, Needs, Temperature, Values
from structdist.ops.reference import k_best
from structdist.ops.scoring import path_scores, path_scores_adjoint

__all__ = [
    "NAME",
    "entropy",
    "entropy_adjoint",
    "expectation",
    "expectation_adjoint",
    "filter",
    "gumbel_ffbs",
    "gumbel_ffbs_adjoint",
    "gumbel_noise",
    "k_best",
    "log_partition",
    "log_partition_adjoint",
    "marginals",
    "path_scores",
    "path_scores_adjoint",
    "relaxed_viterbi",
    "relaxed_viterbi_adjoint",
    "sample_paths",
    "unsupported",
    "viterbi",
]

NAME = "native"  # whose operators these are
SIGNATURE = "(Tensor[] chain, Tensor?[] state, Tensor?[] others, bool[] needs) -> Tensor[]"

Tensors = Sequence[Any]  # tensors, or None
Run = Callable[[Chain, Tensors, Tensors, Needs], Sequence[Tensor | None]]

_library = torch.library.Library("structdist", "DEF")


def _operator(name: str, run: Run, outputs: Run) -> Callable[..., list[Tensor]]:
    """Define an operator by what it runs, and by empty tensors like its outputs (for tracing).

    The name of one that knows the forward state ends in the version of its layout: graphs outlive
    the library, in caches and files.
    """
    if name != "chain_viterbi":
        name = f"{name}_{library.VERSION}"

    def given(function: Run) -> Callable[..., list[Tensor]]:
        def call(
            chain: list[Tensor], state: Tensors, others: Tensors, needs: Needs
        ) -> list[Tensor]:
            others = [None if x is None else x.contiguous() for x in others]
            found = function(Chain(*chain), state, others, needs)
            return [x for x in found if x is not None]

        return call

    _library.define(name + SIGNATURE, tags=(torch.Tag.flexible_layout,))
    _library.impl(name, given(run), "CompositeExplicitAutograd")
    torch.library.register_fake(f"structdist::{name}", given(outputs), lib=_library)
    operator: Callable[..., list[Tensor]] = getattr(torch.ops.structdist, name)
    return operator


def _wanted(found: list[Tensor], needs: Needs) -> Grads:
    """Gradients by input, None where none was wanted (the emissions' is always found)."""
    left = iter(found)
    return [next(left) if place == 0 or need else None for place, need in enumerate(needs)]


def _like_inputs(chain: Chain, others: Tensors, needs: Needs) -> list[Tensor | None]:
    inputs = (*chain.scores, *others)
    return [
        torch.empty_like(x) if x is not None and (need or place == 0) else None
        for place, (x, need) in enumerate(zip(inputs, needs, strict=True))
    ]


def unsupported(chain: Chain) -> str | None:
    """What the eager backend supports."""
    return native.unsupported(chain)


# The forward pass ----------------------------------------------------------------------------


def _run_filter(
    chain: Chain, state: Tensors, others: Tensors, needs: Needs
) -> Sequence[Tensor | None]:
    (memory, log_alpha), _ = native.filter(chain)
    if log_alpha is None:  # a graph wants to know the shapes of all tensors
        log_alpha = torch.empty(chain.emissions.shape, dtype=torch.float64)
    return memory, log_alpha


def _empty_state(chain: Chain, state: Tensors, others: Tensors, needs: Needs) -> Sequence[Tensor]:
    emissions = chain.emissions
    return (
        emissions.new_empty((native._bytes_of_state(emissions),), dtype=torch.uint8),
        emissions.new_empty(emissions.shape, dtype=torch.float64),
    )


_filter = _operator("chain_filter", _run_filter, _empty_state)


def filter(chain: Chain) -> tuple[Filtered, None]:
    return Filtered(*_filter(list(chain), [], [], [])), None


_log_partition = _operator(
    "chain_log_partition",
    lambda chain, state, others, needs: [
        native.log_partition(chain, Filtered(*state), torch.float64)
    ],
    lambda chain, state, others, needs: [
        chain.emissions.new_empty((chain.emissions.shape[0],), dtype=torch.float64)
    ],
)


def log_partition(chain: Chain, filtered: Filtered, dtype: torch.dtype) -> Tensor:
    return rounded(_log_partition(list(chain), list(filtered), [], [])[0], dtype)


_log_partition_adjoint = _operator(
    "chain_log_partition_adjoint",
    lambda chain, state, others, needs: native.log_partition_adjoint(
        chain, Filtered(*state), others[0], needs
    ),
    lambda chain, state, others, needs: _like_inputs(chain, (), needs),
)


def log_partition_adjoint(chain: Chain, filtered: Filtered, grad: Tensor, needs: Needs) -> Grads:
    needs = (True, needs[1])
    return _wanted(_log_partition_adjoint(list(chain), list(filtered), [grad], needs), needs)


def _empty_edges(chain: Chain, state: Tensors, others: Tensors, needs: Needs) -> Sequence[Tensor]:
    num_chains, num_steps, num_states = chain.emissions.shape
    return [chain.emissions.new_empty((num_chains, num_steps - 1, num_states, num_states))]


_node_marginals = _operator(
    "chain_marginals",
    lambda chain, state, others, needs: [native.marginals(chain, Filtered(*state), 0)],
    lambda chain, state, others, needs: [torch.empty_like(chain.emissions)],
)
_edge_marginals = _operator(
    "chain_edge_marginals",
    lambda chain, state, others, needs: [native.marginals(chain, Filtered(*state), 1)],
    _empty_edges,
)


def marginals(chain: Chain, filtered: Filtered, part: int) -> Tensor:
    operator = _edge_marginals if part else _node_marginals
    return operator(list(chain), list(filtered), [], [])[0]


# Expectations and entropies ------------------------------------------------------------------


def _empty_expected(
    chain: Chain, state: Tensors, others: Tensors, needs: Needs
) -> Sequence[Tensor]:
    emissions = chain.emissions
    shape = native._shape_of_means(emissions, in_log_space=True)  # see `_run_filter`
    return [
        emissions.new_empty((emissions.shape[0],), dtype=torch.float64),
        emissions.new_empty(shape, dtype=torch.uint8),
    ]


_entropy = _operator(
    "chain_entropy",
    lambda chain, state, others, needs: native.entropy(chain, Filtered(*state)),
    _empty_expected,
)
_entropy_adjoint = _operator(
    "chain_entropy_adjoint",
    lambda chain, state, others, needs: native.entropy_adjoint(
        chain, Filtered(*state), Expected(*others[:2]), others[2], needs
    ),
    lambda chain, state, others, needs: _like_inputs(chain, (), needs),
)
_expectation = _operator(
    "chain_expectation",
    lambda chain, state, others, needs: native.expectation(chain, Filtered(*state), others),
    _empty_expected,
)
_expectation_adjoint = _operator(
    "chain_expectation_adjoint",
    lambda chain, state, others, needs: native.expectation_adjoint(
        chain, Filtered(*state), others[:2], Expected(*others[2:4]), others[4], needs
    ),
    lambda chain, state, others, needs: _like_inputs(chain, others[:2], needs),
)


def entropy(chain: Chain, filtered: Filtered) -> Expected:
    return Expected(*_entropy(list(chain), list(filtered), [], []))


def entropy_adjoint(
    chain: Chain, filtered: Filtered, expected: Expected, grad: Tensor, needs: Needs
) -> Grads:
    needs = (True, needs[1])
    found = _entropy_adjoint(list(chain), list(filtered), [*expected, grad], needs)
    return _wanted(found, needs)


def expectation(chain: Chain, filtered: Filtered, values: Values) -> Expected:
    return Expected(*_expectation(list(chain), list(filtered), list(values), []))


def expectation_adjoint(
    chain: Chain,
    filtered: Filtered,
    values: Values,
    expected: Expected,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    needs = (True, *needs[1:])
    others = [*values, *expected, grad]
    return _wanted(_expectation_adjoint(list(chain), list(filtered), others, needs), needs)


# Draws and best paths ------------------------------------------------------------------------


def _empty_draw(chain: Chain, state: Tensors, others: Tensors, needs: Needs) -> Sequence[Tensor]:
    noise = others[0]
    soft = chain.emissions[None] if noise is None else noise
    soft = chain.emissions.new_empty(soft.shape)
    return [soft, soft.new_empty(soft.shape[:3], dtype=torch.long)]


_sample_paths = _operator(
    "chain_sample_paths",
    lambda chain, state, others, needs: [native.sample_paths(chain, Filtered(*state), others[0])],
    lambda chain, state, others, needs: [torch.empty_like(others[0], dtype=torch.long)],
)
_gumbel_ffbs = _operator(
    "chain_gumbel_ffbs",
    lambda chain, state, others, needs: native.gumbel_ffbs(chain, Filtered(*state), *others),
    _empty_draw,
)
_gumbel_ffbs_adjoint = _operator(
    "chain_gumbel_ffbs_adjoint",
    lambda chain, state, others, needs: native.gumbel_ffbs_adjoint(
        chain, Filtered(*state), Draw(*others[1:3]), others[0], others[3], needs
    ),
    lambda chain, state, others, needs: _like_inputs(chain, others[:1], needs),
)


def sample_paths(chain: Chain, filtered: Filtered, uniform: Tensor) -> Tensor:
    return _sample_paths(list(chain), list(filtered), [uniform], [])[0]


def _as_tensor(temperature: Temperature, like: Tensor) -> Tensor:
    if isinstance(temperature, Tensor):
        return temperature
    return like.new_full((), temperature, dtype=torch.float64)


def gumbel_ffbs(chain: Chain, filtered: Filtered, gumbel: Tensor, temperature: Temperature) -> Draw:
    others = [gumbel, _as_tensor(temperature, gumbel)]
    return Draw(*_gumbel_ffbs(list(chain), list(filtered), others, []))


def gumbel_ffbs_adjoint(
    chain: Chain,
    filtered: Filtered,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    needs = (True, *needs[1:])
    others = [_as_tensor(temperature, grad), *draw, grad]
    return _wanted(_gumbel_ffbs_adjoint(list(chain), list(filtered), others, needs), needs)


def _empty_best(chain: Chain, state: Tensors, others: Tensors, needs: Needs) -> Sequence[Tensor]:
    emissions = chain.emissions
    return [
        emissions.new_empty(emissions.shape[:2], dtype=torch.long),
        emissions.new_empty((emissions.shape[0],), dtype=torch.float64),
    ]


def _run_relaxed_viterbi(
    chain: Chain, state: Tensors, others: Tensors, needs: Needs
) -> Sequence[Tensor]:
    draw, came_from = native.relaxed_viterbi(chain, others[1])
    return [*draw, came_from]


_viterbi = _operator(
    "chain_viterbi", lambda chain, state, others, needs: native.viterbi(chain), _empty_best
)
_relaxed_viterbi = _operator(
    "chain_relaxed_viterbi",
    _run_relaxed_viterbi,
    lambda chain, state, others, needs: [
        *_empty_draw(chain, state, others, needs),
        torch.empty_like(chain.emissions, dtype=torch.int32),
    ],
)
_relaxed_viterbi_adjoint = _operator(
    "chain_relaxed_viterbi_adjoint",
    lambda chain, state, others, needs: native.relaxed_viterbi_adjoint(
        chain, others[1], Draw(*others[2:4]), others[0], others[4], needs
    ),
    lambda chain, state, others, needs: _like_inputs(chain, others[:1], needs),
)


def viterbi(chain: Chain) -> Best:
    return Best(*_viterbi(list(chain), [], [], []))


def relaxed_viterbi(chain: Chain, temperature: Temperature) -> tuple[Draw, Tensor]:
    others = [None, _as_tensor(temperature, chain.emissions)]
    soft, path, came_from = _relaxed_viterbi(list(chain), [], others, [])
    return Draw(soft, path), came_from


def relaxed_viterbi_adjoint(
    chain: Chain,
    came_from: Tensor,
    draw: Draw,
    temperature: Temperature,
    grad: Tensor,
    needs: Needs,
) -> Grads:
    needs = (True, *needs[1:])
    others = [_as_tensor(temperature, grad), came_from, *draw, grad]
    return _wanted(_relaxed_viterbi_adjoint(list(chain), [], others, needs), needs)


# Noise ---------------------------------------------------------------------------------------

_library.define("gumbel_noise(Tensor seed, SymInt[] shape, ScalarType dtype) -> Tensor")
_library.impl(
    "gumbel_noise",
    lambda seed, shape, dtype: library.gumbel_noise_of(seed.item(), shape, dtype),
    "CompositeExplicitAutograd",
)


@torch.library.register_fake("structdist::gumbel_noise", lib=_library)
def _empty_noise(seed: Tensor, shape: list[int], dtype: torch.dtype) -> Tensor:
    return seed.new_empty(shape, dtype=dtype)


def gumbel_noise(seed: Tensor, shape: list[int], dtype: torch.dtype) -> Tensor:
    """Standard Gumbel noise that a seed stands for."""
    noise: Tensor = torch.ops.structdist.gumbel_noise(seed, shape, dtype)
    return noise
