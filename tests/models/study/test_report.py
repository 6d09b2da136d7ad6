"""Tables and plots of studies, done, half done and not begun, in numbers that are known."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from models.files import write_json
from models.study.report import write_report
from models.study.tables import value_at
from tests.models.study.fake_runs import RUNS, by_name, evaluate, study, train

CURVES = {
    "rnnlm-0": ((9.0, 8.0, 7.5, 7.5), 0.5),
    "gumbel-0": ((20.0, 8.0, 7.0, 6.0), 1.0),
    "gumbel-1": ((22.0, 8.0, 7.0, 7.0), 1.0),
}


@pytest.fixture
def whole(tmp_path):
    asked = study(tmp_path)
    for name, run in by_name(asked).items():
        train(run, *CURVES[name])
        evaluate(asked, run, CURVES[name][0][-1])
    return asked


def section(page: str, title: str) -> list[list[str]]:
    """The cells of the table under that title, its header first."""
    own = page.partition(f"### {title}\n")[2].partition("\n### ")[0]
    rows = [line for line in own.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in row[1:-1].split("|")] for row in rows]
    return [row for row in cells if not row[0].startswith("---")]


def texts(drawing: ElementTree.ElementTree) -> set[str]:
    return {text.text for text in drawing.findall(".//{*}text")}


def test_results(whole):
    page = write_report(whole).read_text()
    assert "On the test split: 7 sentences, 3 importance samples." in page
    header, without, gumbel = section(page, "Results")
    assert header[:5] == ["", "seeds", "NLL", "PPL", "neg. ELBO"]
    assert header[5:] == ["entropy", "states in use"]
    assert without == ["RNNLM", "1", "7.50", "0.75", "-", "-", "-"]
    assert gumbel[:5] == ["Gumbel", "2", "6.50 ± 0.71", "0.65 ± 0.07", "7.50 ± 0.71"]
    assert gumbel[5:] == ["2.50 ± 0.00", "9.00 ± 0.00"]
    assert f"python -m models study {whole.path} --report" in page
    assert "`train --training.epochs=4 --training.dev_samples=2 --objective.estimator=rnnlm" in page
    assert "Not in the tables" not in page


def test_at_equal_time(whole):
    """The quickest with templates took 4 minutes; the language model was done after 2."""
    assert section(write_report(whole).read_text(), "At equal CPU time") == [
        ["", "seeds", "CPU min", "a quarter: 1 min", "half: 2 min", "all of it: 4 min"],
        ["RNNLM", "1", "2.00", "8.00", "7.50", "7.50"],
        ["Gumbel", "2", "4.00 ± 0.00", "21.00 ± 1.41", "8.00 ± 0.00", "6.50 ± 0.71"],
    ]


def test_values_between_epochs(whole):
    run = by_name(whole)["gumbel-0"]
    assert value_at(run, "dev/nll", 0.99) is None
    assert value_at(run, "dev/nll", 1.0) == 20.0
    assert value_at(run, "dev/nll", 1.25) == 17.0
    assert value_at(run, "dev/nll", 99.0) == 6.0


def test_where_the_nats_go(whole):
    parts = section(write_report(whole).read_text(), "Where the nats go")
    assert parts[0] == ["", "nats", "epoch 1", "epoch 2", "epoch 4"]
    assert [row[:2] for row in parts[1:]] == [
        ["Gumbel", part] for part in ("-log p(x given z)", "-log p(z)", "entropy", "bound")
    ]
    assert parts[-1][2:] == ["22.00 ± 1.41", "9.00 ± 0.00", "7.50 ± 0.71"]


def test_how_flat(whole):
    """Of four epochs, the last quarter is one."""
    flat = section(write_report(whole).read_text(), "How flat the curves are")
    told = ["at three quarters", "at the end", "change", "change in the last epoch"]
    assert flat[0] == ["", "seeds", *told, "epoch of the checkpoint"]
    assert flat[1] == ["RNNLM", "1", "7.50", "7.50", "0.00", "0.00", "3"]
    assert flat[2][2:5] == ["7.00 ± 0.00", "6.50 ± 0.71", "-0.50 ± 0.71"]


def test_plots(whole):
    write_report(whole)
    for name in ("by-epoch.svg", "by-cpu-time.svg"):
        drawing = ElementTree.parse(whole.folder / name)
        lines = drawing.findall(".//{*}polyline")
        assert [line.get("points").count(",") for line in lines] == [4, 4]
        assert {"RNNLM", "Gumbel"} <= texts(drawing)
    places = [float(pair.split(",")[1]) for pair in lines[1].get("points").split()]
    assert places == sorted(places)  # downward, to lower values
    assert places[0] < 0  # the first, 21, is beyond the axis


def test_half_done(whole, tmp_path):
    """Some runs are in the tables; of the others it is said how far they are."""
    longer = RUNS | {"more": {"settings": RUNS["gumbel"]["settings"]}}
    asked = study(tmp_path, runs=longer | {"last": {"seeds": [5]}})
    runs = by_name(asked)
    train(runs["gumbel-1"], CURVES["gumbel-1"][0][:3])
    train(runs["more-0"], (9.0, 8.0, 7.0, 6.0))
    other = replace(runs["rnnlm-0"].config.training, learning_rate=9.0)
    train(replace(runs["rnnlm-0"], config=replace(runs["rnnlm-0"].config, training=other)), (1.0,))
    page = write_report(asked).read_text()
    assert [row[:3] for row in section(page, "Results")[1:]] == [["Gumbel", "1", "6.00"]]
    assert page.endswith(
        "### Not in the tables\n\n"
        "- rnnlm-0: has other settings than the study, see training.learning_rate\n"
        "- gumbel-1: 3 of 4 epochs\n"
        "- more-0: trained, not evaluated\n"
        "- last-5: not started\n"
    )
    legend = {"Gumbel", "gumbel-1 (unfinished)", "more-0 (unfinished)"}
    assert legend <= texts(ElementTree.parse(asked.folder / "by-epoch.svg"))


def test_not_begun(tmp_path):
    page = write_report(study(tmp_path)).read_text()
    assert "No run is done yet." in page
    assert "- gumbel-1: not started" in page
    assert "Curves" not in page


def test_columns_for_control_and_scores(tmp_path):
    runs = {"a": RUNS["gumbel"] | {"seeds": [0]}}
    asked = study(tmp_path, runs=runs, score={"protocol": "e2e"})
    (run,) = asked.runs
    train(run, CURVES["gumbel-0"][0])
    names = ("slot_errors", "slot_errors_under_templates", "adherence", "different_orders")
    control = dict(zip(names, (0.01, 0.02, 0.98, 0.9), strict=True))
    evaluate(asked, run, 6.0, control=control, recovery={"v_measure": 0.61})
    assert "not scored" in write_report(asked).read_text()
    values = {"BLEU": 0.6715, "NIST": 8.6, "METEOR": None, "slots wrong": 3}
    scores = {name: {"value": value} for name, value in values.items()}
    write_json(run.folder / "scores.json", {"scores": scores})
    page = write_report(asked).read_text()
    found = dict(zip(*section(page, "Results"), strict=True))
    shares = {"slot errors": "1.00", "under templates": "2.00", "adherence": "98.00"}
    assert found.items() >= (shares | {"three orders": "90.00", "NMI": "61.00"}).items()
    header, row = section(page, "Scores of what was written")
    assert (header, row) == (["", "seeds", "BLEU", "NIST"], ["Gumbel", "1", "67.15", "8.60"])


def test_language_models_alone(tmp_path):
    """There is no bound, and nothing to take the time of."""
    asked = study(tmp_path, runs={"rnnlm": RUNS["rnnlm"]})
    train(asked.runs[0], *CURVES["rnnlm-0"])
    evaluate(asked, asked.runs[0], 7.0)
    page = write_report(asked).read_text()
    titles = [line for line in page.splitlines() if line.startswith("### ")]
    assert titles == ["### Results", "### How flat the curves are", "### Curves"]


def test_a_study_without_evaluation(tmp_path):
    asked = study(tmp_path, evaluate=None)
    for name, run in by_name(asked).items():
        train(run, *CURVES[name])
    page = write_report(asked).read_text()
    assert "### Results" not in page
    assert "### How flat the curves are" in page
