"""How often kernels are launched, and who serves what: asked without a GPU, and without running."""

from __future__ import annotations

import sys
from collections import Counter

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from structdist import LinearChainCRF, ops
from structdist.ops import Chain, SemiMarkovChain, triton
from structdist.ops.semi_markov import triton as segment_triton
from structdist.ops.triton import launching
from tests.chains import FORMS, random_example
from tests.ops.triton.every_operation import EXAMPLES, run_every_operation, segment_example

pytestmark = pytest.mark.skipif(launching.missing() is not None, reason=str(launching.missing()))

ALLOCATIONS = ("empty", "new_empty", "empty_like", "empty_strided")


class Operations(TorchDispatchMode):
    """Names of torch operations that launch something: neither views nor new memory."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        found = function(*args, **(kwargs or {}))
        name = function.overloadpacket.__name__
        if not function.is_view and name not in ALLOCATIONS:
            self.names.append(name)
        return found


def log_z_and_gradient(form: str) -> tuple[list[str], list[str]]:
    """Kernels launched for log Z and its gradient, and operations of torch beside them."""
    given = random_example("launches", (3,), form, num_steps=9, lengths=None).to(torch.float32)
    leaf = given.leaves()
    lengths, weight = torch.full((3,), 9), torch.ones(3)
    with triton.recorded_launches(run=False) as launches, ops.use_backend("triton"):
        crf = LinearChainCRF(leaf.emissions, leaf.transitions, lengths, validate_args=False)
        with Operations() as operations:
            log_z = crf.log_partition
            torch.autograd.grad(log_z, list(leaf.scores.values()), weight)
    return [launch.kernel for launch in launches], operations.names


OF_EDGES = {
    "shared": "edges.shared_by_steps",
    "per_chain": "edges.shared_by_steps",
    "per_step": "edges.of_one_step",
}
PRODUCTS = {"shared": ["mm"], "per_chain": ["bmm"], "per_step": []}


@pytest.mark.parametrize("form", FORMS)
def test_log_z_and_its_gradient_take_three_launches(form: str):
    """Beside them there is one product, and the copy that is the user's own."""
    kernels, operations = log_z_and_gradient(form)
    assert kernels == ["filter.forward", "filter.adjoint", OF_EDGES[form]]
    assert operations == ["clone", *PRODUCTS[form]]


@pytest.mark.parametrize("form", FORMS)
def test_log_z_of_segments_and_its_gradient_take_three_launches(form: str):
    """Beside them there are one product, and zeros that gradients of segments are added to."""
    chain = segment_example(form, 20, torch.float32, num_steps=9)
    leaves = [x.requires_grad_() for x in chain.scores]
    recorded = triton.recorded_launches(run=False)
    with recorded as launches, ops.use_backend("triton"), Operations() as operations:
        log_z = ops.log_partition(chain, ops.run_forward(chain))
        torch.autograd.grad(log_z, leaves, torch.ones_like(log_z))
    kernels = [launch.kernel for launch in launches]
    assert kernels == ["segment_filter.forward", "segment_filter.adjoint", OF_EDGES[form]]
    total = ["sum"] if form == "shared" else []
    assert operations.names == ["clone", "ones_like", "new_zeros", *PRODUCTS[form], *total]


SWEEPS = {  # of one pass over every operation, two of them expectations
    "filter.forward": 1,
    "filter.adjoint": 2,
    "expect.forward": 3,
    "expect.adjoint": 3,
    "viterbi.forward": 2,
    "viterbi.adjoint": 1,
    "backtrack.exact": 1,
    "backtrack.relaxed": 3,
}


@pytest.mark.parametrize("structure", EXAMPLES)
@pytest.mark.parametrize("form", FORMS)
def test_every_sweep_is_one_launch(form: str, structure: str):
    """None follows from the number of steps, and none is launched twice for one operation."""
    counts = []
    for num_steps in (3, 300):
        with triton.recorded_launches(run=False) as launches:
            run_every_operation(EXAMPLES[structure](form, 20, torch.float32, num_steps))
        counts.append([launch.kernel for launch in launches])
        assert {launch.steps for launch in launches} == {0, num_steps}
    assert counts[0] == counts[1]
    kernels = Counter(name.removeprefix("segment_") for name in counts[0])
    assert {name: kernels[name] for name in SWEEPS} == SWEEPS


@pytest.mark.parametrize("structure", EXAMPLES)
@pytest.mark.parametrize("form", FORMS)
def test_nothing_waits_for_the_device(form: str, structure: str):
    """No operation looks at a number, so that CUDA graphs can hold all of them."""
    problem = EXAMPLES[structure](form, 20, torch.float32)
    with triton.recorded_launches(run=False), Operations() as operations:
        run_every_operation(problem)
    assert operations.names
    assert not {"_local_scalar_dense", "nonzero", "is_nonzero", "equal"} & set(operations.names)


@pytest.mark.parametrize("structure", EXAMPLES)
def test_nothing_is_compiled_for_a_number_of_steps(structure: str):
    """Steps, chains, lengths and strides are arguments that Triton does not specialise for."""
    compiled = set()
    for num_steps in (3, 16, 17, 1000):
        with triton.recorded_launches(run=False) as launches:
            run_every_operation(EXAMPLES[structure]("shared", 4, torch.float32, num_steps))
        compiled.add(frozenset((x.kernel, x.signature, str(x.constants)) for x in launches))
        for launch in launches:
            kernel = launching._found(launch.kernel)
            runtime = [p for p in kernel.params if not p.is_constexpr]
            types = zip(runtime, launch.signature, strict=True)
            integers = [p for p, kind in types if kind == "i32"]
            assert len(integers) >= 2
            assert all(p.do_not_specialize for p in integers), launch.kernel
    assert len(compiled) == 1


def test_it_serves_what_it_says():
    scores = torch.zeros(2, 3, 4)
    chain = Chain(scores, torch.zeros(4, 4), torch.tensor([3, 2]))
    assert "CUDA and ROCm" in triton.unsupported(chain)
    with triton.recorded_launches(run=False):
        assert triton.unsupported(chain) is None
        large = Chain(torch.zeros(1, 2, 1025), torch.zeros(1025, 1025), torch.tensor([2]))
        assert "1024 states" in triton.unsupported(large)
        assert "1024 states" in segment_triton.unsupported(
            SemiMarkovChain(large.emissions, large.transitions, scores[0], large.lengths)
        )
        long = SemiMarkovChain(scores, torch.zeros(4, 4), torch.zeros(1025, 4), chain.lengths)
        assert "segments of up to 1024 steps" in segment_triton.unsupported(long)


def test_reasons_without_triton(monkeypatch: pytest.MonkeyPatch):
    """None of these may be an error when the package is imported."""

    def absent(name: str) -> str:
        raise launching.PackageNotFoundError(name)

    monkeypatch.setattr(launching, "version", absent)
    assert launching._unusable() == "Triton is not installed"
    monkeypatch.setattr(launching, "version", lambda name: "2.1.0")
    assert "2.1.0 is too old" in launching._unusable()
    launching._broken.cache_clear()
    monkeypatch.setitem(sys.modules, "triton.language", None)
    assert "does not import" in launching.missing()
    launching._broken.cache_clear()


def test_an_old_card_is_left_to_torch(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (6, 1))
    assert "compute capability (6, 1)" in launching.unfit_device(torch.device("cuda"))


def test_where_torch_has_no_device_every_backend_says_so():
    if torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    statuses = ops.backends("cuda")
    assert {"triton", "rescaled", "native", "reference"} <= {s.backend for s in statuses}
    assert not any(s.in_use for s in statuses)
    assert all("cuda" in s.reason for s in statuses)
