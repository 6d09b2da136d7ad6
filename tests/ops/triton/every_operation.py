"""Every operation of the Triton backend, on small chains."""

from __future__ import annotations

import torch

from structdist.ops import Chain, triton
from structdist.ops.problem import Draw, Expected
from tests.chains import transitions_shape

NUM_CHAINS, NUM_SAMPLES = 2, 2


def example(form: str, num_states: int, dtype: torch.dtype, num_steps: int = 3) -> Chain:
    """Chains whose transitions come in a form."""
    lengths = torch.tensor([num_steps, num_steps - 1])
    emissions = torch.zeros(NUM_CHAINS, num_steps, num_states, dtype=dtype)
    shape = transitions_shape(form, (NUM_CHAINS,), num_steps, num_states)
    return Chain(emissions, torch.zeros(shape, dtype=dtype), lengths)


def run_every_operation(chain: Chain) -> None:
    """With gradients by everything that can have one."""
    state, per_chain = run_log_z(chain), chain.emissions.new_ones(NUM_CHAINS)
    expected = triton.entropy(chain, state)
    triton.entropy_adjoint(chain, state, expected, per_chain, (True, True))
    _values(chain, state, per_chain, (chain.emissions, None))
    _values(chain, state, per_chain, chain.scores)
    _draws(chain, state)


def run_log_z(chain: Chain) -> triton.Filtered:
    """With its gradient."""
    state, _ = triton.filter(chain)
    per_chain = chain.emissions.new_ones(NUM_CHAINS)
    triton.log_partition_adjoint(chain, state, per_chain, (True, True))
    return state


def _values(chain: Chain, state: triton.Filtered, grad: torch.Tensor, values: tuple) -> None:
    expected: Expected = triton.expectation(chain, state, values)
    needs = (True, True, True, values[1] is not None)
    triton.expectation_adjoint(chain, state, values, expected, grad, needs)


def _draws(chain: Chain, state: triton.Filtered) -> None:
    uniform = torch.rand(NUM_SAMPLES, *chain.emissions.shape[:2], dtype=torch.float64)
    triton.sample_paths(chain, state, uniform)
    noise = torch.zeros(NUM_SAMPLES, *chain.emissions.shape, dtype=chain.emissions.dtype)
    draw = _in_range(triton.gumbel_ffbs(chain, state, noise, 1.0))
    triton.gumbel_ffbs_adjoint(chain, state, draw, 1.0, noise, (True, True, False))
    best, came_from = triton.relaxed_viterbi(chain, 1.0)
    came_from.zero_()
    best = _in_range(best)
    triton.relaxed_viterbi_adjoint(chain, came_from, best, 1.0, noise[:1], (True, True, False))
    triton.viterbi(chain)


def _in_range(draw: Draw) -> Draw:
    """A draw whose kernel may not have run: torch must be able to follow its paths."""
    return Draw(draw.soft.zero_(), draw.path.zero_())
