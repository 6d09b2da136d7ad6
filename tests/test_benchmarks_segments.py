"""Benchmarks of semi-Markov chains: are wrong answers caught, and is all of it told?"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor
from typer.testing import CliRunner, Result

from benchmarks import ratios
from benchmarks.checks import check
from benchmarks.commands import app
from benchmarks.contenders import Contender, Work
from benchmarks.problem import SegmentSize, Size
from benchmarks.ratios import ExtraMemory, Goal, Ratio, Side
from benchmarks.segment_works import REFERENCE, STRUCTDIST, TORCH_STRUCT, read_events
from benchmarks.structures import LINEAR_CHAIN, SEMI_MARKOV
from benchmarks.timing import Limits
from structdist import SemiMarkovCRF

CPU = torch.device("cpu")
SMALL = SegmentSize(batch=2, length=5, states=3, longest=3)
OPERATIONS = SEMI_MARKOV.operations
VALUES = ["log-z", "token-marginals", "marginals", "entropy", "viterbi"]
ONCE = Limits(budget=5.0, fewest=1, usual=1, most=2, shortest=0.0)
TINY = {
    "samplers": "--structure semi-markov --size 2x4x2x2 --operation log-z --quick",
    "scaling": "--structure semi-markov --base 1,3,2,2 --length 2,4 --longest 1,2 --states 2,3 "
    "--operation log-z --quick",
}


@pytest.fixture(autouse=True, scope="module")
def _threads_as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


# Answers -------------------------------------------------------------------------------------


def shared_noise(e: Tensor, t: Tensor, d: Tensor) -> Tensor:
    noise = torch.empty(e.shape[1], e.shape[2] + len(d)).exponential_().log().neg().to(e)
    return SemiMarkovCRF(e, t, d).rsample(noise=noise.expand(len(e), -1, -1))


def half_of_the_gradient_by_durations(e: Tensor, t: Tensor, d: Tensor) -> Tensor:
    return STRUCTDIST["log-z"](e, t, (d + d.detach()) / 2)


def leaky_labels(e: Tensor, t: Tensor, d: Tensor) -> Tensor:
    """A gradient even where all labels have the same reward."""
    labels = STRUCTDIST["gumbel-labels-st"](e, t, d)
    return labels + (e - e.detach()).sum(-1, keepdim=True)


def with_a_gap(e: Tensor, t: Tensor, d: Tensor) -> Tensor:
    """Draws whose first step is often in no segment."""
    sample = STRUCTDIST["sample"](e, t, d)
    sample[:, 0, 0] = 0
    return sample


WRONG: dict[str, tuple[str, Work, str]] = {
    "off by 1e-2": ("log-z", lambda e, t, d: STRUCTDIST["log-z"](e, t, d) + 1e-2, "value off"),
    "durations": ("log-z", half_of_the_gradient_by_durations, "gradient by durations"),
    "transposed": ("marginals", lambda e, t, d: STRUCTDIST["marginals"](e, t.mT, d), "value off"),
    "no best": ("viterbi", lambda e, t, d: e.argmin(-1), "off the best"),
    "no path": ("viterbi", lambda e, t, d: e.argmin(-1) + e.shape[-1], "off the best"),
    "no durations": ("sample", lambda e, t, d: STRUCTDIST["sample"](e, t, 0 * d), "whole paths"),
    "a gap": ("sample", with_a_gap, "whole paths"),
    "shared noise": ("gumbel-ffbs", shared_noise, "noise is shared"),
    "not hard": ("gumbel-ffbs-st", STRUCTDIST["gumbel-ffbs"], "not one-hot"),
    "leaky": ("gumbel-labels-st", leaky_labels, "constant reward"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_contender_is_caught(name: str) -> None:
    operation, work, what = WRONG[name]
    verdict = check(Contender(name, {operation: work}), OPERATIONS[operation], SMALL, CPU)
    assert what in (verdict.failure or "")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_structdist_is_right(operation: str) -> None:
    verdict = check(Contender("ours", STRUCTDIST), OPERATIONS[operation], SMALL, CPU)
    assert verdict.passed, verdict.failure


@pytest.mark.parametrize("operation", [*VALUES, "gumbel-labels-st"])
def test_the_reference_is_right(operation: str) -> None:
    verdict = check(Contender("reference", REFERENCE), OPERATIONS[operation], SMALL, CPU)
    assert verdict.passed, verdict.failure


@pytest.mark.parametrize("operation", ["log-z", "marginals", "entropy", "viterbi"])
@pytest.mark.parametrize("size", [SMALL, SegmentSize(2, 1, 2, 1), SegmentSize(1, 3, 2, 5)], ids=str)
def test_torch_struct_is_asked_for_the_same(operation: str, size: SegmentSize) -> None:
    pytest.importorskip("torch_struct")
    verdict = check(Contender("torch-struct", TORCH_STRUCT), OPERATIONS[operation], size, CPU)
    assert verdict.passed, verdict.failure


def chains(size: SegmentSize, seed: int = 0) -> SemiMarkovCRF:
    generator = torch.Generator().manual_seed(seed)
    inputs = size.inputs(lambda shape: torch.randn(shape, generator=generator))
    return SemiMarkovCRF(*inputs.scores)


def test_hard_and_relaxed_events_are_read_alike() -> None:
    crf = chains(replace(SMALL, batch=50))
    generator = torch.Generator().manual_seed(1)
    noise = -torch.empty(50, *crf.noise_shape).exponential_(generator=generator).log()
    hard = crf.rsample(noise=noise, straight_through=True)
    paths = read_events(hard)
    assert len(paths.unique(dim=0)) > 5  # not one and the same
    assert crf.event_of(paths).equal(hard)
    for temperature in (0.1, 1.0, 10.0):
        assert read_events(crf.rsample(noise=noise, temperature=temperature)).equal(paths)


def test_outcomes_are_the_places_of_segmentations() -> None:
    size = SegmentSize(batch=1, length=4, states=2, longest=3)
    every = chains(size).enumerate_support()[:, 0]
    assert sorted(SEMI_MARKOV.outcomes(every, size).tolist()) == list(range(52))
    nothing = torch.full((3, 4, 3), 0.0)  # labels 0 that begin nowhere
    assert SEMI_MARKOV.outcomes(nothing, size).tolist() == [52] * 3


def test_only_tilings_are_hard_events() -> None:
    every = chains(SegmentSize(batch=1, length=3, states=2, longest=2)).enumerate_support()[:, 0]
    assert SEMI_MARKOV.is_hard(every)
    one = every[0]
    beyond = torch.zeros_like(one)
    beyond[0, 1, 0] = beyond[2, 1, 0] = 1  # two steps from the last
    twice = torch.ones_like(one)
    for wrong in (0.5 * one, 0 * one, twice, beyond):
        assert not SEMI_MARKOV.is_hard(wrong[None])


# Ratios --------------------------------------------------------------------------------------


def test_a_ratio_has_its_spread_and_its_goal() -> None:
    ratio = Ratio("same", Side(SMALL), Side(SMALL), Goal(1e-9, at_least=True), "a note")
    [row] = ratios.run([ratio], 3, ONCE)
    value = row["value"]
    assert 0 < value["lowest"] <= value["median"] <= value["highest"]
    assert (row["reached"], row["detail"], value["rounds"]) == (True, "a note", 3)
    [row] = ratios.run([replace(ratio, goal=Goal(1e-9))], 1, ONCE)
    assert row["reached"] is False


def test_a_side_that_is_wrong_has_no_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = [Contender("structdist", {"log-z": WRONG["off by 1e-2"][1]})]
    monkeypatch.setattr(SEMI_MARKOV, "contenders", wrong, raising=False)
    [row] = ratios.run([Ratio("wrong", Side(SMALL), Side(SMALL), Goal(1))], 1, ONCE)
    assert (row["status"], row["value"], row["reached"]) == ("failed", None, None)
    assert row["detail"].startswith("log-z, structdist: value off")


def test_ratios_are_at_the_sizes_of_their_goals() -> None:
    sides = [(c.over, c.under) for c in ratios.segment_cases() if isinstance(c, Ratio)]
    sizes = {str(side.size) for pair in sides for side in pair}
    assert {f"B=16 T=256 L={n} K=32" for n in (8, 16, 64)} < sizes
    assert {"B=16 T=256 K=64", "B=16 T=256 L=1 K=64"} < sizes
    [memory] = [case for case in ratios.segment_cases() if isinstance(case, ExtraMemory)]
    assert (str(memory.size), memory.goal) == ("B=8 T=4000 L=100 K=64", Goal(0.7))


def test_linear_chains_are_measured_beside_those_who_are_there() -> None:
    works = [case.work for case in ratios.chain_cases()]
    sizes = ("B=100 T=38 K=20", "B=100 T=38 K=50", "B=16 T=256 K=64", "B=8 T=512 K=128")
    assert all(f"entropy over log Z, {size}" in works for size in sizes)
    here = Size(2, 3, 2)
    absent = replace(LINEAR_CHAIN.contenders[0], name="absent", module="no_such_module")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LINEAR_CHAIN, "contenders", (*LINEAR_CHAIN.contenders, absent), raising=False)
        beside = Ratio("beside", Side(here), Side(here, contender="absent"), Goal(1))
        [row] = ratios.run([beside], 1, ONCE)
    assert (row["status"], row["detail"]) == ("skipped", "no_such_module is not installed")


# The command line ----------------------------------------------------------------------------


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def written(folder: Path, command: str, *arguments: object) -> Path:
    """Where the outputs of a command are, but for what they end in."""
    path = folder / command
    outputs = (f"--{kind}={path}.{end}" for kind, end in (("json", "json"), ("markdown", "md")))
    result = run(command, *arguments, *outputs, f"--plot={path}.png", "--threads", 1)
    assert result.exit_code == 0, result.output
    return path


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("results")
    return {
        command: written(folder, command, *arguments.split(), "--budget", 0.02)
        for command, arguments in TINY.items()
    }


def content(path: Path) -> dict:
    return json.loads(path.with_suffix(".json").read_text())


def test_samplers_tells_of_segments(results: dict[str, Path]) -> None:
    found = content(results["samplers"])
    assert found["environment"]["structure"] == "semi-markov"
    assert {row["longest"] for row in found["rows"]} == {2}
    mine = {row["contender"]: row for row in found["rows"] if row["operation"] == "log-z"}
    assert set(mine) == {"structdist", "reference", "torch-struct"}
    assert all(row["status"] != "failed" for row in mine.values())
    page = results["samplers"].with_suffix(".md").read_text()
    assert page.startswith("## Samplers and inference, semi-markov")
    assert "**B=2 T=4 L=2 K=2**" in page


def test_scaling_goes_over_segments_too(results: dict[str, Path]) -> None:
    found = content(results["scaling"])
    assert {line["axis"] for line in found["summary"]} == {"length", "longest", "states"}
    page = results["scaling"].with_suffix(".md").read_text()
    assert "Claimed: O(T (K^2 + L K))" in page
    assert "| grows | B | T | L | K |" in page


def test_ratios_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, longer, _, _, _, _, memory = ratios.segment_cases(quick=True)
    monkeypatch.setitem(ratios.CASES, "semi-markov", lambda quick: [longer, memory])
    path = written(tmp_path, "ratios", "--structure=semi-markov", "--quick", "--budget", 0.02)
    rows = content(path)["rows"]
    assert [(row["status"], row["unit"]) for row in rows] == [("ok", "x"), ("ok", "GB")]
    assert 0 < rows[1]["value"]["median"] < 0.7
    assert "| at most 4 x |" in path.with_suffix(".md").read_text()
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")


def test_both_structures_have_a_place_in_a_report(results: dict[str, Path], tmp_path: Path) -> None:
    arguments = "--size 2x3x2 --operation log-z --contender structdist --quick --budget 0.02"
    linear = written(tmp_path, "samplers", *arguments.split())
    assert all("longest" not in row for row in content(linear)["rows"])
    page = tmp_path / "RESULTS.md"
    files = [path.with_suffix(".json") for path in (linear, results["samplers"])]
    result = run("report", *files, "--out", page)
    assert result.exit_code == 0, result.output
    for name in ("samplers", "samplers-semi-markov"):
        assert f"(results/{name}.png)" in page.read_text()
    assert run("report", files[1], files[1], "--out", page).exit_code == 2


def test_compare_matches_segments(results: dict[str, Path]) -> None:
    earlier = results["samplers"].with_suffix(".json")
    quickly = ["--budget", "0.02", "--threads", "1", "--contender", "structdist"]
    arguments = "samplers", *TINY["samplers"].split(), *quickly
    same = run(*arguments, "--compare", earlier)
    assert "no match" not in same.output
    longer = run(*arguments, "--size", "2x4x3x2", "--compare", earlier)
    assert "rows have no match" in longer.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("samplers --structure magic", "not one of linear-chain, semi-markov"),
        ("samplers --longest 2", "a linear-chain has none"),
        ("samplers --operation token-marginals", "which a linear-chain has"),
        ("samplers --structure semi-markov --operation pm-mrf", "which a semi-markov has"),
        ("samplers --structure semi-markov --contender jax", "which a semi-markov has"),
        ("samplers --structure semi-markov --size 2x3x4", "not a size BxTxLxK"),
        ("samplers --size 2x3x4x5", "not a size BxTxK"),
        ("samplers --structure semi-markov --size 2x3x0x4", "1 or more"),
        ("scaling --structure semi-markov --base 1,2,3", "four numbers are needed: B,T,L,K"),
        ("ratios --rounds 0", "rounds"),
        ("ratios --budget 0", "positive"),
    ],
)
def test_bad_arguments_exit_with_2_and_a_message(arguments: str, message: str) -> None:
    result = run(*arguments.split())
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.replace("│", " ").split())
