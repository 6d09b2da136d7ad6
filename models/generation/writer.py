"""A trained run that writes sentences, and what to write from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from models.config import Decoding
from models.data.batches import collate_sources
from models.data.corpus import Example, grouped
from models.data.sources import EncodedSource, Item, bag_items, table_items
from models.data.tables import Table, format_table, key_mark
from models.data.tokens import tokenise
from models.errors import RunError, SettingError
from models.files import write_text
from models.generation.search import Written, write
from models.runs import TrainedRun
from models.surface.text import text_about

BATCH = 100
LARGE_BATCH = 500  # beginnings that a beam holds at a time
FILES = ("outputs", "references", "inputs")  # what `python -m models score` reads


class Request(NamedTuple):
    """What to write from."""

    items: list[Item]
    table: Table = ()
    sentence: str = ""  # whose content words the items are, if it is no table

    @property
    def label(self) -> str:
        """What is written from, as a user would type it."""
        return format_table(self.table) if self.table else self.sentence


class Sentence(NamedTuple):
    text: str  # for readers
    words: tuple[str, ...]  # as in the corpus, delexicalised
    states: tuple[int, ...]  # of each word; `Phrases` if there are any, empty without templates
    log_prob: float  # log p(x, z | source)

    @property
    def log_prob_per_word(self) -> float:
        """The end mark is one of the words."""
        return self.log_prob / (len(self.words) + 1)


class Instance(NamedTuple):
    """What to write from, and what others wrote."""

    request: Request
    references: list[str]


class Writer:
    def __init__(self, trained: TrainedRun, decoding: Decoding | None = None) -> None:
        if trained.config.task == "text":
            raise RunError("this run models sentences alone; train with --task data2text to write")
        self.trained, self.decoding = trained, decoding or Decoding()
        words, keys = trained.vocabulary
        self._marks = [words.number(key_mark(k)) for k in keys.real_words if key_mark(k) in words]

    def from_table(self, table: Table) -> Request:
        return Request(table_items(table, self.trained.vocabulary.words), table)

    def from_sentence(self, sentence: str) -> Request:
        return Request(bag_items(tokenise(sentence)), sentence=sentence)

    def requests(self, examples: Sequence[Example]) -> list[Request]:
        """What can be written from: each table once, or the first of the sentences of a group."""
        return [instance.request for instance in self._given(examples)]

    def instances(self, examples: Sequence[Example]) -> list[Instance]:
        """Each table, or group of sentences, that there is something to compare with."""
        usable = [instance for instance in self._given(examples) if instance.references]
        if not usable:
            task = self.trained.config.task
            raise SettingError(f"there is nothing in these sentences to do {task} with")
        return usable

    def _given(self, examples: Sequence[Example]) -> Iterator[Instance]:
        """All sentences about a table are references; of paraphrases the first is rewritten.

        Paraphrases are compared by their tokens.
        """
        for group in grouped(examples).values():
            if self.trained.config.task == "data2text":
                request = self.from_table(group[0].table)
                texts = (" ".join(example.text.split()) for example in group)
                references = [text for text in texts if text]
            else:
                source, *references = (" ".join(example.words) for example in group)
                request = self.from_sentence(source)
            if request.items:
                yield Instance(request, references)

    def write(
        self, requests: Sequence[Request], templates: Sequence[Sequence[int]] | None = None
    ) -> list[Sentence]:
        """A sentence for each request, under the template of the same place if there are any."""
        return [best for best, *_ in self.alternatives(requests, templates)]

    def alternatives(
        self, requests: Sequence[Request], templates: Sequence[Sequence[int]] | None = None
    ) -> list[list[Sentence]]:
        """As `write`, with all sentences that a beam has found, the best first."""
        size = BATCH
        if self.decoding.method == "beam":  # each beginning goes on with so many states
            states = self.decoding.beam if templates is None else 1
            size = max(1, LARGE_BATCH // (self.decoding.beam * states))
        found: list[list[Sentence]] = []
        for start in range(0, len(requests), size):
            part = requests[start : start + size]
            own = templates and templates[start : start + size]
            sources = [self.trained.vocabulary.encode(request.items) for request in part]
            batch = collate_sources(sources)
            written = write(self.trained.model, batch, self.decoding, own, self._marks)
            for request, source, rivals in zip(part, sources, written, strict=True):
                found.append([self._sentence(request, source, rival) for rival in rivals])
        return found

    def _sentence(self, request: Request, source: EncodedSource, written: Written) -> Sentence:
        spelled = [*self.trained.vocabulary.words.words, *source.new_words]
        words = tuple(spelled[number] for number in written.words)
        text = text_about(words, request.table, self.trained.casing)
        states = written.states if self.trained.model.latent else ()
        return Sentence(text, words, states, written.log_prob)


def write_files(folder: Path, given: Sequence[Instance], sentences: Sequence[Sentence]) -> None:
    """What `python -m models score` reads: outputs, references and inputs.

    Paraphrases are compared by their tokens. A text is empty if all its words are marks of keys
    that the table lacks; its tokens never are.
    """
    outputs = []
    for instance, sentence in zip(given, sentences, strict=True):
        text = sentence.text if instance.request.table else ""
        outputs.append(text or " ".join(sentence.words))
    references = "\n\n".join("\n".join(instance.references) for instance in given)
    inputs = "\n".join(instance.request.label for instance in given)
    for name, content in zip(FILES, ("\n".join(outputs), references, inputs), strict=True):
        write_text(folder / f"{name}.txt", content + "\n")
