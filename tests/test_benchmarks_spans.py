"""Named entities over spans: reading, scoring, and taggers that learn a toy corpus."""

from __future__ import annotations

import gzip
import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner, Result

from benchmarks.commands import app
from benchmarks.results import load
from benchmarks.spans.batches import UNKNOWN, Vocabulary
from benchmarks.spans.corpus import (
    Corpus,
    CorpusError,
    Sentence,
    read_corpus,
    read_file,
    read_sentences,
)
from benchmarks.spans.encoder import EncoderSizes
from benchmarks.spans.scores import recall_by_size, score
from benchmarks.spans.tables import span_tables
from benchmarks.spans.taggers import TAGGERS
from benchmarks.spans.training import Plan, build, measure
from benchmarks.tables import markdown
from structdist.tagging import Span

LINES = (
    "Empire\tB-location\nState\tI-location\nis\tO\nESB\tB-location\n\t\n\nHi\tO\n \nBo\tB-person"
)
NAMES = {"person": ["Ada", "Bo", "Ada Lovelace", "Bo Lovelace"], "place": ["New York City", "Rome"]}
DATA = os.environ.get("STRUCTDIST_DATA")
BENCHMARKS = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture(autouse=True, scope="module")
def _threads_as_before() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


# Reading --------------------------------------------------------------------------------------


def test_sentences_are_read():
    first, second, third = read_sentences(LINES.splitlines(keepends=True))
    assert first.words == ("Empire", "State", "is", "ESB")
    assert first.spans == ((0, 2, "location"), (3, 4, "location"))
    assert (second.words, second.spans) == (("Hi",), ())
    assert third.spans == ((0, 1, "person"),)


def test_files_may_be_compressed(tmp_path: Path):
    (tmp_path / "dev.conll").write_text(LINES)
    for split in ("train", "test"):
        (tmp_path / f"{split}.conll.gz").write_bytes(gzip.compress(LINES.encode()))
    corpus = read_corpus(tmp_path)
    assert corpus.train == corpus.dev == corpus.test
    assert corpus.labels == ["O", "location", "person"]
    assert corpus.longest == 2


def test_bad_files_are_named(tmp_path: Path):
    with pytest.raises(CorpusError, match=r"holds neither train\.conll nor train\.conll\.gz"):
        read_corpus(tmp_path)
    path = tmp_path / "train.conll"
    path.write_text("a\tO\nword\n")
    with pytest.raises(CorpusError, match=r"train\.conll: line 2 is not a token, a tab and a tag"):
        read_file(path)
    path.write_text("a\tO\n\na\tO\nb\tI-x\n")
    with pytest.raises(CorpusError, match=r"train\.conll: tags: sentence 1, position 1, tag 'I-x'"):
        read_file(path)


@pytest.mark.skipif(DATA is None, reason="STRUCTDIST_DATA does not say where WNUT-17 is")
def test_wnut17_is_read_whole():
    corpus = read_corpus(Path(DATA))
    sentences = corpus.train, corpus.dev, corpus.test
    assert [len(split) for split in sentences] == [3394, 1009, 1287]
    assert [sum(len(s.words) for s in split) for split in sentences] == [62730, 15733, 23394]
    assert [sum(len(s.spans) for s in split) for split in sentences] == [1975, 836, 1079]
    assert len(corpus.labels) == 7
    assert corpus.longest == 14


def test_batches_pad_and_spell():
    sentences = [
        Sentence(("the", "The", "cat"), ()),
        Sentence(("cat",), ()),
    ]
    batch = Vocabulary(sentences[:1]).batch(sentences)
    assert batch.lengths.tolist() == [3, 1]
    assert batch.words.tolist() == [[2, 2, UNKNOWN], [UNKNOWN, 0, 0]]  # "cat" was seen once
    spelt = batch.characters[batch.spelling]  # [B, T, C]
    assert torch.equal(spelt[0, 2], spelt[1, 0])
    assert not torch.equal(spelt[0, 0], spelt[0, 1])


# Scores ---------------------------------------------------------------------------------------


def test_scores_count_exact_matches():
    gold = [[Span(0, 1, "x"), Span(2, 4, "y")], [Span(0, 3, "x")]]
    found = [[Span(0, 1, "x"), Span(2, 4, "x")], [Span(0, 2, "x"), Span(4, 5, "y")]]
    result = score(found, gold)
    assert (result.correct, result.found, result.gold) == (1, 4, 3)
    assert (result.precision, result.recall) == (1 / 4, 1 / 3)
    assert result.f1 == pytest.approx(2 / (4 + 3))
    assert recall_by_size(found, gold) == {"1": 1.0, "2": 0.0, "3+": 0.0}
    assert score([[]], [[]]).f1 == 0


# Taggers --------------------------------------------------------------------------------------


def toy_sentence(generator: random.Random) -> Sentence:
    """Names of one to three words, with other words in between."""
    words, spans = [], []
    for _ in range(generator.randint(1, 4)):
        words += generator.choices(["met", "in", "was", "seen"], k=generator.randint(1, 2))
        label = generator.choice(list(NAMES))
        name = generator.choice(NAMES[label]).split()
        spans.append(Span(len(words), len(words) + len(name), label))
        words += name
    return Sentence(tuple(words), tuple(spans))


@pytest.fixture(scope="module")
def toy() -> Corpus:
    generator = random.Random(0)
    train, dev, test = ([toy_sentence(generator) for _ in range(n)] for n in (100, 20, 20))
    return Corpus(train, dev, test)


@pytest.mark.parametrize("name", TAGGERS)
def test_taggers_learn_a_toy_corpus(name: str, toy: Corpus):
    sizes = EncoderSizes(word=16, character=8, spelling=8, hidden=16, dropout=0.1)
    plan = Plan((name,), (0,), epochs=5, batch=10, rate=0.02, sizes=sizes)
    lines: list[str] = []
    row = measure(name, 0, plan, toy, Vocabulary(toy.train), lines.append)
    assert row.losses[-1] < 0.1 * row.losses[0]
    assert row.dev.f1 == row.dev_f1[row.epoch - 1] == max(row.dev_f1)
    assert row.test.f1 > 0.95
    assert len(lines) == plan.epochs


def test_encoders_start_from_the_same_parameters(toy: Corpus):
    vocabulary, encoders = Vocabulary(toy.train), []
    for name in TAGGERS:
        torch.manual_seed(3)
        encoders.append(build(name, toy, vocabulary, EncoderSizes()).encoder.state_dict())
    for other in encoders[1:]:
        assert all(torch.equal(other[key], value) for key, value in encoders[0].items())


def test_neighbours_of_one_label_are_told_apart_by_their_ends_alone(toy: Corpus):
    """(Bo)(Ada Lovelace) and (Bo Ada)(Lovelace) have the same tokens, labels and lengths."""
    words, vocabulary = ("Bo", "Ada", "Lovelace"), Vocabulary(toy.train)
    two_ways = [Sentence(words, (Span(0, cut, "person"), Span(cut, 3, "person"))) for cut in (1, 2)]
    for name in TAGGERS:
        torch.manual_seed(0)
        tagger = build(name, toy, vocabulary, EncoderSizes()).eval()
        one, other = (tagger.loss(vocabulary.batch([sentence])).item() for sentence in two_ways)
        assert (one == pytest.approx(other, abs=1e-5)) == (name == "semi-markov")


def test_segments_are_scored_by_their_first_and_last_token(toy: Corpus):
    vocabulary = Vocabulary(toy.train)
    tagger = build("semi-markov-ends", toy, vocabulary, EncoderSizes()).eval()
    batch = vocabulary.batch(toy.dev[:4])
    emissions, segments = tagger.scores(batch)
    inside, first, last = tagger.output(tagger.encoder(batch)).chunk(3, -1)
    assert torch.equal(emissions, inside)
    num_steps, longest = emissions.shape[1], toy.longest
    assert segments.shape == (4, num_steps, longest, 3)
    for start in range(num_steps):
        for size in range(1, min(longest, num_steps - start) + 1):
            wanted = first[:, start] + last[:, start + size - 1]
            assert torch.equal(segments[:, start, size - 1], wanted)


# The command ----------------------------------------------------------------------------------


def run(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["spans", *map(str, arguments)], catch_exceptions=False)


def test_the_command_writes_all_it_is_asked_for(tmp_path: Path):
    for split in ("train", "dev", "test"):
        (tmp_path / f"{split}.conll").write_text(LINES)
    outputs = {kind: tmp_path / f"out.{kind}" for kind in ("json", "png", "md")}
    options = "--json", outputs["json"], "--plot", outputs["png"], "--markdown", outputs["md"]
    result = run("--data", tmp_path, "--quick", "--hidden", 4, *options)
    assert result.exit_code == 0, result.output
    results = load(outputs["json"])
    assert [row["tagger"] for row in results.rows] == list(TAGGERS)
    assert all(len(row["dev_f1"]) == 2 for row in results.rows)
    assert "semi-markov-ends" in outputs["md"].read_text()
    assert outputs["png"].read_bytes().startswith(b"\x89PNG")
    page = tmp_path / "page.md"
    done = CliRunner().invoke(app, ["report", str(outputs["json"]), "--out", str(page)])
    assert done.exit_code == 0, done.output
    assert "(results/spans.png)" in page.read_text()


def test_bad_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    result = run("--data", tmp_path)
    assert result.exit_code == 2
    assert "holds neither" in " ".join(result.output.replace("│", " ").split())
    monkeypatch.delenv("STRUCTDIST_DATA", raising=False)
    assert run().exit_code == 2
    assert run("--data", tmp_path, "--tagger", "magic").exit_code == 2


def test_the_page_has_the_table_of_the_results():
    results = load(BENCHMARKS / "results" / "spans.json")
    for table in span_tables(results):
        assert markdown(table).strip() in (BENCHMARKS / "SPANS.md").read_text()
