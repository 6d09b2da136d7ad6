"""Backends as operators: what graphs hold, and that each operator is what it says."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch._dynamo.testing import CompileCounterWithBackend
from torch.testing import assert_close

from structdist import ops
from structdist.ops import Problem, native
from structdist.ops.operators import OPERATORS, ChainOperators
from structdist.ops.registry import _structures
from tests.structures.registry import STRUCTURES, backends_of, over
from tests.structures.structure import Structure, normal

pytestmark = pytest.mark.filterwarnings("ignore")
needs_native = pytest.mark.skipif(
    native.library.unavailable is not None, reason=str(native.library.unavailable)
)


def operators_of(structure: Structure, backend: str) -> ChainOperators:
    return _structures[structure.problem].operators[backend]


def operator_of(structure: Structure, backend: str, name: str) -> Any:
    return getattr(torch.ops.structdist, operators_of(structure, backend).full_name(name))


def problem_of(structure: Structure) -> Problem:
    """Two chains in float32, and no NaN: torch's checks compare with ==."""
    problem = next(iter(structure.few_problems.values()))
    scores = [x.nan_to_num(0.0).float().contiguous() for x in problem.scores]
    return type(problem)(*scores, problem.lengths)


def operators_in_graph(structure: Structure, backend: str) -> list[str]:
    """Of a graph that asks for the entropy."""
    torch._dynamo.reset()
    problem = problem_of(structure)
    counter = CompileCounterWithBackend("aot_eager")

    def ask(*scores: Tensor) -> Tensor:
        asked = problem.with_scores(scores)
        return ops.entropy(asked, ops.run_forward(asked))

    inputs = [x.requires_grad_() for x in problem.scores]
    found = []
    with ops.use_backend(backend):
        for function in (torch.compile(ask, backend=counter, fullgraph=True), ask):
            value = function(*inputs)
            found.append([value.detach(), *torch.autograd.grad(value.sum(), inputs)])
    assert_close(*found)
    modules = [m for graph in counter.graphs for m in graph.modules() if hasattr(m, "graph")]
    targets = [str(node.target) for module in modules for node in module.graph.nodes]
    return [target.split(".")[1] for target in targets if target.startswith("structdist.")]


@over(backends="fast")
def test_graphs_hold_operators(structure: Structure, backend: str):
    operators = operators_of(structure, backend)
    names = [operators.full_name(name) for name in ("filter", "entropy")]
    assert set(names) <= set(operators_in_graph(structure, backend))
    assert all(backend in name for name in names)


def test_a_backend_without_operators_leaves_compiled_code_to_the_reference(monkeypatch):
    structure = STRUCTURES[0]
    monkeypatch.delitem(_structures[structure.problem].operators, "rescaled")
    assert operators_in_graph(structure, "rescaled") == []


@needs_native
def test_graphs_do_not_run_where_their_backend_cannot(monkeypatch):
    """They are moved to devices that they were not made for."""
    structure = STRUCTURES[0]
    monkeypatch.setattr(native, "unsupported", lambda chain: "it serves CPU tensors")
    with pytest.raises(RuntimeError, match="'native': it serves CPU tensors"):
        operator_of(structure, "native", "viterbi")(list(problem_of(structure)), [], [], [])


def operator_calls(structure: Structure, backend: str) -> dict[str, tuple]:
    """Arguments for each operator of a backend, by its short name."""
    problem = problem_of(structure)
    chain, num_chains, num_steps = list(problem), *problem.scores[0].shape[:2]

    def call(name: str, *arguments: Any) -> list[Tensor]:
        return operator_of(structure, backend, name)(chain, *arguments, [])

    state = call("filter", [], [])
    grad, temperature = torch.ones(num_chains), torch.tensor(0.5, dtype=torch.float64)
    gumbel = normal(2, *problem.shape_of_choices).float()
    soft, path = call("gumbel_ffbs", state, [gumbel, temperature])
    relaxed, choice, known = call("relaxed_viterbi", [], [temperature])
    of_soft, of_relaxed = torch.ones_like(soft), torch.ones_like(relaxed)
    values = [torch.ones_like(x) for x in problem.scores]
    expected = [*values, *call("expectation", state, values), grad]
    uniform = torch.rand(4, num_chains, num_steps, dtype=torch.float64)
    all_scores = [True] * len(values)
    of_marginals = set(operators_of(structure, backend).names) - set(OPERATORS)
    return {
        **{name: (chain, state, [], []) for name in of_marginals},
        "filter": (chain, [], [], []),
        "log_partition": (chain, state, [], []),
        "log_partition_adjoint": (chain, state, [grad], all_scores),
        "entropy": (chain, state, [], []),
        "entropy_adjoint": (chain, state, [*call("entropy", state, []), grad], all_scores),
        "expectation": (chain, state, values, []),
        "expectation_adjoint": (chain, state, expected, all_scores * 2),
        "sample_paths": (chain, state, [uniform], []),
        "gumbel_ffbs": (chain, state, [gumbel, temperature], []),
        "gumbel_ffbs_adjoint": (
            chain,
            state,
            [temperature, soft, path, of_soft],
            [*all_scores, True],
        ),
        "viterbi": (chain, [], [], []),
        "relaxed_viterbi": (chain, [], [temperature], []),
        "relaxed_viterbi_adjoint": (
            chain,
            [],
            [temperature, known, relaxed, choice, of_relaxed],
            [*all_scores, True],
        ),
    }


def opcheck(operator: Any, arguments: tuple) -> None:
    """Torch's own checks: the schema, the shapes of the fake kernel, and tracing.

    What the forward pass leaves in its memory beyond what it needs is anything: hence no check
    that two calls give the same bits there.
    """
    torch.library.opcheck(
        operator.default, arguments, test_utils=("test_schema", "test_faketensor")
    )


def names_of(structure: Structure) -> list[str]:
    return operators_of(structure, backends_of(structure)[0]).names


@over(backends="fast", name=names_of)
def test_operators_are_what_they_say(structure: Structure, backend: str, name: str):
    calls = operator_calls(structure, backend)
    opcheck(operator_of(structure, backend, name), calls[name])


@needs_native
def test_the_operator_of_noise_is_what_it_says():
    opcheck(torch.ops.structdist.gumbel_noise, (torch.tensor(3), [2, 4], torch.float32))


@over(backends="fast")
def test_eager_code_does_not_go_through_operators(structure: Structure, backend: str):
    forward = ops.run_forward(next(iter(structure.few_problems.values())))
    assert not isinstance(forward.backend, ChainOperators)
