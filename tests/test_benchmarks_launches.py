"""Launches are counted right on any device, and the model makes of them what it should."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor

from benchmarks.cards import CARDS, Card, UnknownCardError, find_card
from benchmarks.contenders import CONTENDERS, Contender
from benchmarks.counting import NotCountedError, count
from benchmarks.estimates import LABEL, Estimate
from benchmarks.launches import TRITON_BACKEND, Launches, count_launches
from benchmarks.operations import OPERATIONS
from benchmarks.problem import Size
from benchmarks.results import Record, Results
from benchmarks.rivals import torch_struct_bytes
from benchmarks.samplers import Row
from benchmarks.sections import sampler_tables
from structdist.ops import Chain, noise, registry
from structdist.ops.native import library
from tests.test_benchmarks_foreign import BOXED

PAGE = Path(__file__).parent.parent / "docs" / "gpu.md"
CPU, META = torch.device("cpu"), torch.device("meta")
SIZE = Size(batch=3, length=6, states=4)
LOG_Z, SAMPLE = OPERATIONS["log-z"], OPERATIONS["sample"]
BY_NAME = {contender.name: contender for contender in CONTENDERS}


def works(**functions: Callable[[Tensor, Tensor], Tensor]) -> dict[str, Callable[..., Tensor]]:
    return {name.replace("_", "-"): function for name, function in functions.items()}


# Operations of torch --------------------------------------------------------------------------

X = torch.ones(10, 5)  # 200 bytes in float32
KNOWN: dict[str, tuple[Callable[[Tensor], object], int, int]] = {  # launches, bytes
    "one operation reads and writes": (lambda x: x.exp(), 1, 400),
    "two inputs": (lambda x: x + x, 1, 600),
    "in place": (lambda x: x.exp_(), 1, 400),
    "views are free": (lambda x: x.t()[1:].unsqueeze(0).expand(3, -1, -1).detach(), 0, 0),
    "a view that calls itself none": (lambda x: torch.ops.aten._unsafe_view(x, (50,)), 0, 0),
    "several views": (lambda x: x.unbind(0), 0, 0),
    "a copy is not": (lambda x: x.t().contiguous(), 1, 400),
    "memory is free": (lambda x: (torch.empty_like(x), x.new_empty(3)), 0, 0),
    "filling it is not": (lambda x: torch.zeros_like(x), 1, 400),
    "expanded tensors have few bytes": (lambda x: x[:1, :1].expand(100, 100).sum(), 1, 204),
    "a product and a sum": (lambda x: (x @ x.t()).sum(), 2, 400 + 400 + 404),
}


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("device", [CPU, META], ids=str)
def test_known_functions(name: str, device: torch.device) -> None:
    function, launches, num_bytes = KNOWN[name]
    x = X.clone().to(device)
    assert count_launches(lambda: function(x), device) == Launches(launches, 0, num_bytes)


def test_looking_at_a_number_counts() -> None:
    assert count_launches(lambda: bool(X.sum() > 0), CPU).count == 3


def test_the_backward_pass_counts() -> None:
    x = X.clone().requires_grad_()
    forward = count_launches(lambda: x.exp(), CPU).count
    both = count_launches(lambda: torch.autograd.grad(x.exp(), x, torch.ones_like(x)), CPU).count
    assert (forward, both) == (1, 3)  # exp; then ones_like and a product


def test_what_another_device_does_does_not_count() -> None:
    x = X.to(META)
    assert count_launches(lambda: (X.exp(), x.exp()), META).count == 1


# Kernels of Triton ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Launch:
    kernel: str
    programs: int
    steps: int
    num_bytes: int


class FakeTriton:
    """A backend for log Z and draws, in the shape of the real one: kernels that can be left out."""

    NAME = "triton"

    def __init__(self) -> None:
        self.launches: list[Launch] = []
        self.runs: list[bool] = []

    @contextmanager
    def recorded_launches(self, run: bool = True) -> Iterator[list[Launch]]:
        self.runs.append(run)
        self.launches = []
        yield self.launches

    def unsupported(self, chain: Chain) -> str | None:
        return "there are too many states" if chain.emissions.shape[-1] > 100 else None

    def _launch(self, kernel: str, chain: Chain, *outputs: Tensor) -> None:
        tensors = chain.emissions, *outputs
        num_bytes = sum(x.numel() * x.element_size() for x in tensors)
        self.launches.append(Launch(kernel, *chain.emissions.shape[:2], num_bytes))

    def filter(self, chain: Chain) -> tuple[tuple[Tensor, ...], None]:
        log_z = torch.empty(len(chain.emissions), dtype=torch.float64)
        self._launch("filter", chain, log_z)
        return (log_z,), None

    def log_partition(self, chain: Chain, state: tuple[Tensor], dtype: torch.dtype) -> Tensor:
        return state[0].to(dtype)

    def log_partition_adjoint(
        self, chain: Chain, state: tuple[Tensor], grad: Tensor, needs: object
    ) -> list[Tensor]:
        by_emissions = torch.empty_like(chain.emissions)
        self._launch("filter_adjoint", chain, by_emissions)
        return [by_emissions, torch.empty_like(chain.transitions)]

    def sample_paths(self, chain: Chain, state: object, uniform: Tensor) -> Tensor:
        """Paths that nobody wrote must not be used as they are."""
        paths = torch.empty(uniform.shape, dtype=torch.long)
        self._launch("sample_paths", chain, paths)
        return paths


@pytest.fixture
def triton(monkeypatch: pytest.MonkeyPatch) -> FakeTriton:
    fake = FakeTriton()
    module = SimpleNamespace(recorded_launches=fake.recorded_launches)
    monkeypatch.setitem(sys.modules, TRITON_BACKEND, module)
    structure = registry._structures[Chain]
    others = [backend for backend in structure.backends if backend.NAME != "triton"]
    monkeypatch.setitem(registry._structures, Chain, replace(structure, backends=(fake, *others)))
    return fake


@pytest.mark.parametrize("contender", ["triton", "structdist"])
def test_kernels_are_counted_and_left_out(triton: FakeTriton, contender: str) -> None:
    counted = count(BY_NAME[contender], LOG_Z, SIZE, CPU)
    assert counted.how == "by triton"
    assert counted.forward.steps == SIZE.length
    assert counted.forward_backward is not None
    assert counted.forward_backward.steps == 2 * SIZE.length
    assert triton.runs == [False, False]
    assert [launch.kernel for launch in triton.launches] == ["filter", "filter_adjoint"]
    num_bytes = sum(launch.num_bytes for launch in triton.launches)
    assert counted.forward_backward.num_bytes > num_bytes
    by_rescaled = count(BY_NAME["rescaled"], LOG_Z, SIZE, CPU)
    assert counted.forward.count < by_rescaled.forward.count


def test_what_was_never_written_is_zero(triton: FakeTriton) -> None:
    """Else a draw of garbage would be no path, and its one-hot form an error."""
    counted = count(BY_NAME["triton"], SAMPLE, SIZE, CPU)
    assert counted.forward.steps == 2 * SIZE.length  # filter, and back
    assert counted.forward_backward is None


def test_structdist_is_counted_by_the_next_backend_that_can(triton: FakeTriton) -> None:
    many = Size(1, 2, 101)
    assert count(BY_NAME["structdist"], LOG_Z, many, CPU).how == "by rescaled"
    with pytest.raises(NotCountedError, match="there are too many states"):
        count(BY_NAME["triton"], LOG_Z, many, CPU)


def test_without_the_module_there_are_no_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, TRITON_BACKEND, None)  # what import makes an ImportError
    assert count_launches(lambda: X.exp(), CPU, dry=True) == Launches(1, 0, 400)


# Dry runs of contenders -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "operation"), [("reference", "log-z"), *(("rescaled", x) for x in OPERATIONS)]
)
def test_launches_of_ours_grow_with_the_steps_and_not_with_the_batch(
    name: str, operation: str
) -> None:
    def launches(size: Size) -> int:
        return count(BY_NAME[name], OPERATIONS[operation], size, CPU).forward.count

    short, longer, longest = (replace(SIZE, length=n) for n in (3, 5, 7))
    assert launches(short) == launches(replace(short, batch=7, states=5))
    assert launches(longest) - launches(longer) == launches(longer) - launches(short) > 0


def test_noise_and_checks_are_made_as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The compiled library makes them on the CPU, in no operation of torch."""

    def on_the_cpu_only(*arguments: object) -> None:
        raise AssertionError("this is not done on a GPU")

    monkeypatch.setattr(noise, "gumbel_noise_of", on_the_cpu_only)
    monkeypatch.setattr(library, "all_below_inf", on_the_cpu_only)
    counted = count(BY_NAME["structdist"], OPERATIONS["gumbel-ffbs"], SIZE, CPU)
    assert counted.forward.count > 0


def test_plain_torch_is_counted_on_meta_tensors() -> None:
    seen: list[torch.device] = []

    def log_z(emissions: Tensor, transitions: Tensor) -> Tensor:
        seen.append(emissions.device)
        return emissions.logsumexp(-1).sum(-1)

    counted = count(Contender("plain", works(log_z=log_z)), LOG_Z, SIZE, CPU)
    assert counted.how == "on meta tensors"
    assert counted.forward.count == 2
    assert {device.type for device in seen} == {"meta"}


def test_who_looks_at_numbers_is_counted_on_the_cpu() -> None:
    def log_z(emissions: Tensor, transitions: Tensor) -> Tensor:
        return emissions.sum((1, 2)) * (2 if emissions.max().item() > 1e9 else 3)

    looking = Contender("looking", works(log_z=log_z))
    assert count(looking, LOG_Z, SIZE, CPU).how == "on cpu"
    huge = replace(looking, bytes_needed=lambda size: 10**12)
    with pytest.raises(NotCountedError, match="too large for a dry run on cpu"):
        count(huge, LOG_Z, SIZE, CPU)


def test_large_sizes_take_no_memory_on_meta_tensors() -> None:
    pytest.importorskip("torch_struct")
    size = Size(1024, 128, 64)
    assert torch_struct_bytes(size) > 10**11
    counted = count(BY_NAME["torch-struct"], LOG_Z, size, CPU)
    assert counted.forward_backward is not None
    assert counted.forward_backward.num_bytes > torch_struct_bytes(size)


def test_who_cannot_be_counted_says_so() -> None:
    with pytest.raises(NotCountedError, match="out of torch's sight"):
        count(Contender("boxed", {"log-z": BOXED}), LOG_Z, SIZE, CPU)
    with pytest.raises(NotCountedError, match="on a GPU only"):
        count(BY_NAME["torch-struct-genbmm"], LOG_Z, SIZE, CPU)


# Tables ---------------------------------------------------------------------------------------


def sampler_row(**more: object) -> Record:
    return asdict(Row("log-z", "someone", 1, 2, 3)) | more


def test_columns_are_there_where_there_is_something_to_tell() -> None:
    def columns(*rows: Record) -> list[str]:
        [table] = sampler_tables(Results("samplers", {}, {}, list(rows)))
        assert {len(line) for line in table.rows} == {len(table.columns)}
        return table.columns

    before = {key: x for key, x in sampler_row().items() if key not in ("launches", "estimate")}
    plain = columns(before)  # of results that are older than launches
    assert columns(sampler_row()) == plain
    launches = {"how": "on cpu", "forward": {"count": 1234}, "forward_backward": None}
    assert columns(sampler_row(launches=launches), sampler_row()) == [
        *plain,
        "launches",
        "f+b launches",
    ]
    estimate = {"card": "A100", "forward": 0.0025, "forward_backward": None}
    full = sampler_row(launches=launches, estimate=estimate)
    assert columns(full)[-2:] == [f"{LABEL}: A100, ms", f"f+b {LABEL}: A100, ms"]
    [table] = sampler_tables(Results("samplers", {}, {}, [full]))
    assert table.rows[0][-4:] == ["1,234", "-", "2.50", "-"]


# The model ------------------------------------------------------------------------------------


def test_seconds_are_launches_and_steps_and_bytes() -> None:
    card = Card("mine", bandwidth=1e9, launch=1e-3, step=1e-5)
    assert card.seconds(Launches(0)) == 0
    assert card.seconds(Launches(3)) == pytest.approx(3e-3)
    assert card.seconds(Launches(3, 200)) == pytest.approx(5e-3)
    assert card.seconds(Launches(3, 200, 10**7)) == pytest.approx(15e-3)


def test_an_estimate_is_labelled_and_names_its_card() -> None:
    counted = count(BY_NAME["rescaled"], LOG_Z, SIZE, CPU)
    estimate = Estimate.of(counted, CARDS["A100"])
    assert (estimate.card, estimate.label) == ("A100", LABEL)
    assert estimate.forward == CARDS["A100"].seconds(counted.forward)
    assert estimate.forward_backward == CARDS["A100"].seconds(counted.forward_backward)
    no_gradient = count(BY_NAME["rescaled"], SAMPLE, SIZE, CPU)
    assert Estimate.of(no_gradient, CARDS["A100"]).forward_backward is None


def test_cards_are_found_by_name_or_described() -> None:
    assert find_card("A100") is find_card("a100") is CARDS["A100"]
    assert CARDS["A100"].step == pytest.approx(0.8e-6)
    custom = find_card("launch=5e-6,bandwidth=1.5e12,step=0.8e-6")
    assert custom == Card("custom card", bandwidth=1.5e12, launch=5e-6, step=0.8e-6)


def test_the_page_on_gpus_names_cards_that_are_known() -> None:
    named = re.findall(r"--(?:card|estimate) (\S+)", PAGE.read_text())
    assert len(named) >= 3
    for text in named:
        find_card(text)


def test_figures_of_cards_are_in_bytes_and_seconds() -> None:
    """A slip by a thousand would show."""
    for card in CARDS.values():
        assert 2e11 < card.bandwidth < 2e13
        assert 1e-6 < card.launch < 2e-5
        assert 2e-7 < card.step < 2e-6


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is not one of T4"),
        ("GTX", "nor like bandwidth=1.5e12,launch=5e-6,step=0.8e-6"),
        ("launch=1,step=1", "lacks bandwidth"),
        ("launch=1,step=1,speed=1", "'speed' is not one of bandwidth, launch, step"),
        ("launch=1,step=1,step=1", "'step' is not one of .*, once"),
        ("launch=1,step=1,bandwidth=", "'' is not a number"),
        ("launch=1,step=-1,bandwidth=1", "'-1' is not positive"),
        ("launch=1,step=inf,bandwidth=1", "'inf' is not positive and finite"),
        ("launch=nan,step=1,bandwidth=1", "'nan' is not positive and finite"),
        ("A100,launch=1", "'A100' is not one of bandwidth"),
    ],
)
def test_what_is_no_card_is_refused(text: str, message: str) -> None:
    with pytest.raises(UnknownCardError, match=message):
        find_card(text)
