"""How each library is asked, by its documented use. What it does not offer is None.

Imports are inside functions: all but structdist are optional.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

import torch
from torch import Tensor

from benchmarks.faults.problems import Problem
from benchmarks.rivals import edges_of, nodes_of, torch_struct_class
from structdist import LinearChainCRF

Question = Callable[[Problem], Tensor]


@dataclass(frozen=True)
class Contender:
    name: str
    module: str
    log_likelihood: Question  # [B], of the tags
    entropy: Question | None = None  # [B]
    sample: Question | None = None  # [B, T, K], one exact draw
    relaxed: Question | None = None  # [B, T, K], a straight-through draw
    given: Callable[[Problem], list[Tensor]] = lambda p: [p.emissions, p.transitions]
    ask_everything: Callable[[list[Tensor]], object] = lambda given: None  # of what it was given
    single_nodes: bool = True  # can the only node of a chain have a score?
    asked_by: str = ""  # the calls


# structdist: LinearChainCRF(emissions, transitions, lengths) ------------------------------------


def _ours(problem: Problem) -> LinearChainCRF:
    return LinearChainCRF(problem.emissions, problem.transitions, problem.lengths)


def _everything(dist: LinearChainCRF) -> list[Tensor]:
    return [dist.log_partition, dist.marginals, dist.entropy(), dist.argmax, dist.sample()]


STRUCTDIST = Contender(
    "structdist",
    "structdist",
    lambda p: _ours(p).log_prob(p.tags),
    lambda p: _ours(p).entropy(),
    lambda p: _ours(p).sample(),
    lambda p: _ours(p).rsample(straight_through=True),
    ask_everything=lambda given: _everything(LinearChainCRF(*given)),
    asked_by="`LinearChainCRF(emissions, transitions, lengths)`: `log_prob(tags)`, `entropy()`, "
    "`sample()`, `rsample(straight_through=True)`",
)


# torch-struct: LinearChainCRF(log_potentials, lengths) over edges [B, N-1, to, from]; parts of a
# sequence of labels by LinearChain.to_parts, as in its documentation of the class.


def _theirs(problem: Problem) -> object:
    edges = edges_of(problem.emissions, problem.transitions)
    return torch_struct_class()(edges, problem.lengths)


def _all_of_theirs(dist: object) -> list[Tensor]:
    return [dist.partition, dist.marginals, dist.entropy, dist.argmax, dist.sample((1,))]


def _torch_struct_log_likelihood(problem: Problem) -> Tensor:
    dist = _theirs(problem)
    parts = dist.struct.to_parts(problem.tags, problem.transitions.shape[0], problem.lengths)
    return dist.log_prob(parts.type_as(problem.emissions))


TORCH_STRUCT = Contender(
    "torch-struct",
    "torch_struct",
    _torch_struct_log_likelihood,
    lambda p: _theirs(p).entropy,
    lambda p: nodes_of(_theirs(p).sample((1,))[0]),
    lambda p: nodes_of(_theirs(p).gumbel_crf(1.0)),
    given=lambda p: [edges_of(p.emissions, p.transitions)],
    ask_everything=lambda given: _all_of_theirs(torch_struct_class()(*given)),
    single_nodes=False,
    asked_by="`LinearChainCRF(log_potentials, lengths)`, emissions in the scores of edges: "
    "`log_prob(to_parts(tags))`, `entropy`, `sample((1,))`, `gumbel_crf(1.0)`",
)


# pytorch-crf: CRF(num_tags, batch_first=True)(emissions, tags, mask, reduction="none") ----------


def _decoded(given: list[Tensor]) -> list[list[int]]:
    import torchcrf

    return torchcrf.CRF(given[0].shape[-1], batch_first=True).decode(given[0])


def _pytorch_crf_log_likelihood(problem: Problem) -> Tensor:
    import torchcrf

    num_tags = problem.transitions.shape[0]
    layer = torchcrf.CRF(num_tags, batch_first=True)
    no_score = problem.transitions.new_zeros(num_tags)
    parameters = {
        "transitions": problem.transitions,
        "start_transitions": no_score,
        "end_transitions": no_score,
    }
    mask = torch.arange(problem.tags.shape[1]) < problem.lengths.unsqueeze(-1)
    given = problem.emissions, problem.tags, mask
    return torch.func.functional_call(layer, parameters, given, {"reduction": "none"})


PYTORCH_CRF = Contender(
    "pytorch-crf",
    "torchcrf",
    _pytorch_crf_log_likelihood,
    given=lambda p: [p.emissions],
    ask_everything=_decoded,
    asked_by='`CRF(num_tags, batch_first=True)`: `crf(emissions, tags, mask, reduction="none")`, '
    "start and end scores of 0",
)

CONTENDERS = (STRUCTDIST, TORCH_STRUCT, PYTORCH_CRF)


def installed() -> list[Contender]:
    return [contender for contender in CONTENDERS if find_spec(contender.module) is not None]
