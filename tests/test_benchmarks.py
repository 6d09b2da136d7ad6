"""The command line of the benchmarks, at sizes that take no time. What is fast is not asked."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

from benchmarks.commands import app
from benchmarks.overhead import RUNS_PER_TURN

OUTPUTS = (("json", "json"), ("plot", "png"), ("markdown", "md"))
PNG = b"\x89PNG"
TINY = {
    "samplers": "--batch 2 --length 3 --states 2 --operation log-z,viterbi --quick --budget 0.02",
    "estimates": "--size 2x3x2 --operation log-z,viterbi",
    "gradients": "--quick --runs 4 --length 3 --states 2 --calls 3 --estimator "
    "gumbel-crf,simple,reinforce-ms",
    "scaling": "--base 1,2,2 --batch 1,2 --length 2,4 --states 2,3 --operation log-z --quick "
    "--budget 0.02",
    "load": "--size 2x3x2 --busy 1 --quick --budget 0.02",
    "overhead": "--rounds 3",
    "train-step": "--batch 2 --length 3 --states 2 --hidden 4 --vocabulary 8 --quick "
    "--budget 0.02 --work gumbel-crf-st,reinforce-ms,importance-nll",
}


@pytest.fixture(autouse=True, scope="module")
def _threads_as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, [str(a) for a in arguments], catch_exceptions=False)


def run_tiny(command: str, *arguments: object) -> Result:
    return run(command, *TINY[command].split(), "--threads", "1", *arguments)


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Where each command's JSON, plot and page are: `samplers.json`, ..."""
    folder = tmp_path_factory.mktemp("results")
    for command in TINY:
        outputs = (f"--{kind}={folder / command}.{end}" for kind, end in OUTPUTS)
        result = run_tiny(command, *outputs)
        assert result.exit_code == 0, result.output
    return {command: folder / command for command in TINY}


@pytest.mark.parametrize("command", TINY)
def test_every_output_is_written(results: dict[str, Path], command: str) -> None:
    path = results[command]
    assert path.with_suffix(".png").read_bytes().startswith(PNG)
    page = path.with_suffix(".md").read_text()
    assert f"({command}.png)" in page
    assert page.count("| ---") >= 1


@pytest.mark.parametrize("command", TINY)
def test_json_says_where_and_how(results: dict[str, Path], command: str) -> None:
    content = json.loads(results[command].with_suffix(".json").read_text())
    assert set(content) == {"command", "environment", "settings", "rows", "summary", "schema"}
    assert content["command"] == command
    wanted = {
        "torch",
        "threads",
        "idle_threads",
        "device",
        "backend",
        "os",
        "python",
        "revision",
        "date",
        "command",
    }
    assert wanted <= set(content["environment"])
    assert content["environment"]["threads"] == 1
    assert content["rows"]


def test_samplers_times_all_who_offer_the_operation(results: dict[str, Path]) -> None:
    rows = json.loads(results["samplers"].with_suffix(".json").read_text())["rows"]
    both = {"structdist", "reference", "torch-struct", "pytorch-crf"}
    for operation, everyone in (("log-z", both | {"jax"}), ("viterbi", both)):
        mine = [row for row in rows if row["operation"] == operation]
        assert {row["contender"] for row in mine} == everyone
        for row in mine:
            if row["status"] == "ok":
                timing = row["forward"]
                assert 0 < timing["lower"] <= timing["median"] <= timing["upper"]
                assert row["contender"] == "jax" or row["forward_bytes"] > 0
            assert row["status"] != "failed", row["detail"]
    assert [row["contender"] for row in rows if row["operation"] == "floor"] == ["torch.mm"]


def test_samplers_counts_launches(results: dict[str, Path]) -> None:
    rows = json.loads(results["samplers"].with_suffix(".json").read_text())["rows"]
    counted = {row["contender"]: row["launches"] for row in rows if row["operation"] == "log-z"}
    for name in ("structdist", "reference", "torch-struct", "pytorch-crf"):
        assert 0 < counted[name]["forward"]["count"] < counted[name]["forward_backward"]["count"]
    assert all(row["launches"] is None for row in rows if row["contender"] == "jax")
    assert all(row["estimate"] is None for row in rows)
    page = results["samplers"].with_suffix(".md").read_text()
    assert "| launches | f+b launches |\n" in page


def test_samplers_estimates_beside_what_it_measures(tmp_path: Path) -> None:
    outputs = tmp_path / "x.json", tmp_path / "x.md"
    names = "--operation", "log-z", "--contender", "structdist,rescaled,torch-struct-genbmm"
    files = "--json", outputs[0], "--markdown", outputs[1]
    result = run_tiny("samplers", "--estimate", "h100", *names, *files)
    assert result.exit_code == 0, result.output
    content = json.loads(outputs[0].read_text())
    assert content["settings"]["estimate"]["label"] == "estimate, not measured"
    assert content["settings"]["estimate"]["bandwidth"] == 3.35e12
    rows = {(row["operation"], row["contender"]): row for row in content["rows"]}
    estimate = rows["log-z", "rescaled"]["estimate"]
    assert (estimate["card"], estimate["label"]) == ("H100", "estimate, not measured")
    assert 0 < estimate["forward"] < estimate["forward_backward"]
    assert rows["log-z", "rescaled"]["forward"]["median"] > 0  # measured here, and kept apart
    genbmm = rows["log-z", "torch-struct-genbmm"]
    assert genbmm["status"] == "skipped"
    assert genbmm["detail"].startswith("does not run on cpu here; no estimate: ")
    assert "estimate, not measured: H100, ms" in outputs[1].read_text()


def test_estimates_are_labelled_and_come_without_times(results: dict[str, Path]) -> None:
    content = json.loads(results["estimates"].with_suffix(".json").read_text())
    assert content["settings"]["card"]["name"] == "A100"
    for row in content["rows"]:
        assert not {"forward", "forward_backward"} & set(row)
        assert row["status"] == "skipped" or row["estimate"]["label"] == "estimate, not measured"
    assert {"rescaled", "torch-struct"} <= {
        row["contender"] for row in content["rows"] if row["status"] == "ok"
    }
    page = results["estimates"].with_suffix(".md").read_text()
    assert page.startswith("## Estimates for a GPU, not measurements")
    assert "f+b estimate, not measured: A100, ms |" in page


def test_scaling_fits_exponents(results: dict[str, Path]) -> None:
    content = json.loads(results["scaling"].with_suffix(".json").read_text())
    assert {line["axis"] for line in content["summary"]} == {"batch", "length", "states"}
    assert all(line["memory_exponent"] > 0 for line in content["summary"])


def test_load_has_ratios_to_the_quiet_machine(results: dict[str, Path]) -> None:
    rows = json.loads(results["load"].with_suffix(".json").read_text())["rows"]
    assert [(row["operation"], row["busy"]) for row in rows] == [("log-z", 0), ("log-z", 1)]
    assert rows[0]["over_quiet"] == rows[0]["mean_over_quiet"] == 1.0
    for row in rows:
        assert row["over_quiet"] == row["time"]["median"] / rows[0]["time"]["median"]


def test_overhead_is_in_units_of_torch(results: dict[str, Path]) -> None:
    rows = json.loads(results["overhead"].with_suffix(".json").read_text())["rows"]
    unit, *others = rows
    assert (unit["operation"], unit["over_unit"]) == ("torch.logsumexp", 1.0)
    for row in others:
        assert row["over_unit"] == row["time"]["median"] / unit["time"]["median"] > 0
        assert row["time"]["repeats"] == 3 * RUNS_PER_TURN
    wholes = {(row["operation"], row["backward"]) for row in others if row["part"] is None}
    assert wholes == {
        *((name, False) for name in ("construct", "log-z", "marginals", "argmax", "sample")),
        *((name, True) for name in ("log-z", "log-prob", "entropy", "rsample")),
    }
    parts = [row["part"] for row in others if row["part"] is not None]
    assert parts == ["construct", "forward", "sum", "backward", "release"]


@pytest.mark.parametrize("command", ["samplers", "train-step"])
def test_busy_neighbours_are_told_of(
    results: dict[str, Path], command: str, tmp_path: Path
) -> None:
    page, file = tmp_path / "page.md", results[command].with_suffix(".json")
    result = run_tiny(command, "--busy", 1, "--markdown", page, "--compare", file)
    assert result.exit_code == 0, result.output
    assert "beside 1 busy process" in result.output
    assert "beside 1 busy process" in page.read_text()
    assert "Not like for like: busy neighbours changed." in result.output
    assert "Ratio to the earlier run" in result.output
    assert "busy process" not in results[command].with_suffix(".md").read_text()


@pytest.mark.parametrize("command", sorted(TINY.keys() - {"samplers", "train-step"}))
def test_compare_prints_ratios(results: dict[str, Path], command: str) -> None:
    result = run_tiny(command, "--compare", results[command].with_suffix(".json"))
    assert result.exit_code == 0, result.output
    assert "Ratio to the earlier run" in result.output
    if command == "gradients":  # the same seed, so the same numbers
        assert "1.00x" in result.output


def test_a_report_begins_with_its_preface(results: dict[str, Path], tmp_path: Path) -> None:
    preface, page = tmp_path / "preface.md", tmp_path / "PAGE.md"
    preface.write_text("# What to conclude\n\nLittle.\n")
    file = results["gradients"].with_suffix(".json")
    assert run("report", file, "--preface", preface, "--out", page).exit_code == 0
    assert page.read_text().startswith("# What to conclude\n\nLittle.\n\nMade by")


def test_report_is_a_page_of_all_sections(results: dict[str, Path]) -> None:
    files = [path.with_suffix(".json") for path in results.values()]
    page = files[0].parent / "RESULTS.md"
    result = run("report", *files, "--out", page)
    assert result.exit_code == 0, result.output
    text = page.read_text()
    for command in TINY:
        assert f"(results/{command}.png)" in text
        assert (page.parent / "results" / f"{command}.png").read_bytes().startswith(PNG)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("samplers --batch 0", "1 or more"),
        ("samplers --length 3,x", "list of integers"),
        ("samplers --operation magic", "not one of"),
        ("samplers --contender nobody", "not one of"),
        ("samplers --budget -1", "positive"),
        ("samplers --threads 0", "threads"),
        ("samplers --device magic", "device"),
        ("samplers --json /no/such/place/x.json", "no directory"),
        ("samplers --json /", "is a directory"),
        ("samplers --plot x.pdf", ".png"),
        ("samplers --compare /no/such/file.json", "cannot read"),
        ("samplers --no-such-option", "No such option"),
        ("samplers --estimate B7", "'B7' is not one of T4, V100, A100"),
        ("samplers --estimate bandwidth=1e12", "lacks launch, step"),
        ("estimates --card step=1,step=2", "'step' is not one of bandwidth, launch, step, once"),
        ("estimates --card bandwidth=fast,launch=1,step=1", "'fast' is not a number"),
        ("estimates --card bandwidth=0,launch=1,step=1", "positive and finite"),
        ("gradients --temperature 0", "positive"),
        ("gradients --function magic", "not one of"),
        ("gradients --length 1,4", "no neighbours"),
        ("gradients --times /no/such/file.json", "cannot read"),
        ("gradients --runs 1", "runs"),
        ("scaling --base 1,2", "B,T,K"),
        ("samplers --busy -1", "busy"),
        ("overhead --rounds 0", "rounds"),
        ("load --busy 0", "1 or more"),
        ("load --size 3x4", "BxTxK"),
        ("report", "Missing argument"),
        ("report /no/such/file.json", "cannot read"),
        ("magic", "No such command"),
    ],
)
def test_bad_arguments_exit_with_2_and_a_message(arguments: str, message: str) -> None:
    result = run(*arguments.split())
    assert result.exit_code == 2, result.output
    assert message in " ".join(result.output.replace("│", " ").split())


def test_cuda_without_cuda_is_a_bad_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    result = run("samplers", "--device", "cuda")
    assert result.exit_code == 2
    assert "no CUDA device" in result.output
    assert "--estimate A100" in result.output
    assert result.output.count("\n") == 1


@pytest.mark.parametrize(
    "content", ["not json", "[]", "{}", '{"schema": 1}', '{"schema": 1, "magic": 2}']
)
def test_compare_refuses_what_is_no_result(tmp_path: Path, content: str) -> None:
    path = tmp_path / "old.json"
    path.write_text(content)
    assert run("samplers", "--compare", path).exit_code == 2


def test_compare_refuses_results_of_another_command(results: dict[str, Path]) -> None:
    result = run_tiny("gradients", "--compare", results["samplers"].with_suffix(".json"))
    assert result.exit_code == 2
    assert "not of gradients" in " ".join(result.output.replace("│", " ").split())
