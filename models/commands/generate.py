"""`python -m models generate`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from jsonargparse import ArgumentParser
from jsonargparse.typing import NonNegativeInt

from models.commands.options import add_run, load, watched
from models.config import Decoding
from models.data.corpus import SPLITS
from models.errors import DataError, SettingError
from models.files import chunks, telling

if TYPE_CHECKING:
    from models.generation.answers import Answer, Answering
    from models.generation.writer import Request, Writer

USAGE = "generate RUN [--input FILE] [options]"
DETAILS = """\
Writes a sentence for each line of the input, in its order. For a data2text run a line is a table,
  name[The Vaults], eatType[pub]      or      {"name": "The Vaults", "eatType": "pub"}
and for a paraphrase run a sentence. Templates are those of the training sentences: see
`python -m models templates`. Of several templates, and of what a beam finds about a table, the best
sentence is taken: one that quotes more, then one that leaves the model surer of the table, is
likelier per word, and has fewer words that it would read in another state. With --json, `fitness`
holds `table_log_prob`, log p(table | sentence) among the tables with one other value, and
`misread`, the number of such words.
  echo 'name[The Vaults], eatType[pub]' | python -m models generate RUN --num-templates 3
  python -m models generate RUN --split test --folder DIR   # what `score` needs"""

TEMPLATE_HELP = (
    "States to follow: one for each word (`3 3 17 5`), the number of a stored template (`@12`), or "
    "a pattern with wildcards (`3 * 17 ?`), for which the best stored one is taken."
)
NUMBER_HELP = (
    "Lines for each input, each under another stored template, which tell the table in different "
    "orders if there are as many; 0: states are free."
)
JSON_HELP = "Write JSON lines, with words, states, template and scores, see above."
KEEP_GOING_HELP = "Leave a line empty where the input is bad, and do the rest."
CHUNK = 100  # lines answered at a time
NAMED = 10  # unknown keys, at most, in a message


def add_arguments(parser: ArgumentParser) -> None:
    add, split = parser.add_argument, Literal[SPLITS] | None
    add_run(parser, draws=True)
    add("--input", type=str, default="-", help="A file, or - for standard input.")
    add("--template", type=str | None, help=TEMPLATE_HELP)
    add("--num-templates", type=NonNegativeInt, default=0, help=NUMBER_HELP)
    add("--keep-going", action="store_true", help=KEEP_GOING_HELP)
    add("--json", action="store_true", help=JSON_HELP)
    add("--split", type=split, help="Inputs of the corpus, instead of --input.")
    add("--folder", type=str | None, help="With --split: where outputs, references and inputs go.")
    add("--decoding", type=Decoding, default=Decoding())


def run(options: Any) -> None:
    from models.generation.writer import Writer

    if (options.split is None) != (options.folder is None):
        raise SettingError("--split and --folder go together")
    if options.template is not None and options.num_templates:
        raise SettingError("either --template or --num-templates, not both")
    writer = Writer(load(options), options.decoding)
    answering = _answering(writer, options)
    if options.split is not None:
        _write_split(writer, answering, options.split, Path(options.folder))
        return
    name = "standard input" if options.input == "-" else options.input
    requests = list(_requests(writer, options.input, name))
    errors = [request for request in requests if isinstance(request, DataError)]
    if errors and not options.keep_going:
        raise errors[0]
    try:
        if not _print_answers(answering, requests, name, options):
            raise SystemExit(2)
    except BrokenPipeError:  # whoever read the output, such as `head`, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what exit would flush
        raise SystemExit(1) from None


def _answering(writer: Writer, options: Any) -> Answering:
    from models.generation.answers import as_asked, differently, freely
    from models.templates.of_runs import run_templates

    if options.template is not None:
        return as_asked(writer, options.template, lambda: run_templates(writer.trained))
    if options.num_templates:
        bank = run_templates(writer.trained, watch=watched)
        return differently(writer, bank, options.num_templates)
    return freely(writer)


def _requests(writer: Writer, source: str, name: str) -> Iterator[Request | DataError]:
    """What each line asks for, or what is wrong with it: a byte that is no UTF-8, for instance."""
    from models.generation.inputs import read_lines, sentence_of, table_of

    def request(line: str) -> Request:
        if writer.trained.config.task != "data2text":
            like_sentence = writer.from_sentence(sentence_of(line))
            if not like_sentence.items:
                raise ValueError("no word to write about")
            return like_sentence
        table, known = table_of(line), writer.trained.vocabulary.keys
        unknown = [key for key, _ in table if key not in known]
        if unknown:
            named = ", ".join(unknown[:NAMED]) + (", ..." if len(unknown) > NAMED else "")
            keys = ", ".join(sorted(known.real_words))
            raise ValueError(f"the model has never seen the key {named}; it knows {keys}")
        return writer.from_table(table)

    if source == "-" and sys.stdin.isatty():
        print("reading standard input, one request a line", file=sys.stderr)
    standard = nullcontext(sys.stdin.buffer)
    with telling(name, "read"), standard if source == "-" else Path(source).open("rb") as file:
        content = b"".join(chunks(file, name))
    lines = content.decode("utf-8", "surrogateescape").removesuffix("\n").split("\n")
    return read_lines(lines if content else [], name, request)


def _print_answers(
    answering: Answering, requests: Sequence[Request | DataError], name: str, options: Any
) -> bool:
    """Prints the answers to each request; false if some could not be had."""
    all_answered = True
    for start in range(0, len(requests), CHUNK):
        part = requests[start : start + CHUNK]
        answers = answering([request for request in part if not isinstance(request, DataError)])
        for number, request in enumerate(part, start + 1):
            answer = request if isinstance(request, DataError) else next(answers)
            if isinstance(answer, SettingError):
                answer = DataError(name, str(answer), number)
                if not options.keep_going:
                    raise answer
            if isinstance(answer, DataError):
                all_answered = False
                print(f"error: {answer}", file=sys.stderr)
            for line, record in _lines(answer, number, options):
                print(json.dumps(record, ensure_ascii=False) if options.json else line, flush=True)
    return all_answered


def _lines(
    answers: list[Answer] | DataError, number: int, options: Any
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The text of each answer, and all about it; empty lines stand for what could not be had."""
    if isinstance(answers, DataError):
        record = {"input": number, "error": str(answers)}
        yield from [("", record)] * (options.num_templates or 1)
        return
    for sentence, template, fitness in answers:
        starts = getattr(sentence.states, "starts", None)  # of phrases
        about = sentence._asdict() | ({} if starts is None else {"starts": starts})
        about["template"] = template and template.number
        about["fitness"] = fitness and fitness._asdict()
        yield sentence.text, about | {"input": number}


def _write_split(writer: Writer, answering: Answering, split: str, folder: Path) -> None:
    from models.generation.writer import FILES, write_files

    with telling(folder, "made"):
        folder.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    given = writer.instances(writer.trained.corpus().splits[split])
    sentences = []
    for start in watched(range(0, len(given), CHUNK), f"hundreds of {len(given):,} sentences"):
        for answer in answering([one.request for one in given[start : start + CHUNK]]):
            if isinstance(answer, SettingError):
                raise answer
            sentences.append(answer[0].sentence)
    write_files(folder, given, sentences)
    protocol = "e2e" if writer.trained.config.task == "data2text" else "paraphrase"
    files = " ".join(f"--{name} {folder / name}.txt" for name in FILES)
    print(f"{len(given)} sentences; next: python -m models score --protocol {protocol} {files}")
