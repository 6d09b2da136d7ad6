"""Every operation of the Triton backends, on small problems."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from structdist.ops import Chain, SemiMarkovChain, registry
from structdist.ops.backend import AnyBackend
from structdist.ops.problem import Draw
from tests.chains import transitions_shape

NUM_CHAINS, NUM_SAMPLES = 2, 2
LONGEST = 6  # segment


def example(form: str, num_states: int, dtype: torch.dtype, num_steps: int = 3) -> Chain:
    """Linear chains whose transitions come in a form."""
    lengths = torch.tensor([num_steps, num_steps - 1])
    emissions = torch.zeros(NUM_CHAINS, num_steps, num_states, dtype=dtype)
    shape = transitions_shape(form, (NUM_CHAINS,), num_steps, num_states)
    return Chain(emissions, torch.zeros(shape, dtype=dtype), lengths)


def segment_example(
    form: str, num_labels: int, dtype: torch.dtype, num_steps: int = 3
) -> SemiMarkovChain:
    """Semi-Markov chains whose transitions and segments come in a form."""
    emissions, transitions, lengths = example(form, num_labels, dtype, num_steps)
    lead = {"shared": (), "per_chain": (NUM_CHAINS,), "per_step": (NUM_CHAINS, num_steps)}[form]
    segments = torch.zeros(*lead, LONGEST, num_labels, dtype=dtype)
    return SemiMarkovChain(emissions, transitions, segments, lengths)


EXAMPLES = {"linear": example, "segments": segment_example}


def triton_of(problem: Chain | SemiMarkovChain) -> AnyBackend:
    """The backend in Triton of a structure."""
    return next(x for x in registry._structures[type(problem)].backends if x.NAME == "triton")


def run_every_operation(problem: Any) -> None:
    """With gradients by everything that can have one."""
    triton, state = triton_of(problem), run_log_z(problem)
    per_chain, needs = problem.emissions.new_ones(NUM_CHAINS), (True,) * len(problem.scores)
    expected = triton.entropy(problem, state)
    triton.entropy_adjoint(problem, state, expected, per_chain, needs)
    emissions, *others = problem.scores
    for values in ((emissions, *(None for _ in others)), problem.scores):
        expected = triton.expectation(problem, state, values)
        of_values = tuple(value is not None for value in values)
        wanted = (*needs, *of_values)
        triton.expectation_adjoint(problem, state, values, expected, per_chain, wanted)
    _draws(problem, triton, state)


def run_log_z(problem: Any) -> Any:
    """With its gradient."""
    triton = triton_of(problem)
    state, _ = triton.filter(problem)
    per_chain, needs = problem.emissions.new_ones(NUM_CHAINS), (True,) * len(problem.scores)
    triton.log_partition_adjoint(problem, state, per_chain, needs)
    return state


def _draws(problem: Any, triton: AnyBackend, state: Any) -> None:
    uniform = torch.rand(NUM_SAMPLES, *problem.emissions.shape[:2], dtype=torch.float64)
    triton.sample_paths(problem, state, uniform)
    noise, needs = _noise(problem), (*(True for _ in problem.scores), False)
    draw = _in_range(triton.gumbel_ffbs(problem, state, noise, 1.0))
    triton.gumbel_ffbs_adjoint(problem, state, draw, 1.0, noise, needs)
    best, came_from = triton.relaxed_viterbi(problem, 1.0)
    came_from.zero_()
    best = _in_range(best)
    triton.relaxed_viterbi_adjoint(problem, came_from, best, 1.0, noise[:1], needs)
    triton.viterbi(problem)


def _noise(problem: Chain | SemiMarkovChain) -> Tensor:
    num_choices = problem.emissions.shape[-1]
    if isinstance(problem, SemiMarkovChain):
        num_choices += problem.longest
    shape = NUM_SAMPLES, *problem.emissions.shape[:2], num_choices
    return torch.zeros(shape, dtype=problem.emissions.dtype)


def _in_range(draw: Draw) -> Draw:
    """A draw whose kernel may not have run: torch must be able to follow its paths."""
    return Draw(draw.soft.zero_(), draw.path.zero_())
