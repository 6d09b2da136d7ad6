"""The templates of a run's training sentences, made once and kept in its folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

from models.data.corpus import Corpus
from models.errors import RunError
from models.runs import TrainedRun
from models.template_analysis import TemplateAnalysis, analyse
from models.template_bank import TemplateBank
from models.templates import map_templates

FILE = "templates.npz"


def run_templates(trained: TrainedRun, corpus: Corpus | None = None) -> TemplateBank:
    """From the run's folder, if they were made with the same model and as many sentences."""
    if not trained.model.latent:
        raise RunError(f"{trained.folder} is a model without templates")
    path, fingerprint = trained.folder / FILE, _fingerprint(trained)
    stored = _stored(path)
    if stored is not None and stored.fingerprint == fingerprint and _fits(stored, corpus):
        return stored
    bank = _build(trained, corpus or trained.corpus(), fingerprint)
    bank.save(path)
    return bank


def _stored(path: Path) -> TemplateBank | None:
    """Nothing if it is damaged: it is made again then."""
    try:
        return TemplateBank.load(path)
    except RunError:
        return None


def _fits(bank: TemplateBank, corpus: Corpus | None) -> bool:
    return corpus is None or len(bank.sentences) == len(corpus.splits["train"])


def _fingerprint(trained: TrainedRun) -> str:
    """Of the model's parameters."""
    digest = hashlib.sha256()
    for name, value in trained.model.state_dict().items():
        digest.update(name.encode() + value.numpy().tobytes())
    return digest.hexdigest()


def _build(trained: TrainedRun, corpus: Corpus, fingerprint: str) -> TemplateBank:
    examples = corpus.splits["train"]
    templates = map_templates(trained.model, examples, trained.vocabulary.words)
    keys = ([key for key, _ in example.table] for example in examples)
    return TemplateBank.build(templates, keys, fingerprint, trained.config.model.num_states)


def analyse_run(bank: TemplateBank, corpus: Corpus) -> TemplateAnalysis:
    """Of the training sentences."""
    words = [example.words for example in corpus.splits["train"]]
    return analyse(bank.of_sentences(), words)
