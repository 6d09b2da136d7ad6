"""Benchmarks on CUDA, as far as they can be tested without it: tensors stay on the CPU."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from benchmarks import counting, memory, rivals, samplers
from benchmarks.checks import check
from benchmarks.contenders import CONTENDERS, Contender, at_home
from benchmarks.counting import count
from benchmarks.operations import OPERATIONS
from benchmarks.ours import REFERENCE, STRUCTDIST, backend_obstacle, by_backend
from benchmarks.problem import Size
from benchmarks.samplers import Arena, Row
from benchmarks.timing import Limits, Stopwatch, race
from structdist.ops import forced_backend
from tests.test_benchmarks import run

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
SMALL = Size(batch=3, length=6, states=3)
BY_NAME = {contender.name: contender for contender in CONTENDERS}
EVERYWHERE = ["structdist", "reference", "torch-struct", "pytorch-crf", "jax"]


# Who takes part -------------------------------------------------------------------------------


def test_who_is_at_home_where() -> None:
    assert [c.name for c in at_home("cpu")] == EVERYWHERE
    cuda_only = ["rescaled", "triton", "torch-struct-genbmm"]
    assert {c.name for c in at_home("cuda")} == {*EVERYWHERE, *cuda_only}
    assert at_home("cpu", "cuda") == list(CONTENDERS)


def test_who_runs_on_one_device_only_says_so() -> None:
    for name in ("triton", "torch-struct-genbmm"):
        assert BY_NAME[name].cannot_run(SMALL, CPU) == "does not run on cpu here"
    jax = replace(BY_NAME["jax"], module="torch")  # as if it were installed
    assert jax.cannot_run(SMALL, CUDA) == "does not run on cuda here"


def test_a_backend_can_be_asked_for_on_the_cpu() -> None:
    rescaled = BY_NAME["rescaled"]
    assert rescaled.cannot_run(SMALL, CPU) is None
    assert set(rescaled.works) == set(STRUCTDIST)
    for operation in ("log-z", "viterbi"):
        assert check(rescaled, OPERATIONS[operation], SMALL, CPU).failure is None


def test_a_backend_contender_is_served_by_that_backend(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    def look(emissions: Tensor, transitions: Tensor) -> Tensor:
        seen.append(forced_backend())
        return emissions

    monkeypatch.setitem(STRUCTDIST, "log-z", look)
    for name in ("reference", "rescaled"):
        by_backend(name)["log-z"](torch.zeros(1, 1, 1), torch.zeros(1, 1))
    assert seen == ["reference", "rescaled"]


def test_a_backend_says_itself_why_it_cannot_serve() -> None:
    assert backend_obstacle("rescaled", SMALL, CPU) is None
    meta = torch.device("meta")
    assert "'native' was asked for, but" in (backend_obstacle("native", SMALL, meta) or "")
    assert "must be one of" in (backend_obstacle("magic", SMALL, CPU) or "")


def test_an_obstacle_is_a_reason_to_sit_out() -> None:
    blocked = Contender("blocked", REFERENCE, obstacle=lambda size, device: f"{size} on {device}")
    assert blocked.cannot_run(SMALL, CPU) == "B=3 T=6 K=3 on cpu"


# genbmm ---------------------------------------------------------------------------------------


def logbmm(a: Tensor, b: Tensor) -> Tensor:
    return (a[:, :, :, None] + b[:, None, :, :]).logsumexp(2)


def maxbmm(a: Tensor, b: Tensor) -> Tensor:
    return (a[:, :, :, None] + b[:, None, :, :]).max(2).values


def built_without_a_gpu(a: Tensor, b: Tensor) -> Tensor:
    return _genbmm.forward(a, b)  # noqa: F821, that is what it does


def genbmm_with(monkeypatch: pytest.MonkeyPatch, product: object) -> None:
    """A module in its place, for torch-struct too."""
    fast_semirings = pytest.importorskip("torch_struct.semirings.fast_semirings")
    module = SimpleNamespace(logbmm=product, maxbmm=maxbmm, BandedMatrix=type("Banded", (), {}))
    monkeypatch.setitem(sys.modules, "genbmm", module)
    monkeypatch.setattr(fast_semirings, "genbmm", module, raising=False)


@pytest.mark.parametrize(
    ("product", "reason"),
    [
        (logbmm, None),
        (
            built_without_a_gpu,
            "a call of genbmm.logbmm raised NameError: name '_genbmm' is not defined",
        ),
        (maxbmm, "a call of genbmm.logbmm gave a wrong answer"),
    ],
)
def test_genbmm_is_tried_by_a_call(
    monkeypatch: pytest.MonkeyPatch, product: object, reason: str | None
) -> None:
    genbmm_with(monkeypatch, product)
    assert rivals.genbmm_obstacle(SMALL, CPU) == reason


def test_genbmm_may_be_absent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "genbmm", None)  # what import makes an error
    assert rivals.genbmm_obstacle(SMALL, CPU) == "genbmm is not installed"


@pytest.mark.parametrize("operation", ["log-z", "marginals", "viterbi"])
def test_torch_struct_with_genbmm_is_right(monkeypatch: pytest.MonkeyPatch, operation: str) -> None:
    genbmm_with(monkeypatch, logbmm)
    verdict = check(BY_NAME["torch-struct-genbmm"], OPERATIONS[operation], SMALL, CPU)
    assert verdict.failure is None


# Measuring ------------------------------------------------------------------------------------


class Clock:
    """Stands for a GPU: events tell the time, in milliseconds, that calls have advanced."""

    def __init__(self) -> None:
        self.now = 0.0
        self.tick = 0.0  # by which each event advances it too
        self.calls: list[str] = []

    def event(self, enable_timing: bool) -> SimpleNamespace:
        event = SimpleNamespace(time=None)
        event.record = lambda: self.record(event)
        event.synchronize = lambda: self.calls.append("wait for the event")
        event.elapsed_time = lambda end: end.time - event.time
        return event

    def record(self, event: SimpleNamespace) -> None:
        self.now += self.tick
        event.time = self.now

    def synchronize(self, device: object = None) -> None:
        self.calls.append("synchronize")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("torch.cuda.Event", clock.event)
    monkeypatch.setattr("torch.cuda.synchronize", clock.synchronize)
    monkeypatch.setattr("torch.cuda.device", lambda device: nullcontext())
    return clock


def test_times_are_between_two_events(clock: Clock) -> None:
    def work() -> None:
        clock.calls.append("work")
        clock.now += 250.0

    assert Stopwatch(CUDA)(work) == pytest.approx(0.25)
    assert clock.calls == ["synchronize", "work", "wait for the event"]


def test_rounds_to_warm_up_are_not_timed() -> None:
    calls: list[int] = []
    limits = Limits(fewest=2, usual=2, most=2)
    timings = race({"a": calls.append}, lambda n: n, Stopwatch(CPU), limits, warm_ups=3)
    assert calls == [0, 0, 0, 1, 2]
    assert timings["a"].repeats == 2


@pytest.mark.parametrize(("device", "rounds"), [(CPU, 1), (CUDA, 3)], ids=["cpu", "cuda"])
def test_a_gpu_warms_up_longer(
    monkeypatch: pytest.MonkeyPatch, device: torch.device, rounds: int
) -> None:
    seen: list[object] = []
    monkeypatch.setattr(samplers, "race", lambda *arguments: seen.append(arguments[-1]))
    Arena(device, Limits()).race({}, SMALL)
    assert seen == [rounds]


def test_peaks_are_those_of_the_allocator(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    allocated = {"now": 100, "peak": 900}

    def work() -> None:
        allocated["peak"] = max(allocated["peak"], allocated["now"] + 50)

    monkeypatch.setattr("torch.cuda.memory_allocated", lambda device: allocated["now"])
    monkeypatch.setattr("torch.cuda.max_memory_allocated", lambda device: allocated["peak"])
    monkeypatch.setattr(
        "torch.cuda.reset_peak_memory_stats",
        lambda device: allocated.update(peak=allocated["now"]),
    )
    assert memory.peak_bytes(work, CUDA) == 50


# The whole command ----------------------------------------------------------------------------


@pytest.fixture
def pretended_cuda(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> Iterator[None]:
    """Tensors that are sent to CUDA stay where they are; every call takes a millisecond."""
    to = torch.Tensor.to

    def stay(x: Tensor, *arguments: object, **options: object) -> Tensor:
        return x if arguments == (CUDA,) else to(x, *arguments, **options)

    clock.tick = 1.0
    monkeypatch.setattr(torch.Tensor, "to", stay)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.device_count", lambda: 1)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda device: "No Card")
    monkeypatch.setattr("benchmarks.environment.backend_in_use", lambda device: "rescaled")
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda device: (10**12, 10**12))
    monkeypatch.setattr("torch.cuda.memory_allocated", lambda device: 0)
    monkeypatch.setattr("torch.cuda.max_memory_allocated", lambda device: 64)
    monkeypatch.setattr("torch.cuda.reset_peak_memory_stats", lambda device: None)
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("pretended_cuda")
def test_samplers_on_cuda(tmp_path: Path) -> None:
    file = tmp_path / "samplers.json"
    small = "--size 2x3x2 --operation log-z,viterbi --quick --budget 0.02 --threads 1"
    options = *small.split(), "--estimate", "A100", "--json", file
    result = run("samplers", "--device", "cuda", *options)
    assert result.exit_code == 0, result.output
    content = json.loads(file.read_text())
    assert content["environment"]["device"] == "No Card"
    rows = {(row["operation"], row["contender"]): row for row in content["rows"]}
    everyone = {c.name for c in at_home("cuda") if "log-z" in c.works}
    assert {contender for operation, contender in rows if operation == "log-z"} == everyone
    for name in ("structdist", "rescaled", "reference"):
        assert rows["log-z", name]["forward"]["median"] == pytest.approx(1e-3)
        row = rows["log-z", name]
        assert row["status"] == "ok", row["detail"]
        assert row["forward_bytes"] == 64
        assert row["launches"]["how"] == "on cuda"
        assert row["estimate"]["card"] == "A100"
    for name in ("jax", "torch-struct-genbmm"):
        assert rows["log-z", name]["status"] == "skipped"
        assert rows["log-z", name]["launches"] is None
    triton = rows["log-z", "triton"]
    assert triton["status"] == "skipped", triton["detail"]
    assert "triton" in triton["detail"]


def test_launches_on_cuda_are_counted_in_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    modes: list[bool] = []
    launches = counting.count_launches

    def count_launches(function: object, device: torch.device, dry: bool) -> object:
        modes.append(dry)
        return launches(function, device, dry)

    monkeypatch.setattr(counting, "count_launches", count_launches)
    inputs = counting.make_inputs
    monkeypatch.setattr(counting, "make_inputs", lambda size, device, seed: inputs(size, CPU, seed))
    counted = count(BY_NAME["structdist"], OPERATIONS["log-z"], SMALL, CUDA)
    assert (counted.how, modes) == ("on cuda", [False, False])


def test_who_sits_out_on_cuda_has_no_launches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A dry run beside counts of real ones would mix two things."""
    row = Row("log-z", "structdist", 3, 6, 3, status="skipped", detail="why")
    monkeypatch.setattr(samplers, "count", None)  # it must not be called
    arena = Arena(CUDA, Limits())
    assert arena.with_launches(row, BY_NAME["structdist"], OPERATIONS["log-z"]) == row
