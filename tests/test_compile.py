"""`torch.compile` and `torch.export`: whole graphs, the eager answers, no compilation per batch."""

from __future__ import annotations

import io
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.testing import CompileCounterWithBackend
from torch.distributions import Distribution, kl_divergence
from torch.testing import assert_close

from structdist import LinearChain, LinearChainCRF, SemiMarkov, ops
from tests.chains import FORMS, random_example
from tests.structures.registry import over
from tests.structures.semi_markov import random_segments
from tests.structures.structure import BaseExample, Structure, normal

pytestmark = pytest.mark.filterwarnings("ignore")

T, L, K = 5, 3, 3
CHAIN, SEGMENTS = "linear chain", "semi-Markov chain"


@pytest.fixture(autouse=True)
def _without_validation():
    Distribution.set_default_validate_args(False)
    torch._dynamo.reset()
    yield
    torch._dynamo.reset()


def example_of(structure: Structure, form: str = "shared", **options: Any) -> BaseExample:
    """Six chains of mixed lengths in float32, durations and no other scores of segments."""
    if structure.name == CHAIN:
        made = random_example("compiled", (6,), form, num_steps=T, num_states=K, **options)
    else:
        options = {"segments": False, "ends": False, **options}
        made = random_segments("compiled", (6,), form, T, L, K, **options)
    return made.to(torch.float32).leaves()


# Questions -------------------------------------------------------------------------------------

PATHS = {
    CHAIN: torch.tensor([0, 1, 2, 1, 0]).expand(6, -1),
    SEGMENTS: torch.tensor([0, 3, 2, 1, 4]).expand(6, -1),
}
GUMBEL = {
    CHAIN: normal(2, 6, T, K, seed=2).float(),
    SEGMENTS: normal(2, 6, T, K + L, seed=2).float(),
}


def draws_of(gumbel: Tensor) -> dict[str, Callable]:
    return {
        "rsample": lambda d: d.rsample((2,), temperature=0.5, noise=gumbel),
        "straight_through": lambda d: d.rsample((2,), straight_through=True, noise=gumbel),
    }


COMMON = {
    "log_partition": lambda d: d.log_partition,
    "entropy": lambda d: d.entropy(),
    "marginals": lambda d: d.marginals,
    "edge_marginals": lambda d: d.edge_marginals,
    "argmax": lambda d: d.argmax,
    "mode": lambda d: d.mode,
    "several": lambda d: d.log_partition + d.entropy() + d.marginals.square().flatten(1).sum(-1),
}
QUANTITIES: dict[str, dict[str, Callable]] = {
    CHAIN: {
        **COMMON,
        **draws_of(GUMBEL[CHAIN]),
        "log_prob": lambda d: d.log_prob(PATHS[CHAIN]),
        "expectation": lambda d: d.expectation(torch.ones(T, K), torch.ones(K, K)),
        "kl": lambda d: kl_divergence(
            d, LinearChainCRF(d.emissions / 2, -d.transitions, d.lengths)
        ),
    },
    SEGMENTS: {
        **COMMON,
        **draws_of(GUMBEL[SEGMENTS]),
        "log_prob": lambda d: d.log_prob(PATHS[SEGMENTS]),
        "expectation": lambda d: d.expectation(
            torch.ones(T, K), torch.ones(K, K), torch.ones(L, K)
        ),
        "steps": lambda d: torch.cat([d.token_marginals, d.boundary_marginals.unsqueeze(-1)], -1),
        "rsample_labels": lambda d: d.rsample_labels((2,), noise=GUMBEL[SEGMENTS]).labels,
    },
}


def every_answer(structure: Structure) -> Callable[[Any], Tensor]:
    """All questions in one graph, which costs little more than one of them."""
    questions = list(QUANTITIES[structure.name].values())
    return lambda d: torch.cat([ask(d).flatten().float() for ask in questions])


def every_case(structure: Structure) -> dict[str, tuple[str, str]]:
    pairs = [(quantity, "aot_eager") for quantity in QUANTITIES[structure.name]]
    pairs += [("several", "eager")]
    pairs += [(quantity, "inductor") for quantity in ("several", "rsample", "argmax")]
    return {f"{quantity}-{compiler}": (quantity, compiler) for quantity, compiler in pairs}


def value_and_gradients(function: Callable, example: BaseExample) -> list[Tensor]:
    inputs = list(example.scores.values())
    value = function(*inputs)
    if not value.requires_grad:
        return [value]
    weights = torch.linspace(-1, 1, value.numel()).view(value.shape)
    found = torch.autograd.grad((value * weights).sum(), inputs, materialize_grads=True)
    return [value.detach(), *found]


def asking(ask: Callable, example: BaseExample) -> Callable[..., Tensor]:
    """The question as a function of the scores of an example, which it holds none of."""
    copy = example.leaves()
    return lambda *scores: ask(copy.with_scores(*scores).crf())


def assert_same_when_compiled(ask: Callable, example: BaseExample, compiler: str) -> None:
    function = asking(ask, example)
    compiled = torch.compile(function, backend=compiler, fullgraph=True)
    found = value_and_gradients(compiled, example)
    assert_close(found, value_and_gradients(function, example))


@over(backends="first", compiler=["eager", "aot_eager"])
def test_a_whole_graph_gives_the_eager_answers(structure: Structure, backend: str, compiler: str):
    assert_same_when_compiled(every_answer(structure), example_of(structure), compiler)


@over(backends="first")
def test_torch_looks_for_no_gradient_of_an_operator(structure: Structure, backend: str):
    """It would warn that what it finds may be wrong."""
    example = example_of(structure)
    function = asking(COMMON["several"], example)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        value_and_gradients(compiled, example)
    assert not [str(one.message) for one in told if "autograd" in str(one.message)]


@over(backends="first")
def test_a_graph_that_is_compiled_to_code_gives_the_eager_answer(
    structure: Structure, backend: str
):
    assert_same_when_compiled(COMMON["several"], example_of(structure), "inductor")


@pytest.mark.slow
@over(backends="fast", case=every_case)
def test_each_question_gives_the_eager_answer(
    structure: Structure, backend: str, case: tuple[str, str]
):
    quantity, compiler = case
    ask = QUANTITIES[structure.name][quantity]
    assert_same_when_compiled(ask, example_of(structure), compiler)


@over(backends="first", draw=["sample", "rsample"])
def test_draws_repeat_those_of_eager_code(structure: Structure, backend: str, draw: str):
    """For the same seed, where the compiler leaves torch's random numbers as they are."""
    example, found = example_of(structure), []
    ask = asking(lambda d: getattr(d, draw)((2,)), example)
    for function in (ask, torch.compile(ask, backend="aot_eager", fullgraph=True)):
        torch.manual_seed(1)
        found.append(function(*example.scores.values()).detach())
    assert torch.equal(*found)


OTHER_FORMS = {
    CHAIN: {**{form: {"form": form} for form in FORMS[1:]}, "start_and_end": {"ends": True}},
    SEGMENTS: {
        "per_chain": {"form": "per_chain", "ends": True},
        "per_step": {"form": "per_step", "durations": False, "segments": True},
    },
}


@over(backends="first", form=lambda structure: OTHER_FORMS[structure.name])
def test_other_forms_of_scores(structure: Structure, backend: str, form: dict[str, Any]):
    example = example_of(structure, **form)
    assert_same_when_compiled(lambda d: d.log_partition + d.entropy(), example, "aot_eager")


@over(backends="fast")
def test_one_graph_for_all_numbers(structure: Structure, backend: str):
    """Whether sums underflow is found out when a graph runs, not when it is made."""

    def ask(d: Any) -> Tensor:
        return d.log_partition / 100 + d.entropy() + d.marginals.square().flatten(1).sum(-1)

    example = example_of(structure)
    function = asking(ask, example)
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    compiled(*example.scores.values())
    scaled = example.with_scores(*[x.detach() * 1e4 for x in example.scores.values()]).leaves()
    with torch.compiler.set_stance("fail_on_recompile"):
        found = value_and_gradients(compiled, scaled)
    assert_close(found, value_and_gradients(function, scaled))


# Models ----------------------------------------------------------------------------------------


class Tagger(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Linear(4, K)
        self.crf = LinearChain(K, start=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        return self.crf(self.encoder(x), lengths).argmax


class Segmenter(Tagger):
    def __init__(self) -> None:
        super().__init__()
        self.crf = SemiMarkov(K, max_duration=[1, L, L], start=True)

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        dist = self.crf(self.encoder(x), lengths)
        labels, starts = dist.labels_of(dist.argmax)
        return labels, starts


MODELS = {CHAIN: Tagger, SEGMENTS: Segmenter}


@over(backends="first")
def test_batches_of_all_sizes_share_a_graph(structure: Structure, backend: str):
    counter = CompileCounterWithBackend("aot_eager")
    model = MODELS[structure.name]()
    compiled = torch.compile(model, backend=counter, fullgraph=True)
    for batch, steps in ((4, 5), (6, 7), (9, 8), (12, 11), (30, 20)):
        x, lengths = torch.randn(batch, steps, 4), torch.randint(1, steps + 1, (batch,))
        assert_close(compiled(x, lengths), model(x, lengths), rtol=0, atol=0)
    assert counter.frame_count <= 3  # one for the first, and one for every other


def exported(
    structure: Structure, num_steps: int
) -> tuple[nn.Module, torch.export.ExportedProgram]:
    torch.manual_seed(0)
    model, batch = MODELS[structure.name]().eval(), torch.export.Dim("batch")
    example = torch.randn(3, num_steps, 4), torch.tensor([num_steps, 1, 2])
    return model, torch.export.export(model, example, dynamic_shapes=({0: batch}, {0: batch}))


@over(backends="fast")
def test_export_of_a_model(structure: Structure, backend: str):
    """Emissions and lengths in, the best labels out, and where segments begin."""
    model, program = exported(structure, 6)
    saved = io.BytesIO()
    torch.export.save(program, saved)
    saved.seek(0)
    loaded = torch.export.load(saved).module()
    for batch in (2, 5):
        x, lengths = torch.randn(batch, 6, 4), torch.randint(0, 7, (batch,))
        assert_close(loaded(x, lengths), model(x, lengths), rtol=0, atol=0)


WITHOUT_THE_LIBRARY = """
import sys, torch
program = torch.export.load(sys.argv[1]).module()
found = program(torch.zeros(2, 3, 4), torch.tensor([3, 2]))
print((found[0] if isinstance(found, tuple) else found).shape)
assert "structdist" not in sys.modules
"""


@over()
def test_an_export_by_the_reference_runs_without_the_library(structure: Structure, tmp_path):
    """Plain operations of torch alone, one time step after the other."""
    with ops.use_backend("reference"):
        model, program = exported(structure, 3)
    x, lengths = torch.randn(4, 3, 4), torch.tensor([3, 2, 0, 1])
    assert_close(program.module()(x, lengths), model(x, lengths), rtol=0, atol=0)
    torch.export.save(program, tmp_path / "tagger.pt2")
    command = [sys.executable, "-c", WITHOUT_THE_LIBRARY, str(tmp_path / "tagger.pt2")]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.stdout.strip() == "torch.Size([2, 3])", done.stderr


def test_forward_mode_derivatives():
    """Through the reference, which they can follow."""
    emissions, transitions = normal(2, T, K), normal(K, K, seed=1)
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
