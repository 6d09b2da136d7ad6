"""ROUGE-L, CIDEr and METEOR on little text, and Java that does not work."""

from __future__ import annotations

import subprocess
import time

import pytest

from models.metrics import coco as coco_module
from models.metrics import libraries as java_module
from models.metrics.coco import cider, meteor, python_ptb_tokens, rouge_l, stanford_ptb_tokens
from models.metrics.libraries import JavaUnavailableError
from tests.models.metrics.conftest import OUTPUTS, REFERENCES

WORK = {
    "METEOR": lambda: meteor(["a"], [["a"]]),
    "tokeniser": lambda: stanford_ptb_tokens(["a"]),
}


@pytest.fixture
def processes(monkeypatch):
    """All that were started; one with a return code has been waited for."""
    started = []
    start = subprocess.Popen

    def recorded(*arguments, **options):
        started.append(start(*arguments, **options))
        return started[-1]

    monkeypatch.setattr(subprocess, "Popen", recorded)
    return started


def test_rouge_l_by_hand():
    expected = (1 + 1.44) * (2 / 3) / (2 / 3 + 1.44)  # precision 2/2, recall 2/3, beta 1.2
    assert rouge_l(["a c"], [["a b c"]]) == pytest.approx(expected)
    assert rouge_l(["a b"], [["x", "a b"]]) == pytest.approx(1)


def test_cider_of_references_is_ten_and_of_strangers_zero():
    references = [["a b c d e"], ["f g h i j"]]
    assert cider(["a b c d e", "f g h i j"], references) == pytest.approx(10)
    assert cider(["x", "y"], references) == 0


def test_texts_without_tokens():
    assert rouge_l(["", "a"], [["a"], [""]]) == 0
    assert cider(["", "a"], [["a"], [""]]) == 0
    assert cider(["a"], [[""]]) == 0


@pytest.mark.parametrize("metric", [rouge_l, cider, meteor])
def test_counts_must_agree(metric):
    with pytest.raises(ValueError, match="1 outputs, but 2 lists of references"):
        metric(["a"], [["a"], ["b"]])


@pytest.mark.usefixtures("java")
def test_meteor_and_its_process(processes):
    references = [python_ptb_tokens(texts) for texts in REFERENCES]
    value = meteor(python_ptb_tokens(OUTPUTS), references)
    assert value == pytest.approx(0.6281447, abs=1e-6)
    assert [process.returncode is not None for process in processes] == [True]


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_no_java(work):
    with pytest.raises(JavaUnavailableError, match="no java on the PATH"):
        work()


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_java_that_fails(fake_java, processes, work):
    fake_java("echo 'no room' >&2; exit 1")
    with pytest.raises(JavaUnavailableError, match="failed: no room"):
        work()
    assert [process.returncode is not None for process in processes] == [True]


@pytest.mark.parametrize("work", WORK.values(), ids=WORK)
def test_java_that_hangs(fake_java, processes, monkeypatch, work):
    fake_java("exec sleep 60")
    monkeypatch.setattr(java_module, "TIME_LIMIT", 0.3)
    monkeypatch.setattr(coco_module, "SECONDS_PER_INSTANCE", 0)
    start = time.monotonic()
    with pytest.raises(JavaUnavailableError, match=r"no answer in 0\.3 s"):
        work()
    assert time.monotonic() - start < 20
    assert [process.returncode is not None for process in processes] == [True]


def test_java_that_talks_nonsense(fake_java):
    fake_java("while read line; do echo nonsense; done")
    with pytest.raises(JavaUnavailableError, match="METEOR failed"):
        meteor(["a"], [["a"]])
    fake_java("echo one; echo two")
    with pytest.raises(JavaUnavailableError, match="2 lines for 1"):
        stanford_ptb_tokens(["a"])


def test_an_installation_without_the_archive(fake_java, monkeypatch):
    fake_java("exit 0")
    monkeypatch.setattr(coco_module, "METEOR_JAR", "meteor/none.jar")
    with pytest.raises(JavaUnavailableError, match=r"installed without none\.jar"):
        meteor(["a"], [["a"]])
