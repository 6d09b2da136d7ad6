"""The E2E protocol gives the published numbers of a real system."""

from __future__ import annotations

import subprocess
import sys

import pytest

from models.data.tables import parse_table
from models.metrics import e2e as e2e_module
from models.metrics.e2e import score_e2e
from models.metrics.libraries import JavaUnavailableError
from tests.models.metrics.conftest import OUTPUTS, REFERENCES

PUBLISHED = {
    "BLEU": 0.6593,
    "NIST": 8.6094,
    "METEOR": 0.4483,
    "ROUGE_L": 0.6850,
    "CIDEr": 2.2338,
}
WITHOUT_JAVA = {"BLEU": 5e-5, "NIST": 5e-5, "ROUGE_L": 5e-4, "CIDEr": 2e-3}  # tolerances


def test_published_scores_without_java(tgen, official_references):
    report = score_e2e(tgen, official_references, java=False)
    for name, tolerance in WITHOUT_JAVA.items():
        assert report[name].value == pytest.approx(PUBLISHED[name], abs=tolerance), name
    assert report["METEOR"].value is None
    assert report["METEOR"].unavailable == "java was switched off"
    assert (report.instances, report.references) == (630, 4693)


@pytest.mark.slow
@pytest.mark.usefixtures("java")
def test_published_scores_with_java(tgen, official_references):
    report = score_e2e(tgen, official_references, java=True)
    found = {name: round(report[name].value, 4) for name in PUBLISHED}
    assert found == PUBLISHED


def test_small_corpus():
    report = score_e2e(OUTPUTS, REFERENCES, java=False)
    found = {score.name: score.value for score in report.scores if score.value is not None}
    expected = {"BLEU": 0.752394, "NIST": 5.344241, "ROUGE_L": 0.913750, "CIDEr": 5.496844}
    for name, value in expected.items():
        assert found[name] == pytest.approx(value, abs=1e-5), name
    assert found["distinct-1"] == pytest.approx(28 / 32)


@pytest.mark.usefixtures("java")
def test_both_tokenisers_give_the_same_scores(monkeypatch):
    monkeypatch.setattr(e2e_module, "meteor", lambda *texts: 0.5)
    with_java, without = score_e2e(OUTPUTS, REFERENCES), score_e2e(OUTPUTS, REFERENCES, java=False)
    for name in ("BLEU", "NIST", "ROUGE_L", "CIDEr"):
        assert with_java[name].value == without[name].value
    assert with_java["METEOR"].value == 0.5
    assert with_java["ROUGE_L"].settings["tokens"] == "Stanford PTB (Java)"
    assert without["ROUGE_L"].settings["tokens"] == "PTB-like (Python)"


@pytest.mark.usefixtures("no_java")
def test_without_java_there_is_no_meteor():
    report = score_e2e(OUTPUTS, REFERENCES)
    assert report["METEOR"].value is None
    assert report["METEOR"].unavailable == "no java on the PATH"
    with pytest.raises(JavaUnavailableError):
        score_e2e(OUTPUTS, REFERENCES, java=True)


@pytest.mark.usefixtures("java")
def test_meteor_may_fail_alone(monkeypatch):
    def fail(*texts):
        raise JavaUnavailableError("out of memory")

    monkeypatch.setattr(e2e_module, "meteor", fail)
    report = score_e2e(OUTPUTS, REFERENCES)
    assert report["METEOR"].as_json()["unavailable"] == "out of memory"
    assert report["CIDEr"].value is not None
    with pytest.raises(JavaUnavailableError, match="out of memory"):
        score_e2e(OUTPUTS, REFERENCES, java=True)


def test_slot_errors_where_there_are_tables():
    tables = [
        parse_table("name[The Vaults], priceRange[cheap], eatType[pub], near[Café Adriatic]"),
        parse_table("name[Aromi], food[French], area[city centre]"),
        parse_table("name[Zizzi], customer rating[average], familyFriendly[no], area[riverside]"),
    ]
    report = score_e2e(OUTPUTS, REFERENCES, tables, java=False)
    assert report["slot error rate"].value == pytest.approx(2 / 11)
    counts = [report[f"slots {kind}"].value for kind in ("missing", "wrong", "added")]
    assert counts == [1, 1, 0]


def test_importing_the_metrics_loads_none_of_their_libraries():
    heavy = ["sacrebleu", "nltk", "pycocoevalcap", "rouge_score", "numpy", "torch"]
    code = f"import sys, models.metrics; print([m for m in {heavy} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"
