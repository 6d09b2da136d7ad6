"""Perturb-and-MAP (PM-MRF): Gumbel noise on local scores, then Viterbi with relaxed back-tracking.

Papandreou and Yuille (2011), relaxed as in Fu et al. (2020), appendix. A biased sampler: the best
path of locally perturbed scores does not follow the chain's distribution.
"""

from __future__ import annotations

import torch

from structdist import ops
from structdist.relaxation import gumbel_noise


def perturb_and_map(
    chain: ops.Chain,
    num_samples: int,
    temperature: float,
    perturb: str = "edges",
    generator: torch.Generator | None = None,
) -> ops.Draw:
    """Draws over S samples and N chains. Noise on the first node and each edge, or on each node."""
    if perturb not in ("edges", "nodes"):
        raise ValueError(f'perturb must be "edges" or "nodes", got {perturb!r}')
    emissions, transitions, lengths = chain
    num_chains, num_steps, num_states = emissions.shape
    copies = (num_samples, num_chains)
    noisy_nodes = num_steps if perturb == "nodes" else 1
    node_noise = gumbel_noise((*copies, noisy_nodes, num_states), emissions, generator)
    first = emissions[:, :noisy_nodes] + node_noise
    rest = emissions[:, noisy_nodes:].expand(*copies, -1, -1)
    if perturb == "edges":
        shape = (*copies, num_steps - 1, num_states, num_states)
        transitions = ops.per_step(transitions) + gumbel_noise(shape, emissions, generator)
    elif transitions.dim() > 2:
        transitions = transitions.expand(num_samples, *transitions.shape)
    if transitions.dim() > 2:
        transitions = transitions.flatten(0, 1)
    perturbed = ops.Chain(
        torch.cat([first, rest], 2).flatten(0, 1),
        transitions,
        lengths.expand(copies).flatten(),
    )
    draw = ops.relaxed_viterbi(perturbed, temperature)
    return ops.Draw(
        draw.soft.view(*copies, num_steps, num_states), draw.path.view(*copies, num_steps)
    )
