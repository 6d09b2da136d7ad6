"""What to write from, and what others wrote: the instances of a split, for the official metrics."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from models.data.corpus import Example, grouped
from models.data.errors import DataError
from models.data.tables import format_table
from models.data.tasks import Task
from models.errors import SettingError
from models.generation.writer import Request, Sentence, Writer

OUTPUTS, REFERENCES, INPUTS = "outputs.txt", "references.txt", "inputs.txt"


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


def write_files(
    folder: Path, task: Task, given: Sequence[Instance], texts: Sequence[Sentence]
) -> None:
    """What `python -m models score` reads: outputs, references and inputs."""
    tokenised = task != "data2text"  # its protocol compares tokens
    outputs = [_tokens(each) if tokenised else each.text or _tokens(each) for each in texts]
    inputs = [
        format_table(i.request.table) if i.request.table else i.request.sentence for i in given
    ]
    references = "\n\n".join("\n".join(instance.references) for instance in given)
    make_folder(folder)
    contents = {OUTPUTS: "\n".join(outputs), REFERENCES: references, INPUTS: "\n".join(inputs)}
    for name, content in contents.items():
        (folder / name).write_text(content + "\n", encoding="utf-8")


def make_folder(folder: Path) -> None:
    """If it is not there; an error for the user if it cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(folder, f"cannot be made: {error.strerror}") from error


def _instance(writer: Writer, task: Task, group: list[Example]) -> Instance:
    if task == "data2text":
        references = [_one_line(example.text) for example in group]
        return Instance(writer.from_table(group[0].table), [text for text in references if text])
    source, *others = (" ".join(example.words) for example in group)
    return Instance(writer.from_sentence(source), others)


def _tokens(sentence: Sentence) -> str:
    """Never empty, as a text is if all its words are marks of keys that the table lacks."""
    return " ".join(sentence.words)


def _one_line(text: str) -> str:
    return " ".join(text.split())
