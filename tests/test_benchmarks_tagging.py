"""One tagger with the CRF of each library: the same losses, gradients and tags."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch.testing import assert_close
from typer.testing import CliRunner

from benchmarks.commands import app
from benchmarks.results import load
from benchmarks.spans.batches import Vocabulary
from benchmarks.spans.corpus import Corpus, read_sentences
from benchmarks.spans.encoder import EncoderSizes
from benchmarks.spans.training import Plan
from benchmarks.tables import markdown
from benchmarks.tagging.run import build
from benchmarks.tagging.tables import tagging_tables
from benchmarks.tagging.taggers import LIBRARIES, LibraryTagger, repair
from structdist import tagging

BENCHMARKS = Path(__file__).parent.parent / "benchmarks"
LINES = (
    "Empire\tB-location\nState\tI-location\nis\tO\nESB\tB-location\n\nHi\tO\n\nBo\tB-person\n\n"
    "In\tO\nRome\tB-location\n"
)


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    sentences = read_sentences(LINES.splitlines(keepends=True))
    return Corpus(sentences, sentences, sentences)


def tagger_of(library: str, corpus: Corpus) -> LibraryTagger:
    plan = Plan((), (), sizes=EncoderSizes(word=8, character=4, spelling=4, hidden=4))
    return build(library, 0, plan, corpus, Vocabulary(corpus.train)).double().eval()


def test_libraries_agree(corpus: Corpus):
    """With sentences of one token among them; with and without constraints."""
    batch, answers = Vocabulary(corpus.train).batch(corpus.train), []
    for library in LIBRARIES:
        tagger = tagger_of(library, corpus)
        loss = tagger.loss(batch)
        grads = torch.autograd.grad(loss, list(tagger.parameters()))
        found = [tagger.find(batch)]
        tagger.constrained = True
        answers.append((loss.detach(), grads, [*found, tagger.find(batch)]))
        assert tagger.crf_seconds > 0
        assert tagger.crf_bytes(batch) > 0
    for loss, grads, found in answers[1:]:
        assert_close(loss, answers[0][0])
        assert_close(grads, answers[0][1])
        assert found == answers[0][2]


def test_the_loss_timed_apart_is_the_loss(corpus: Corpus):
    batch, tagger = Vocabulary(corpus.train).batch(corpus.train), tagger_of("structdist", corpus)
    emissions = tagger.output(tagger.encoder(batch))
    plain = -tagger.log_likelihood(emissions, tagger.gold_tags(batch), batch.lengths)
    parameters = list(tagger.parameters())
    expected = torch.autograd.grad(plain, parameters)
    loss = tagger.loss(batch)
    assert_close(loss, plain)
    assert_close(torch.autograd.grad(loss, parameters), expected)


def test_ill_formed_tags_are_read_as_conlleval_reads_them():
    tags = ["I-x", "I-x", "O", "I-y", "B-y", "I-y", "I-x"]
    repaired = ["B-x", "I-x", "O", "B-y", "B-y", "I-y", "B-x"]
    assert repair(tags) == repaired
    assert repair(repaired) == repaired
    tagging.spans_from_tags([repaired], "BIO")


def test_the_command_keeps_each_result(tmp_path: Path):
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.conll").write_text(LINES)
    page, folder = tmp_path / "page.md", tmp_path / "kept"
    options = ["tagging", "--data", tmp_path, "--quick", "--hidden", 4, "--folder", folder]
    options += ["--library", "structdist,pytorch-crf", "--markdown", page]
    result = CliRunner().invoke(app, [*map(str, options)], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    assert {path.stem for path in folder.iterdir()} == {"structdist-0", "pytorch-crf-0"}
    kept = folder / "structdist-0.json"
    content = json.loads(kept.read_text())
    content["row"]["ill_formed"] = 77  # to be seen on the page: it was not made again
    kept.write_text(json.dumps(content))
    options += ["--plot", tmp_path / "plot.png"]
    CliRunner().invoke(app, [*map(str, options)], catch_exceptions=False)
    assert "| 77.0 |" in page.read_text()
    assert (tmp_path / "plot.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_has_the_table_of_the_results():
    results = load(BENCHMARKS / "results" / "tagging.json")
    for table in tagging_tables(results):
        assert markdown(table).strip() in (BENCHMARKS / "TAGGING.md").read_text()
