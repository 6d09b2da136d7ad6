"""`python -m models report`: a page for a run of each task, with the runs it is compared to."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from models.commands import main
from models.runs import read_metrics
from models.training.run_files import MetricsFile
from tests.models.report.document import Node, parse
from tests.models.tiny_runs import train

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")

NUMBERS = ["facts", "curves", "comparison"]
TEMPLATES = ["ngrams", "states"]
SECTIONS = {
    "latent": [*NUMBERS, "sentences", "templates", *TEMPLATES],
    "text": [*NUMBERS, "sentences", *TEMPLATES],
    "rnnlm": NUMBERS,
    "paraphrase": [*NUMBERS, "sentences", "templates", *TEMPLATES],
}
COMPARED = {
    "latent": ["latent", "rnnlm"],
    "text": ["text"],
    "rnnlm": ["rnnlm", "latent"],
    "paraphrase": ["paraphrase"],
}


def report(run: Path, *options: object) -> None:
    main(["report", *(str(option) for option in (run, *options))])


def exit_code(run: Path, *options: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        report(run, *options)
    return stopped.value.code


def page_of(run: Path, *options: object) -> Node:
    report(run, *options)
    return parse((run / "report.html").read_text(encoding="utf-8"))


def sections(page: Node) -> list[str | None]:
    return [section.attributes["id"] for section in page.all("section")]


def compared(page: Node) -> list[str]:
    """The runs in the comparison; those of the curves are the same."""
    names = [row.text for row in page.one("section", id="comparison").all("th", scope="row")]
    first_chart = page.one("section", id="curves").all("figure")[0]
    assert len(first_chart.all("li")) == len(names)
    assert all(name in first_chart.one("desc").text for name in names)
    return names


@pytest.fixture(scope="module", autouse=True)
def _few_sentences() -> Iterator[None]:
    """Most of the time would go into writing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("models.report.collect.TABLES", 2)
        patch.setattr("models.report.collect.TEMPLATES", 2)
        yield


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Of three tasks, and one without templates."""
    folder = tmp_path_factory.mktemp("runs")
    once = {"epochs": 1}
    train(folder / "latent", training=once)
    train(folder / "rnnlm", objective={"estimator": "rnnlm"}, training=once)
    train(folder / "text", "text", training=once)
    train(folder / "paraphrase", "paraphrase", training=once | {"learning_rate": 0.05})
    return folder


@pytest.fixture
def copied(runs, tmp_path):
    """A run alone in its folder."""
    without_page = shutil.ignore_patterns("report.html")
    return shutil.copytree(runs / "rnnlm", tmp_path / "alone" / "rnnlm", ignore=without_page)


@pytest.fixture(scope="module")
def pages(runs):
    return {name: page_of(runs / name) for name in SECTIONS}


@pytest.mark.parametrize("name", SECTIONS)
def test_each_kind_of_run(pages, name):
    page = pages[name]
    assert sections(page) == SECTIONS[name]
    assert compared(page) == COMPARED[name]
    assert page.one("h1").text.startswith(f"{name}: ")


@pytest.mark.parametrize("name", ["latent", "paraphrase"])
def test_what_can_be_chosen_is_what_the_run_writes_from(pages, name):
    """Tables, or captions; under each at most as many templates as asked."""
    page = pages[name]
    labels = [option.text for option in page.one("select", id="browser-table").all("option")]
    assert len(labels) == 2
    assert all(("name[" in label) == (name == "latent") for label in labels)
    outputs = [fold.all("dl") for fold in page.one("noscript").all("details")]
    assert all(1 <= len(found) <= 2 for found in outputs)


@pytest.mark.usefixtures("pages")
def test_twice_the_same_bytes(runs):
    first = (runs / "latent" / "report.html").read_bytes()
    report(runs / "latent")
    assert (runs / "latent" / "report.html").read_bytes() == first
    shutil.copytree(runs / "latent", runs / "aside" / "latent")
    report(runs / "aside" / "latent", "--compare", runs / "rnnlm")
    assert (runs / "aside" / "latent" / "report.html").read_bytes() == first


def test_compare(runs):
    """With those that are named, whatever their task, and each once."""
    options = ["--compare", runs / "text", runs / "rnnlm", runs / "text"]
    assert compared(page_of(runs / "rnnlm", *options)) == ["rnnlm", "text"]


def test_compare_with_none(runs, capsys):
    assert compared(page_of(runs / "rnnlm", "--compare")) == ["rnnlm"]
    assert capsys.readouterr().out == f"report: {runs / 'rnnlm' / 'report.html'}\n"


def test_output(runs, copied, tmp_path, capsys):
    path = tmp_path / "new" / "page.html"
    report(copied, "--output", path)
    assert capsys.readouterr().out.endswith(f"report: {path}\n")
    assert sections(parse(path.read_text(encoding="utf-8"))) == NUMBERS
    assert not (copied / "report.html").exists()
    assert [file.name for file in path.parent.iterdir()] == ["page.html"]


def test_the_curves_are_those_of_the_log(runs, copied):
    """Also where a run was resumed: the steps that were done again are there once."""
    old = read_metrics(copied / "metrics.csv")
    assert [row["step"] for row in old if row["metric"] == "dev/bound"] == ["3"]
    log = MetricsFile(copied / "metrics.csv", resumed_step=4)
    log.log_metrics({"dev/bound": 7.25}, 7)
    log = MetricsFile(copied / "metrics.csv", resumed_step=6)
    log.log_metrics({"dev/bound": 6.5}, 7)
    log.log_metrics({"dev/bound": 6.75}, 11)
    chart = page_of(copied).one("section", id="curves").all("figure")[0]
    [line] = chart.all("polyline")
    assert len(line.attributes["points"].split()) == 3
    assert "6.750" in chart.one("ul").text  # the last value
    [row] = page_of(copied).one("section", id="comparison").one("tbody").all("tr")
    cells = [cell.text for cell in row.all("td")]
    assert "6.500" in cells  # the best
    assert cells[-1] == "2"


def test_numbers_that_are_none_do_no_harm(copied):
    log = MetricsFile(copied / "metrics.csv")
    names = ("dev/bound", "dev/ppl", "dev/entropy", "dev/states_in_use", "train/loss")
    for step, value in ((0, "nan"), (1, "1.5"), (2, "inf"), (3, "nan")):
        log.log_metrics({name: float(value) for name in names}, step)
    page = page_of(copied)
    assert sections(page) == NUMBERS
    charts = page.one("section", id="curves").all("figure")
    assert len(charts) == len(names)
    assert all(len(chart.all("circle")) == 1 for chart in charts)
    cells = page.one("section", id="comparison").one("tbody").all("td")
    assert [cell.text for cell in cells].count("1.500") == 4  # where the bound is a number


def test_a_log_without_a_number(copied):
    MetricsFile(copied / "metrics.csv")
    assert sections(page_of(copied)) == ["facts", "comparison"]


def test_a_folder_that_is_no_run(tmp_path, capsys):
    assert exit_code(tmp_path) == 2
    assert "does not exist; train with `python -m models train" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["config.yaml", "metrics.csv"])
def test_a_run_without_a_file(copied, name, capsys):
    (copied / name).unlink()
    assert exit_code(copied) == 2
    expected = f"error: {copied} is not the folder of a run: no {name} can be read\n"
    assert expected in capsys.readouterr().err
    assert not (copied / "report.html").exists()


def test_a_folder_to_compare_with_that_is_no_run(runs, tmp_path, capsys):
    assert exit_code(runs / "rnnlm", "--compare", tmp_path) == 2
    assert (
        f"error: {tmp_path} is not the folder of a run: no metrics.csv" in capsys.readouterr().err
    )
