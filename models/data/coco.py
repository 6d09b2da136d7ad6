"""MS COCO captions: about five sentences for each image, paraphrases of one another."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from models.data.corpus import Corpus, Example, smallest_min_count, spread
from models.data.tokens import tokenise
from models.errors import DataError
from models.files import find_file, read_text

TRAIN = ("captions_train2017.json", "captions_train_pool.json")  # the official one if it is there
TEST = "captions_val2017.json"
DEV_IMAGES = 1000


class Caption(NamedTuple):
    image_id: int
    text: str  # on one line


def coco_corpus(directory: Path, max_words: int = 16, min_count: int | None = None) -> Corpus:
    """Captions grouped by image; the length is the paper's.

    The official test captions are not public, so the validation images are the test split, and
    some training images are held out as the dev split. Without `min_count`, it is the smallest
    that leaves the vocabulary `MOST_WORDS` or fewer.
    """
    captions = read_captions(find_file(directory, *TRAIN))
    held_out = held_out_images(caption.image_id for caption in captions)
    splits = {
        "train": _examples((c for c in captions if c.image_id not in held_out), max_words),
        "dev": _examples((c for c in captions if c.image_id in held_out), max_words),
        "test": _examples(read_captions(find_file(directory, TEST)), max_words),
    }
    return Corpus("coco", splits, min_count or smallest_min_count(splits["train"]))


def read_captions(path: Path) -> list[Caption]:
    """All annotations of a caption file in the official format, in its order."""
    try:
        content = json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise DataError(path, f"not JSON: {error.msg}", error.lineno) from error
    annotations = content.get("annotations") if isinstance(content, dict) else None
    if not isinstance(annotations, list):
        raise DataError(path, 'not a caption file: it has no list "annotations"')
    return [_caption(path, f"annotation {i}", entry) for i, entry in enumerate(annotations)]


def held_out_images(image_ids: Iterable[int]) -> set[int]:
    """`DEV_IMAGES` of the images, or a tenth of a few: evenly spaced in the order of their ids."""
    images = sorted(set(image_ids))
    return set(spread(images, min(DEV_IMAGES, len(images) // 10)))


def _caption(path: Path, where: str, entry: Any) -> Caption:
    if not isinstance(entry, dict):
        raise DataError(path, f"{where} is not an object")
    for key, kind in (("image_id", int), ("caption", str)):
        if key not in entry:
            raise DataError(path, f'{where} has no "{key}"')
        if not isinstance(entry[key], kind):
            raise DataError(path, f'"{key}" of {where} is {entry[key]!r}, not {kind.__name__}')
    return Caption(entry["image_id"], " ".join(entry["caption"].split()))


def _examples(captions: Iterable[Caption], max_words: int) -> list[Example]:
    """Examples of all captions that say something."""
    return [
        Example(tuple(tokenise(text)[:max_words]), text, group=str(image_id))
        for image_id, text in captions
        if text
    ]
