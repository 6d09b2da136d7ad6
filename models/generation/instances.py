"""What to write from, and what others wrote: the instances of a split, for the official metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from models.data.corpus import Example, grouped
from models.data.sources import Task
from models.data.tables import format_table
from models.errors import DataError, SettingError
from models.generation.writer import Request, Sentence, Writer

FILES = ("outputs", "references", "inputs")


class Instance(NamedTuple):
    request: Request
    references: list[str]


def instances(writer: Writer, examples: Sequence[Example]) -> list[Instance]:
    """Of a table all sentences are references; of paraphrases the first is what is rewritten."""
    task = writer.trained.config.task
    found = [_instance(writer, task, group) for group in grouped(examples).values()]
    usable = [i for i in found if i.request.items and i.references]
    if not usable:
        raise SettingError(f"there is nothing in these sentences to do {task} with")
    return usable


def requests_from(writer: Writer, examples: Sequence[Example]) -> list[Request]:
    """What can be written from: each table once, or the first of the sentences of a group."""
    task = writer.trained.config.task
    found = [_instance(writer, task, group).request for group in grouped(examples).values()]
    return [request for request in found if request.items]


def write_files(
    folder: Path, task: Task, given: Sequence[Instance], sentences: Sequence[Sentence]
) -> None:
    """What `python -m models score` reads: outputs, references and inputs.

    Paraphrases are compared by their tokens. A text is empty if all its words are marks of keys
    that the table lacks; its tokens never are.
    """
    tokens = [" ".join(sentence.words) for sentence in sentences]
    if task == "data2text":
        outputs = [s.text or own for s, own in zip(sentences, tokens, strict=True)]
    else:
        outputs = tokens
    references = "\n\n".join("\n".join(instance.references) for instance in given)
    inputs = [label(instance.request) for instance in given]
    make_folder(folder)
    contents = ("\n".join(outputs), references, "\n".join(inputs))
    for name, content in zip(FILES, contents, strict=True):
        (folder / f"{name}.txt").write_text(content + "\n", encoding="utf-8")


def label(request: Request) -> str:
    """What is written from, as a user would type it."""
    return format_table(request.table) if request.table else request.sentence


def make_folder(folder: Path) -> None:
    """Makes the folder if it is not there; an error for the user if it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(folder, f"cannot be made: {error.strerror}") from error


def _instance(writer: Writer, task: Task, group: list[Example]) -> Instance:
    if task == "data2text":
        references = [" ".join(example.text.split()) for example in group]
        return Instance(writer.from_table(group[0].table), [text for text in references if text])
    source, *others = (" ".join(example.words) for example in group)
    return Instance(writer.from_sentence(source), others)
