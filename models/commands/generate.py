"""`python -m models generate`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Literal, NoReturn

import torch
from jsonargparse import ArgumentParser
from jsonargparse.typing import NonNegativeInt

from models.data.corpus import SPLITS
from models.data.errors import DataError
from models.errors import SettingError
from models.generation.answers import Answer, Answering, as_asked, differently, freely
from models.generation.inputs import read_sentences, read_tables
from models.generation.instances import instances, make_folder, write_files
from models.generation.search import Decoding
from models.generation.writer import Request, Writer
from models.run_templates import run_templates
from models.runs import load_run
from models.training.checkpoints import BEST

USAGE = "generate RUN [--input FILE] [options]"
DETAILS = """\
Writes a sentence for each line of the input, in its order. For a data2text run a line is a table,
  name[The Vaults], eatType[pub]      or      {"name": "The Vaults", "eatType": "pub"}
and for a paraphrase run a sentence. Templates are those of the training sentences: see
`python -m models templates`.
  echo 'name[The Vaults], eatType[pub]' | python -m models generate RUN --num-templates 3
  python -m models generate RUN --split test --folder DIR   # what `score` needs"""

TEMPLATE_HELP = (
    "States to follow: one for each word (`3 3 17 5`), the number of a stored template (`@12`), or "
    "a pattern with wildcards (`3 * 17 ?`), for which the best stored one is taken."
)
NUMBER_HELP = "Lines for each input, each under another stored template; 0: states are free."
KEEP_GOING_HELP = "Leave a line empty where the input is bad, and do the rest."
CHUNK = 100  # lines answered at a time


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("run", type=str, help="Folder of the run.")
    add("--input", type=str, default="-", help="A file, or - for standard input.")
    add("--template", type=str | None, help=TEMPLATE_HELP)
    add("--num-templates", type=NonNegativeInt, default=0, help=NUMBER_HELP)
    add("--keep-going", action="store_true", help=KEEP_GOING_HELP)
    add("--json", action="store_true", help="Write JSON lines, with words, states and scores.")
    add("--split", type=Literal[SPLITS] | None, help="Inputs of the corpus, instead of --input.")
    add("--folder", type=str | None, help="Of --split: for outputs.txt, references.txt, inputs.txt")
    add("--decoding", type=Decoding, default=Decoding())
    add("--checkpoint", type=Literal["best", "last"], default=BEST, help="By the dev set, or last.")
    add("--seed", type=int, default=0, help="Of the draws.")
    add("--threads", type=NonNegativeInt, default=0, help="CPU threads; 0: torch's choice.")


def run(options: Any) -> None:
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    if (options.split is None) != (options.folder is None):
        raise SettingError("--split and --folder go together")
    writer = Writer(load_run(Path(options.run), options.checkpoint), options.decoding)
    answering = _answering(writer, options)
    if options.split is not None:
        _write_split(writer, answering, options.split, Path(options.folder))
        return
    requests = list(_requests(writer, options.input))
    errors = [request for request in requests if isinstance(request, DataError)]
    if errors and not options.keep_going:
        raise errors[0]
    try:
        failed = _print_answers(answering, requests, options)
    except BrokenPipeError:
        _stop_printing()
    if errors or failed:
        raise SystemExit(2)


def _answering(writer: Writer, options: Any) -> Answering:
    if options.template is not None and options.num_templates:
        raise SettingError("either --template or --num-templates, not both")
    if options.template is not None:
        return as_asked(writer, options.template, lambda: run_templates(writer.trained))
    if options.num_templates:
        return differently(writer, run_templates(writer.trained), options.num_templates)
    return freely(writer)


def _requests(writer: Writer, name: str) -> Iterator[Request | DataError]:
    """Of each line."""
    about_tables = writer.trained.config.task == "data2text"
    lines, shown = _lines(name), _shown(name)
    if about_tables:
        for number, table in enumerate(read_tables(lines, shown), 1):
            if not isinstance(table, DataError):
                _warn_of_keys(writer, [key for key, _ in table], f"{shown}, line {number}")
            yield table if isinstance(table, DataError) else writer.from_table(table)
        return
    for number, sentence in enumerate(read_sentences(lines, shown), 1):
        request = sentence if isinstance(sentence, DataError) else writer.from_sentence(sentence)
        if isinstance(request, Request) and not request.items:
            request = DataError(shown, "no word to write about", number)
        yield request


def _shown(name: str) -> str:
    return "standard input" if name == "-" else name


def _lines(name: str) -> list[str]:
    """A byte that is no UTF-8 becomes an error of its line alone."""
    try:
        if name != "-":
            content = Path(name).read_bytes()
        else:
            if sys.stdin.isatty():
                print("reading standard input, one request a line", file=sys.stderr)
            content = sys.stdin.buffer.read()
    except OSError as error:
        raise DataError(_shown(name), f"cannot be read: {error.strerror}") from error
    lines = content.decode("utf-8", "surrogateescape").split("\n")
    return lines[:-1] if not lines[-1] else lines


def _warn_of_keys(writer: Writer, keys: Sequence[str], where: str) -> None:
    unknown = [key for key in keys if key not in writer.trained.vocabulary.keys]
    if unknown:
        named = ", ".join(unknown)
        print(f"warning: {where}: the model has never seen the key {named}", file=sys.stderr)


def _print_answers(
    answering: Answering, requests: Sequence[Request | DataError], options: Any
) -> bool:
    """Each on a line; true if some could not be had."""
    failed = False
    for start in range(0, len(requests), CHUNK):
        part = requests[start : start + CHUNK]
        answers = answering([request for request in part if isinstance(request, Request)])
        for number, request in enumerate(part, start + 1):
            answer = request if isinstance(request, DataError) else next(answers)
            if isinstance(answer, SettingError):
                answer = DataError(_shown(options.input), str(answer), number)
                failed = True
                if not options.keep_going:
                    raise answer
            _print_one(answer, number, options)
    return failed


def _print_one(answer: list[Answer] | DataError, number: int, options: Any) -> None:
    if isinstance(answer, DataError):
        print(f"error: {answer}", file=sys.stderr)
        for _ in range(options.num_templates or 1):
            record = json.dumps({"input": number, "error": str(answer)}, ensure_ascii=False)
            print(record if options.json else "", flush=True)
        return
    for each in answer:
        print(_record(each, number) if options.json else each.sentence.text, flush=True)


def _stop_printing() -> NoReturn:
    """Whoever read the output, such as `head`, has had enough; nothing is flushed to it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise SystemExit(1)


def _record(answer: Answer, number: int) -> str:
    fields = answer.sentence._asdict() | {"template": answer.template, "input": number}
    return json.dumps(fields, ensure_ascii=False)


def _write_split(writer: Writer, answering: Answering, split: str, folder: Path) -> None:
    make_folder(folder)
    trained = writer.trained
    given = instances(writer, trained.corpus().splits[split])
    sentences = []
    for answer in answering([instance.request for instance in given]):
        if isinstance(answer, SettingError):
            raise answer
        sentences.append(answer[0].sentence)
    write_files(folder, trained.config.task, given, sentences)
    protocol = "e2e" if trained.config.task == "data2text" else "paraphrase"
    files = " ".join(
        f"--{name} {folder / name}.txt" for name in ("outputs", "references", "inputs")
    )
    print(f"{len(given)} sentences; next: python -m models score --protocol {protocol} {files}")
