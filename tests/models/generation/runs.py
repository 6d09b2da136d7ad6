"""Runs without training: their words, at random, are as good as any for what is tested."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from models.config import ModelConfig, ObjectiveConfig, RunConfig
from models.data.corpus import Corpus
from models.data.tables import values_by_key
from models.data.tasks import Task, corpus_vocabulary
from models.data.tokens import learn_casing
from models.data.vocabulary import END
from models.restaurants.corpus import synthetic_corpus
from models.runs import TrainedRun
from models.vae.template_vae import build_model

SIZES = ModelConfig(num_states=4, hidden_size=8)
PHRASES = replace(SIZES, posterior="semi-markov", max_phrase=3)


@cache
def small_corpus() -> Corpus:
    return synthetic_corpus(50, 10, 10)


def untrained_run(
    task: Task = "data2text",
    estimator: str = "gumbel-crf-st",
    folder: Path = Path("untrained"),
    model: ModelConfig = SIZES,
) -> TrainedRun:
    """In double precision, so that the size of a batch makes no difference."""
    corpus = small_corpus()
    config = RunConfig(model=model, objective=ObjectiveConfig(estimator), task=task)
    torch.manual_seed(0)
    vocabulary = corpus_vocabulary(corpus)
    built = build_model(config, vocabulary).double().eval()
    casing = learn_casing(corpus.splits["train"])
    values = values_by_key(example.table for example in corpus.splits["train"])
    return TrainedRun(config, vocabulary, casing, built, 0, folder, "best", values)


def copying_run(folder: Path = Path("untrained")) -> TrainedRun:
    """It copies from its source, and writes nothing else while it may."""
    trained = untrained_run(folder=folder)
    gate = trained.model.decoder.output.gate
    assert gate is not None
    torch.nn.init.constant_(gate.bias, 50.0)
    return trained


def ending_run() -> TrainedRun:
    """Its sentences end soon, so that a beam has found several."""
    trained = untrained_run()
    with torch.no_grad():
        trained.model.decoder.output.to_words.bias[END] += 8.0
    return trained
