"""The files for the official metrics."""

from __future__ import annotations

from dataclasses import replace

import pytest

from models.data.corpus import Example
from models.data.tables import parse_table
from models.errors import DataError, SettingError
from models.generation.writer import Instance, Request, Sentence, Writer, write_files
from models.metrics.text_files import read_references, read_texts
from tests.models.generation.runs import untrained_run

VAULTS, RIVER = parse_table("name[The Vaults], area[riverside]"), parse_table("name[Alimentum]")
ABOUT_TABLES = [
    Example(("_name_", "."), "The  Vaults.", VAULTS, "vaults"),
    Example(("_name_",), "Alimentum", RIVER, "alimentum"),
    Example(("by", "the", "river"), "By the\nriver.", VAULTS, "vaults"),
]
CAPTIONS = [
    Example(("a", "dog", "runs"), "A dog runs", group="1"),
    Example(("a", "cat"), "A cat", group="2"),
    Example(("the", "dog", "'s", "run"), "The dog's run", group="1"),
    Example(("a", "dog"), "A dog", group="1"),
]


@pytest.fixture(scope="module")
def tables_writer() -> Writer:
    return Writer(untrained_run())


@pytest.fixture(scope="module")
def captions_writer() -> Writer:
    return Writer(untrained_run("paraphrase"))


def sentence(text: str, *words: str) -> Sentence:
    return Sentence(text, words, (), -1.0)


def test_all_sentences_about_a_table_are_references(tables_writer):
    vaults, river = tables_writer.instances(ABOUT_TABLES)
    assert vaults.request == tables_writer.from_table(VAULTS)
    assert vaults.references == ["The Vaults.", "By the river."]
    assert (river.request.table, river.references) == (RIVER, ["Alimentum"])


def test_an_empty_reference_is_none(tables_writer):
    empty = [replace(example, text=" ") for example in ABOUT_TABLES[:2]]
    (vaults,) = tables_writer.instances([*empty, ABOUT_TABLES[2]])
    assert vaults.references == ["By the river."]


def test_the_first_of_several_sentences_is_rewritten(captions_writer):
    """And a group of one has nothing to compare with."""
    (dog,) = captions_writer.instances(CAPTIONS)
    assert dog.request.sentence == "a dog runs"
    assert [item.says for item in dog.request.items] == ["dog", "runs"]
    assert dog.references == ["the dog 's run", "a dog"]


def test_nothing_to_write_from(tables_writer, captions_writer):
    with pytest.raises(SettingError, match="paraphrase"):
        captions_writer.instances(CAPTIONS[1:2])
    with pytest.raises(SettingError, match="data2text"):
        tables_writer.instances(CAPTIONS)


def read(folder):
    references = [each.texts for each in read_references(folder / "references.txt")]
    outputs, inputs = (read_texts(folder / f"{name}.txt", name) for name in ("outputs", "inputs"))
    return outputs, references, inputs


def test_files_about_tables(tables_writer, tmp_path):
    given = tables_writer.instances(ABOUT_TABLES)
    written = [sentence("Café.", "café", "."), sentence("Two.", "two", ".")]
    write_files(tmp_path / "new" / "folder", given, written)
    outputs, references, inputs = read(tmp_path / "new" / "folder")
    assert outputs == ["Café.", "Two."]
    assert references == [["The Vaults.", "By the river."], ["Alimentum"]]
    assert [parse_table(text) for text in inputs] == [VAULTS, RIVER]


def test_files_of_paraphrases_are_tokenised(captions_writer, tmp_path):
    given = captions_writer.instances(CAPTIONS)
    write_files(tmp_path, given, [sentence("It's.", "it", "'s", ".")])
    assert read(tmp_path) == (["it 's ."], [["the dog 's run", "a dog"]], ["a dog runs"])


def test_no_output_is_an_empty_line(tmp_path):
    """Which no metric would read: marks that cannot be replaced stay."""
    given = [Instance(Request([], RIVER), ["Alimentum"])]
    write_files(tmp_path, given, [sentence("", "_near_", "_near_")])
    assert read(tmp_path)[0] == ["_near_ _near_"]


def test_a_folder_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match="cannot be written"):
        write_files(tmp_path / "file", [], [])
    assert (tmp_path / "file").read_text() == ""
