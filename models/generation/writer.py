"""A trained run that writes sentences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from models.config import Decoding
from models.data.batches import collate_sources
from models.data.delexicalise import key_mark
from models.data.sources import EncodedSource, Item, bag_items, table_items
from models.data.tables import Table
from models.data.tokens import tokenise
from models.errors import RunError
from models.generation.beginnings import Written
from models.generation.search import write
from models.runs import TrainedRun
from models.surface.text import plain_text, text_about

BATCH = 100
LARGE_BATCH = 500  # beginnings that a beam holds at a time


class Request(NamedTuple):
    """What to write from."""

    items: list[Item]
    table: Table = ()
    sentence: str = ""  # whose content words the items are, if it is no table


class Sentence(NamedTuple):
    text: str  # for readers
    words: tuple[str, ...]  # as in the corpus, delexicalised
    states: tuple[int, ...]  # of each word; empty for a model without templates
    log_prob: float  # log p(x, z | source)

    @property
    def log_prob_per_word(self) -> float:
        """The end mark is one of the words."""
        return self.log_prob / (len(self.words) + 1)


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

    def write(
        self, requests: Sequence[Request], templates: Sequence[Sequence[int]] | None = None
    ) -> list[Sentence]:
        """A sentence for each request, under the template of the same place if there are any."""
        size = BATCH
        if self.decoding.method == "beam":
            size = max(1, LARGE_BATCH // self.decoding.beam**2)
        found: list[Sentence] = []
        for start in range(0, len(requests), size):
            part = slice(start, start + size)
            own = None if templates is None else templates[part]
            found += self._write_batch(requests[part], own)
        return found

    def _write_batch(
        self, requests: Sequence[Request], templates: Sequence[Sequence[int]] | None
    ) -> list[Sentence]:
        sources = [self.trained.vocabulary.encode(request.items) for request in requests]
        batch = collate_sources(sources)
        written = write(self.trained.model, batch, self.decoding, templates, self._marks)
        return list(map(self._sentence, requests, sources, written))

    def _sentence(self, request: Request, source: EncodedSource, written: Written) -> Sentence:
        spelled = [*self.trained.vocabulary.words.words, *source.new_words]
        words = tuple(spelled[number] for number in written.words)
        casing = self.trained.casing
        if request.table:
            text = text_about(words, request.table, casing)
        else:
            text = plain_text(words, casing)
        states = tuple(written.states) if self.trained.model.latent else ()
        return Sentence(text, words, states, written.log_prob)
