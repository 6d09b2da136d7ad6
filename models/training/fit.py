"""A run: from a configuration to checkpoints and logs in a folder."""

from __future__ import annotations

import logging
import os
import sys
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import lightning
import torch
import yaml
from lightning.pytorch.callbacks import Callback, TQDMProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only
from torch.utils.data import DataLoader

from models.config import RunConfig
from models.data.batches import Batch, BucketedLoader, Encoded, collate, in_order
from models.data.corpus import Corpus, spread
from models.data.tables import values_by_key
from models.data.tasks import corpus_vocabulary, encode_task
from models.data.tokens import learn_casing
from models.errors import RunError, SettingError
from models.files import write_text
from models.locks import locked
from models.runs import LAST, PREVIOUS, checkpoint_path, load_checkpoint, written_by_us
from models.training.callbacks import (
    AverageWeights,
    EpochLines,
    GradientVariance,
    SaveBest,
    SaveLast,
    StopEarly,
)
from models.training.module import TrainingModule
from models.training.run_files import AtomicCheckpoints, MetricsFile
from structdist.estimators import Exact

DEV_BATCH = 100
PROBE_SENTENCES = 20  # on which the gradient's variance is measured
SILENT = (  # what Lightning says that does not concern a user of these models
    "You're resuming from a checkpoint that ended before",  # the loader knows where to go on
    "The '(val|train)_dataloader' does not have many workers",
    "The number of training batches .* is smaller than the logging interval",
    "Checkpoint directory .* exists and is not empty",
    "Trying to infer the `batch_size`",
    "`isinstance\\(treespec, LeafSpec\\)` is deprecated",
)


def fit(config: RunConfig, corpus: Corpus, run: Path, resume: bool = False) -> TrainingModule:
    """Train, or go on training, and leave checkpoints and logs in `run`, which no other may use."""
    with nullcontext() if getattr(rank_zero_only, "rank", 0) else locked(run):
        start, step = _where_to_start(config, corpus, run, resume)
        settings, machine, vocabulary = config.training, config.machine, corpus_vocabulary(corpus)
        sentences = encode_task(config.task, corpus.splits["train"], vocabulary)
        loader = BucketedLoader(sentences, config.data.batch_size, settings.seed, machine.devices)
        dev = dev_sentences(config, corpus)
        if machine.threads:
            torch.set_num_threads(machine.threads)
        lightning.seed_everything(settings.seed, verbose=False)
        train = corpus.splits["train"]
        known = {"casing": learn_casing(train), "values": values_by_key(e.table for e in train)}
        module = TrainingModule(config, vocabulary, known, steps_per_epoch=len(loader))
        _check_exact(module, max(map(len, sentences)))
        content = yaml.safe_dump(config.as_dict(), sort_keys=False)
        rank_zero_only(write_text)(run / "config.yaml", content)
        trainer = _trainer(module, dev, run, step)
        loader.follow(lambda: trainer.global_step, trainer.global_rank)
        batches: Any = in_order(dev, DEV_BATCH)
        dev_loader: DataLoader[Batch] = DataLoader(batches, batch_size=None)
        trainer.fit(module, loader, dev_loader, ckpt_path=start)
        return module


def dev_sentences(config: RunConfig, corpus: Corpus) -> list[Encoded]:
    """All sentences of the dev set, or as many as asked, evenly spread."""
    dev: Any = encode_task(config.task, corpus.splits["dev"], corpus_vocabulary(corpus))
    return spread(dev, config.training.dev_sentences or len(dev))


def _where_to_start(
    config: RunConfig, corpus: Corpus, run: Path, resume: bool
) -> tuple[Path | None, int | None]:
    """The last whole checkpoint, and its step; it must be of the same settings and words.

    Where the last one is damaged, it is put aside, and the one before it is used.
    """
    last, previous = checkpoint_path(run, LAST), checkpoint_path(run, PREVIOUS)
    if not last.exists() and not previous.exists():
        return None, None
    if not resume:
        raise RunError(f"{run} holds a run already: go on with --resume, or choose another")
    try:
        path, saved = last, load_checkpoint(last)
    except RunError as error:
        if not previous.exists():
            raise
        path, saved = previous, load_checkpoint(previous)
        if last.exists():
            os.replace(last, last.with_suffix(".damaged"))
        rank_zero_only(print)(f"{error}; going on from {previous}", file=sys.stderr)
    now = corpus_vocabulary(corpus)
    with written_by_us(path, saved) as about:
        before, step = RunConfig.from_dict(about["config"]), int(saved["global_step"])
        same_words = (about["words"], about["keys"]) == (now.words.real_words, now.keys.real_words)
    if changed := config.conflicts(before):
        problem = f"was started with other settings, see {', '.join(changed)}"
        raise RunError(f"{run} {problem}; give them as they were, or put {run}/config.yaml right")
    if not same_words:
        raise RunError(f"the corpus {corpus.name} has other words than when {run} was started")
    return path, step


def _check_exact(module: TrainingModule, longest: int) -> None:
    """The exact gradient is a sum over templates, of which long sentences have too many."""
    exact, states = module.objective.estimator, module.config.model.num_states
    if isinstance(exact, Exact) and states**longest > exact.max_outcomes:
        raise SettingError(
            f"objective.estimator exact sums over all templates: {longest} words, the end mark one "
            f"of them, have {states}^{longest}, more than max_outcomes, {exact.max_outcomes:,}"
        )


def _trainer(
    module: TrainingModule, dev: list[Encoded], run: Path, resumed_step: int | None
) -> lightning.Trainer:
    for message in SILENT:
        warnings.filterwarnings("ignore", message)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    settings, machine = module.config.training, module.config.machine
    accelerator = machine.accelerator
    if accelerator == "auto":  # others than CUDA lack the double precision that the kernels need
        accelerator = "gpu" if torch.cuda.is_available() else "cpu"
    # Processes wait for the gradient of every parameter, unless phrase models may have none.
    ddp = "ddp_find_unused_parameters_true" if module.model.has_phrases else "ddp"
    return lightning.Trainer(
        max_epochs=settings.epochs,
        precision=machine.precision,
        accelerator=accelerator,
        devices=machine.devices,
        strategy="auto" if machine.devices == 1 else ddp,
        logger=[
            MetricsFile(run / "metrics.csv", resumed_step),
            TensorBoardLogger(run, name="tensorboard", version="", purge_step=resumed_step),
        ],
        callbacks=_callbacks(module, dev, run),
        plugins=[AtomicCheckpoints()],
        use_distributed_sampler=False,  # the loader shares batches itself
        num_sanity_val_steps=0,
        enable_model_summary=False,
        enable_progress_bar=sys.stderr.isatty(),
    )


def _callbacks(module: TrainingModule, dev: list[Encoded], run: Path) -> list[Callback]:
    settings = module.config.training
    callbacks: list[Callback] = [SaveBest(run), SaveLast(run, settings.checkpoint_every)]
    callbacks.append(TQDMProgressBar(refresh_rate=5) if sys.stderr.isatty() else EpochLines())
    if settings.patience:
        callbacks.append(StopEarly("dev/bound", patience=settings.patience))
    if settings.variance_every and module.model.latent:
        probe = collate(dev[:PROBE_SENTENCES])
        callbacks.append(GradientVariance(probe, settings.variance_every))
    if settings.average:
        callbacks.append(AverageWeights(settings.average))
    return callbacks
