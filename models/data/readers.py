"""Corpora from files: the releases of E2E and MS COCO, and a user's own text."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from models.data.corpus import SPLITS, Corpus, Example, smallest_min_count, spread
from models.data.tables import Table, delexicalise, format_table, parse_table
from models.data.tokens import tokenise
from models.errors import DataError
from models.files import (
    HALF_A_CHARACTER,
    at_line,
    csv_rows,
    find_file,
    read_json,
    read_lines,
    read_text,
)

E2E_FILES = {"train": "trainset.csv", "dev": "devset.csv", "test": "testset_w_refs.csv"}
E2E_HEADER = ["mr", "ref"]
COCO_TRAIN = ("captions_train2017.json", "captions_train_pool.json")  # the official one if there
COCO_TEST = "captions_val2017.json"
DEV_IMAGES = 1000
FEWEST = 3  # sentences of a user's own text: one for each split
HELD_OUT = {8: "dev", 9: "test"}  # of every ten sentences


class Row(NamedTuple):
    table: Table
    text: str
    line: int  # where the row starts in its file


class Caption(NamedTuple):
    image_id: int
    text: str  # on one line


def e2e_corpus(directory: Path, max_words: int = 37, min_count: int = 3) -> Corpus:
    """Tables about restaurants, and sentences that say what they say, delexicalised.

    The splits are the official ones, and the length is the paper's.
    """
    splits: dict[str, list[Example]] = {split: [] for split in E2E_FILES}
    for split, name in E2E_FILES.items():
        for table, text, _ in read_e2e(find_file(directory, name)):
            words = delexicalise(tokenise(text), table)[:max_words]
            splits[split].append(Example(tuple(words), text, table, format_table(table)))
    return Corpus("e2e", splits, min_count)


def read_e2e(path: Path) -> list[Row]:
    """A file with the columns `mr,ref`; `DataError` for any row that is not a table and a text."""
    rows = []
    for line, cells in csv_rows(path, read_text(path), E2E_HEADER):
        if not cells[1].strip():
            raise DataError(path, "an empty ref", line)
        with at_line(path, line):
            rows.append(Row(parse_table(cells[0]), cells[1].strip(), line))
    return rows


def coco_corpus(directory: Path, max_words: int = 16, min_count: int | None = None) -> Corpus:
    """Captions, about five for each image, grouped by image; the length is the paper's.

    The official test captions are not public, so the validation images are the test split, and
    some training images are held out as the dev split. Without `min_count`, it is the smallest
    that leaves the vocabulary `MOST_WORDS` or fewer.
    """
    captions = read_captions(find_file(directory, *COCO_TRAIN))
    dev = held_out_images(caption.image_id for caption in captions)
    parts = {
        "train": [caption for caption in captions if caption.image_id not in dev],
        "dev": [caption for caption in captions if caption.image_id in dev],
        "test": read_captions(find_file(directory, COCO_TEST)),
    }
    splits = {
        split: [
            Example(tuple(tokenise(text)[:max_words]), text, group=str(image_id))
            for image_id, text in part
            if text
        ]
        for split, part in parts.items()
    }
    return Corpus("coco", splits, min_count or smallest_min_count(splits["train"]))


def read_captions(path: Path) -> list[Caption]:
    """All annotations of a caption file in the official format, in its order."""
    content = read_json(path)
    annotations = content.get("annotations") if isinstance(content, dict) else None
    if not isinstance(annotations, list):
        raise DataError(path, 'not a caption file: it has no list "annotations"')
    return [_caption(path, f"annotation {i}", entry) for i, entry in enumerate(annotations)]


def _caption(path: Path, where: str, entry: Any) -> Caption:
    if not isinstance(entry, dict):
        raise DataError(path, f"{where} is not an object")
    for key, kind in (("image_id", int), ("caption", str)):
        if key not in entry:
            raise DataError(path, f'{where} has no "{key}"')
        if not isinstance(entry[key], kind):
            raise DataError(path, f'"{key}" of {where} is {entry[key]!r}, not {kind.__name__}')
    text = " ".join(entry["caption"].split())
    if HALF_A_CHARACTER.search(text):
        raise DataError(path, f"half a character, which no file can hold, in {where}")
    return Caption(entry["image_id"], text)


def held_out_images(image_ids: Iterable[int]) -> set[int]:
    """`DEV_IMAGES` of the images, or a tenth of a few: evenly spaced in the order of their ids."""
    images = sorted(set(image_ids))
    return set(spread(images, min(DEV_IMAGES, len(images) // 10)))


def text_corpus(path: Path, max_words: int = 60) -> Corpus:
    """A user's own text: one sentence a line, tokenised or not; blank lines are passed over.

    Of every ten sentences, the ninth is for the dev split and the tenth for the test split; of
    fewer than ten, the last two are. What a sentence has beyond `max_words` words is cut off. Rare
    words are unknown where there are very many words.
    """
    lines = [" ".join(line.split()) for line in read_lines(path)]
    examples = [
        Example(tuple(tokenise(line)[:max_words]), line, group=str(number))
        for number, line in enumerate(lines, 1)
        if line
    ]
    if len(examples) < FEWEST:
        message = f"{len(examples)} sentences; at least {FEWEST} are needed, one a line"
        raise DataError(path, message)
    splits: dict[str, list[Example]] = {split: [] for split in SPLITS}
    for place, example in enumerate(examples, max(0, 10 - len(examples))):
        splits[HELD_OUT.get(place % 10, "train")].append(example)
    return Corpus("text", splits, smallest_min_count(splits["train"]))
