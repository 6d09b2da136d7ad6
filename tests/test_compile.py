"""`torch.compile` and `torch.export`: whole graphs, the eager answers, no compilation per batch."""

from __future__ import annotations

import io
import subprocess
import sys
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.distributions import Distribution
from torch.testing import assert_close

from structdist import LinearChain, LinearChainCRF, ops
from structdist.ops import Chain, native, operators
from structdist.ops.registry import _structures
from structdist.ops.triton.launching import interpreted

pytestmark = pytest.mark.filterwarnings("ignore")
OPERATORS = _structures[Chain].operators  # by backend
needs_native = pytest.mark.skipif(
    native.library.unavailable is not None, reason=str(native.library.unavailable)
)
BACKENDS = ["triton"] if interpreted() else [pytest.param("native", marks=needs_native), "rescaled"]
over_backends = pytest.mark.parametrize("backend", BACKENDS)

T, K = 5, 3
LENGTHS = torch.tensor([5, 4, 3, 2, 1, 0])
PATHS = torch.tensor([[0, 1, 2, 1, 0]]).expand(6, -1)
GUMBEL = torch.randn(2, 6, T, K, generator=torch.Generator().manual_seed(2))

QUANTITIES = {
    "log_partition": lambda d: d.log_partition,
    "log_prob": lambda d: d.log_prob(PATHS),
    "entropy": lambda d: d.entropy(),
    "marginals": lambda d: d.marginals,
    "edge_marginals": lambda d: d.edge_marginals,
    "expectation": lambda d: d.expectation(torch.ones(T, K), torch.ones(K, K)),
    "argmax": lambda d: d.argmax,
    "mode": lambda d: d.mode,
    "rsample": lambda d: d.rsample((2,), temperature=0.5, noise=GUMBEL),
    "straight_through": lambda d: d.rsample((2,), straight_through=True, noise=GUMBEL),
    "several": lambda d: d.log_partition + d.entropy() + d.marginals.square().sum((-1, -2)),
}


@pytest.fixture(autouse=True)
def _without_validation():
    Distribution.set_default_validate_args(False)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def scores(*batch: int) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    shapes = ((*batch, T, K), (K, K))
    return [torch.randn(shape, generator=generator).requires_grad_() for shape in shapes]


def value_and_gradients(function, inputs: list[Tensor]) -> list[Tensor]:
    value = function(*inputs)
    if not value.requires_grad:
        return [value]
    weights = torch.linspace(-1, 1, value.numel()).view(value.shape)
    return [value.detach(), *torch.autograd.grad((value * weights).sum(), inputs)]


def quantities_and_compilers() -> list[Any]:
    """Inductor compiles slowly: three that use every kind of operator are enough."""
    pairs = [(quantity, compiler) for compiler in ("eager", "aot_eager") for quantity in QUANTITIES]
    return pairs + [(quantity, "inductor") for quantity in ("several", "rsample", "argmax")]


@over_backends
@pytest.mark.parametrize(("quantity", "compiler"), quantities_and_compilers())
def test_a_whole_graph_gives_the_eager_answer(quantity: str, compiler: str, backend: str):

    def ask(emissions: Tensor, transitions: Tensor) -> Tensor:
        return QUANTITIES[quantity](LinearChainCRF(emissions, transitions, LENGTHS))

    inputs = scores(6)
    with ops.use_backend(backend):
        compiled = torch.compile(ask, backend=compiler, fullgraph=True)
        assert_close(value_and_gradients(compiled, inputs), value_and_gradients(ask, inputs))


@over_backends
@pytest.mark.parametrize("draw", ["sample", "rsample"])
def test_draws_repeat_those_of_eager_code(draw: str, backend: str):
    """For the same seed, where the compiler leaves torch's random numbers as they are."""

    def ask(emissions: Tensor, transitions: Tensor) -> Tensor:
        return getattr(LinearChainCRF(emissions, transitions, LENGTHS), draw)((2,))

    compiled, found = torch.compile(ask, backend="aot_eager", fullgraph=True), []
    with ops.use_backend(backend):
        for function in (ask, compiled):
            torch.manual_seed(1)
            found.append(function(*scores(6)).detach())
    assert torch.equal(*found)


@over_backends
@pytest.mark.parametrize("form", ["per_chain", "per_step", "start_and_end"])
def test_other_forms_of_scores(form: str, backend: str):
    shape = {"per_chain": (6, K, K), "per_step": (6, T - 1, K, K)}.get(form, (K, K))
    ends = {"start": torch.randn(K), "end": torch.randn(6, K)} if form == "start_and_end" else {}

    def ask(emissions: Tensor, transitions: Tensor) -> Tensor:
        dist = LinearChainCRF(emissions, transitions, LENGTHS, **ends)
        return dist.log_partition + dist.entropy()

    inputs = [scores(6)[0], torch.randn(shape, requires_grad=True)]
    with ops.use_backend(backend):
        compiled = torch.compile(ask, backend="aot_eager", fullgraph=True)
        assert_close(value_and_gradients(compiled, inputs), value_and_gradients(ask, inputs))


@over_backends
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_one_graph_for_all_numbers(scale: float, backend: str):
    """Whether sums underflow is found out when a graph runs, not when it is made."""

    def ask(emissions: Tensor, transitions: Tensor) -> Tensor:
        dist = LinearChainCRF(emissions, transitions, LENGTHS)
        return dist.log_partition / 100 + dist.entropy() + dist.marginals.square().sum((-1, -2))

    with ops.use_backend(backend):
        compiled = torch.compile(ask, backend="aot_eager", fullgraph=True)
        compiled(*scores(6))
        with torch.no_grad():
            inputs = [(scale * x).requires_grad_() for x in scores(6)]
        with torch.compiler.set_stance("fail_on_recompile"):
            found = value_and_gradients(compiled, inputs)
        assert_close(found, value_and_gradients(ask, inputs))


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(4, K)
        self.crf = LinearChain(K, start=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        return self.crf(self.encoder(x), lengths).argmax


@over_backends
def test_batches_of_all_sizes_share_a_graph(backend: str):
    counter = CompileCounterWithBackend("aot_eager")
    model = Tagger()
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    with ops.use_backend(backend):
        for batch, steps in ((4, 5), (6, 7), (9, 8), (12, 11), (30, 20)):
            x, lengths = torch.randn(batch, steps, 4), torch.randint(1, steps + 1, (batch,))
            assert torch.equal(compiled(x, lengths), model(x, lengths))
    assert counter.frame_count <= 3  # one for the first, and one for every other


def exported() -> tuple[Tagger, torch.export.ExportedProgram]:
    torch.manual_seed(0)
    model, batch = Tagger().eval(), torch.export.Dim("batch")
    example = torch.randn(3, 6, 4), torch.tensor([6, 4, 1])
    return model, torch.export.export(model, example, dynamic_shapes=({0: batch}, {0: batch}))


@over_backends
def test_export_of_a_tagger(backend: str):
    with ops.use_backend(backend):
        model, program = exported()
    saved = io.BytesIO()
    torch.export.save(program, saved)
    saved.seek(0)
    loaded = torch.export.load(saved).module()
    for batch in (2, 5):
        x, lengths = torch.randn(batch, 6, 4), torch.randint(0, 7, (batch,))
        assert torch.equal(loaded(x, lengths), model(x, lengths))


WITHOUT_THE_LIBRARY = """
import sys, torch
program = torch.export.load(sys.argv[1]).module()
print(program(torch.zeros(2, 6, 4), torch.tensor([6, 2])).shape)
assert "structdist" not in sys.modules
"""


def test_an_export_by_the_reference_runs_without_the_library(tmp_path):
    """Plain operations of torch alone, one time step after the other."""
    with ops.use_backend("reference"):
        model, program = exported()
    x, lengths = torch.randn(4, 6, 4), torch.tensor([6, 5, 0, 1])
    assert torch.equal(program.module()(x, lengths), model(x, lengths))
    torch.export.save(program, tmp_path / "tagger.pt2")
    command = [sys.executable, "-c", WITHOUT_THE_LIBRARY, str(tmp_path / "tagger.pt2")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.strip() == "torch.Size([2, 6])", done.stderr


def operators_in_graph(backend: str) -> list[str]:
    """Of a graph that asks for the entropy."""

    def ask(emissions: Tensor, transitions: Tensor) -> Tensor:
        return LinearChainCRF(emissions, transitions, LENGTHS).entropy()

    inputs, counter = scores(6), CompileCounterWithBackend("aot_eager")
    with ops.use_backend(backend):
        found = value_and_gradients(torch.compile(ask, backend=counter, fullgraph=True), inputs)
    assert_close(found, value_and_gradients(ask, inputs))
    modules = [m for graph in counter.graphs for m in graph.modules() if hasattr(m, "graph")]
    targets = [str(node.target) for module in modules for node in module.graph.nodes]
    return [target.split(".")[1] for target in targets if target.startswith("structdist.")]


@over_backends
def test_graphs_hold_operators(backend: str):
    names = [OPERATORS[backend].full_name(name) for name in ("filter", "entropy")]
    assert set(names) <= set(operators_in_graph(backend))
    assert all(backend in name for name in names)


def test_a_backend_without_operators_leaves_compiled_code_to_the_reference(monkeypatch):
    monkeypatch.delitem(OPERATORS, "rescaled")
    assert operators_in_graph("rescaled") == []


@needs_native
def test_graphs_do_not_run_where_their_backend_cannot(monkeypatch):
    """They are moved to devices that they were not made for."""
    monkeypatch.setattr(native, "unsupported", lambda chain: "it serves CPU tensors")
    operator = getattr(torch.ops.structdist, OPERATORS["native"].full_name("viterbi"))
    with pytest.raises(RuntimeError, match="'native': it serves CPU tensors"):
        operator([x.detach() for x in scores(2)] + [torch.tensor([5, 3])], [], [], [])


def operator_calls(backend: str) -> dict[str, tuple]:
    """Arguments for each operator of a backend, by its short name."""
    chain = [x.detach() for x in scores(2)] + [torch.tensor([5, 3])]

    def call(name: str, *arguments: Any) -> list[Tensor]:
        return operator_of(backend, name)(chain, *arguments, [])

    state = call("filter", [], [])
    grad, temperature = torch.ones(2), torch.tensor(0.5, dtype=torch.float64)
    gumbel = GUMBEL[:, :2].contiguous()
    soft, path = call("gumbel_ffbs", state, [gumbel, temperature])
    relaxed, choice, known = call("relaxed_viterbi", [], [temperature])
    of_soft, of_relaxed = torch.ones_like(soft), torch.ones_like(relaxed)
    values = [torch.ones(2, T, K), torch.ones(K, K)]
    expected = [*values, *call("expectation", state, values), grad]
    uniform = torch.rand(4, 2, T, dtype=torch.float64)
    both, all_three = [True, True], [True, True, True]
    return {
        "filter": (chain, [], [], []),
        "log_partition": (chain, state, [], []),
        "log_partition_adjoint": (chain, state, [grad], both),
        "marginals": (chain, state, [], []),
        "edge_marginals": (chain, state, [], []),
        "entropy": (chain, state, [], []),
        "entropy_adjoint": (chain, state, [*call("entropy", state, []), grad], both),
        "expectation": (chain, state, values, []),
        "expectation_adjoint": (chain, state, expected, both * 2),
        "sample_paths": (chain, state, [uniform], []),
        "gumbel_ffbs": (chain, state, [gumbel, temperature], []),
        "gumbel_ffbs_adjoint": (chain, state, [temperature, soft, path, of_soft], all_three),
        "viterbi": (chain, [], [], []),
        "relaxed_viterbi": (chain, [], [temperature], []),
        "relaxed_viterbi_adjoint": (
            chain,
            [],
            [temperature, known, relaxed, choice, of_relaxed],
            all_three,
        ),
    }


def operator_of(backend: str, name: str) -> Any:
    return getattr(torch.ops.structdist, OPERATORS[backend].full_name(name))


def opcheck(operator: Any, arguments: tuple) -> None:
    """Torch's own checks: the schema, the shapes of the fake kernel, and tracing.

    What the forward pass leaves in its memory beyond what it needs is anything: hence no check
    that two calls give the same bits there.
    """
    torch.library.opcheck(
        operator.default, arguments, test_utils=("test_schema", "test_faketensor")
    )


@over_backends
@pytest.mark.parametrize("name", operators.OPERATORS)
def test_operators_are_what_they_say(name: str, backend: str):
    opcheck(operator_of(backend, name), operator_calls(backend)[name])


@needs_native
def test_the_operator_of_noise_is_what_it_says():
    opcheck(torch.ops.structdist.gumbel_noise, (torch.tensor(3), [2, 4], torch.float32))


def test_forward_mode_derivatives():
    """Through the reference, which they can follow."""
    emissions, transitions = (x.detach().double() for x in scores(2))
    tangent = torch.randn_like(emissions)

    def ask(x: Tensor) -> Tensor:
        dist = LinearChainCRF(x, transitions)
        return dist.log_partition + dist.entropy() + dist.log_prob(dist.argmax)

    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(emissions, tangent)
        found = torch.autograd.forward_ad.unpack_dual(ask(dual)).tangent
    leaf = emissions.clone().requires_grad_()
    (gradient,) = torch.autograd.grad(ask(leaf).sum(), leaf)
    assert_close(found.sum(), (gradient * tangent).sum())


@needs_native
def test_a_compiled_backend_is_not_used_eagerly():
    chain = Chain(*(x.detach() for x in scores(2)), torch.tensor([5, 5]))
    forward = ops.run_forward(chain)
    assert forward.backend is native
