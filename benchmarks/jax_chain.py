"""log Z in JAX: rescaled products in a `lax.scan`, compiled once for each size.

JAX is optional, and imported when it is first needed: XLA reads how many threads it may use when it
starts. It works on the CPU here.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from benchmarks.foreign import ForeignWork
from benchmarks.problem import Inputs

if TYPE_CHECKING:
    import jax

SINGLE_THREADED = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"


class Arrays(NamedTuple):
    emissions: jax.Array  # [B, T, K]
    transitions: jax.Array  # [K, K]
    weights: jax.Array  # [B], of a chain's log Z in the sum to differentiate


class Functions(NamedTuple):
    """Compiled, for `Arrays` that are spread out as arguments."""

    log_z: Callable[..., jax.Array]
    value_and_gradients: Callable[..., tuple[jax.Array, tuple[jax.Array, jax.Array]]]


def thread_settings(threads: int, flags: str) -> dict[str, str]:
    """Environment that lets XLA use so many threads; `flags` are those the user has set."""
    settings = {"PJRT_NPROC": str(threads)}
    if threads == 1:
        settings["XLA_FLAGS"] = f"{flags} {SINGLE_THREADED}".strip()
    return settings


@lru_cache(1)
def _jax() -> Any:
    """The module, imported to use as many threads as torch does at this moment."""
    os.environ.update(thread_settings(torch.get_num_threads(), os.environ.get("XLA_FLAGS", "")))
    import jax

    return jax


def log_z(emissions: jax.Array, transitions: jax.Array, weights: jax.Array) -> jax.Array:
    """[B]; `weights` are of no use here.

    The factors that keep numbers in range cancel, so no gradient is asked of them.
    """
    jax = _jax()
    jnp, constant = jax.numpy, jax.lax.stop_gradient
    largest = constant(transitions.max(0))
    scores = emissions.at[:, 1:].add(largest)
    highest = constant(scores.max(-1, keepdims=True))
    factors = jnp.swapaxes(jnp.exp(scores - highest), 0, 1)  # [T, B, K]
    moves = jnp.exp(transitions - largest)

    def step(carry: tuple[jax.Array, jax.Array], factor: jax.Array) -> tuple[Any, None]:
        mass, log_scale = carry
        mass = (mass @ moves) * factor
        scale = constant(mass.sum(-1, keepdims=True))
        return (mass / scale, log_scale + jnp.log(scale[:, 0])), None

    (mass, log_scale), _ = jax.lax.scan(step, (factors[0], highest.sum((1, 2))), factors[1:])
    return log_scale + jnp.log(mass.sum(-1))


def _weighted_log_z(emissions: jax.Array, transitions: jax.Array, weights: jax.Array) -> jax.Array:
    return (log_z(emissions, transitions, weights) * weights).sum()


@lru_cache(1)
def _functions() -> Functions:
    jax = _jax()
    return Functions(jax.jit(log_z), jax.jit(jax.value_and_grad(_weighted_log_z, (0, 1))))


def _arrays(inputs: Inputs) -> Arrays:
    jax = _jax()
    tensors = inputs.emissions, inputs.transitions, inputs.chain_weights
    cpu = jax.devices("cpu")[0]
    arrays = (jax.device_put(x.detach().numpy(), cpu) for x in tensors)
    return jax.block_until_ready(Arrays(*arrays))


def _forward(arrays: Arrays) -> jax.Array:
    return _functions().log_z(*arrays).block_until_ready()


def _forward_backward(arrays: Arrays) -> tuple[jax.Array, ...]:
    return _jax().block_until_ready(_functions().value_and_gradients(*arrays))[1]


def _tensor(array: jax.Array) -> Tensor:
    return torch.from_numpy(np.array(array))


JAX = {"log-z": ForeignWork(_arrays, _forward, _forward_backward, _tensor)}
