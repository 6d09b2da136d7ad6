"""The most likely templates of sentences; those of a run's training sentences are kept with it."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import torch

from models.data.batches import encode, in_order
from models.data.corpus import Corpus, Example
from models.errors import RunError
from models.locks import locked
from models.runs import TrainedRun, Watch, unwatched
from models.templates.analysis import TemplateAnalysis, analyse
from models.templates.bank import TemplateBank
from models.templates.segments import Phrases
from structdist import SemiMarkovCRF

FILE = "templates.json.gz"
BATCH = 100


@torch.no_grad()
def map_templates(
    trained: TrainedRun, examples: Sequence[Example], watch: Watch = unwatched
) -> list[tuple[int, ...]]:
    """The MAP states of each sentence, one per word; the end mark's is left out.

    They are `Phrases` if the model has any.
    """
    sentences = encode([example.words for example in examples], trained.vocabulary.words)
    templates: list[tuple[int, ...]] = []
    for batch in watch(in_order(sentences, BATCH), "templates of sentences"):
        posterior, lengths = trained.model.posterior(batch), (batch.lengths - 1).tolist()
        if isinstance(posterior, SemiMarkovCRF):
            states, starts = (part.tolist() for part in posterior.labels_of(posterior.argmax))
            both = zip(states, starts, lengths, strict=True)
            templates += [Phrases(own[:n], begins[:n]) for own, begins, n in both]
        else:
            paths = zip(posterior.argmax.tolist(), lengths, strict=True)
            templates += [tuple(states[:n]) for states, n in paths]
    return templates


def run_templates(
    trained: TrainedRun, corpus: Corpus | None = None, watch: Watch = unwatched
) -> TemplateBank:
    """Loads them from the run's folder, or makes them if model or corpus are others."""
    if not trained.model.latent:
        raise RunError(f"{trained.folder} is a model without templates")
    path, fingerprint = trained.folder / FILE, _fingerprint(trained.model)
    try:
        stored = TemplateBank.load(path)
        fits = corpus is None or len(stored.sentences) == len(corpus.splits["train"])
        if stored.fingerprint == fingerprint and fits:
            return stored
    except RunError:
        pass  # missing or damaged: it is made again
    with locked(trained.folder):
        examples = (corpus or trained.corpus()).splits["train"]
        templates, keys = map_templates(trained, examples, watch), [dict(e.table) for e in examples]
        bank = TemplateBank(templates, keys, trained.config.model.num_states, fingerprint)
        bank.save(path)
        return bank


def analyse_run(bank: TemplateBank, corpus: Corpus) -> TemplateAnalysis:
    """What the states of the training sentences stand for."""
    return analyse(bank.of_sentences(), [example.words for example in corpus.splits["train"]])


def _fingerprint(model: torch.nn.Module) -> str:
    """A checksum of the model's parameters."""
    parts = (name.encode() + value.numpy().tobytes() for name, value in model.state_dict().items())
    return hashlib.sha256(b"".join(parts)).hexdigest()
