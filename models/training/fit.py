"""A run: from a configuration to checkpoints and logs in a folder."""

from __future__ import annotations

import logging
import sys
import warnings
from pathlib import Path
from typing import Any

import lightning
import torch
import yaml
from lightning.pytorch.callbacks import Callback, TQDMProgressBar
from lightning.pytorch.loggers import TensorBoardLogger
from lightning.pytorch.utilities import rank_zero_only
from torch.utils.data import DataLoader

from models.config import MachineConfig, RunConfig
from models.data.batches import Batch, Encoded, collate, in_order
from models.data.corpus import Corpus, spread
from models.data.loader import BucketedLoader
from models.data.tasks import corpus_vocabulary, encode_task
from models.data.tokens import learn_casing
from models.errors import RunError
from models.files import replacing
from models.runs import LAST, RUN_KEY, checkpoint_path, load_checkpoint, read_config
from models.training.callbacks import CollapseWarning, EpochLines, GradientVariance, StopEarly
from models.training.checkpoints import AtomicCheckpoints, SaveBest, SaveLast
from models.training.logs import MetricsFile
from models.training.module import TrainingModule

DEV_BATCH = 100
PROBE_SENTENCES = 20  # on which the gradient's variance is measured
MAY_CHANGE = {"training.epochs", "training.patience", "machine.threads"}  # in a resumed run


def fit(config: RunConfig, corpus: Corpus, run: Path, resume: bool = False) -> TrainingModule:
    """Train, or go on training, and leave checkpoints and logs in `run`."""
    start = _checkpoint_to_resume(config, corpus, run, resume)
    vocabulary = corpus_vocabulary(corpus)
    sentences = encode_task(config.task, corpus.splits["train"], vocabulary)
    loader = BucketedLoader(
        sentences, config.data.batch_size, config.training.seed, config.machine.devices
    )
    _write_config(config, run)
    if config.machine.threads:
        torch.set_num_threads(config.machine.threads)
    lightning.seed_everything(config.training.seed, verbose=False)
    casing = learn_casing(corpus.splits["train"])
    module = TrainingModule(config, vocabulary, casing, steps_per_epoch=len(loader))
    trainer = _trainer(config, corpus, run, module, start)
    loader.follow(lambda: trainer.global_step, trainer.global_rank)
    batches: Any = in_order(_dev_sentences(config, corpus), DEV_BATCH)
    dev: DataLoader[Batch] = DataLoader(batches, batch_size=None)
    trainer.fit(module, loader, dev, ckpt_path=start)
    return module


def _trainer(
    config: RunConfig, corpus: Corpus, run: Path, module: TrainingModule, start: Path | None
) -> lightning.Trainer:
    machine = config.machine
    _quieten_lightning()
    step = load_checkpoint(start)["global_step"] if start else None
    return lightning.Trainer(
        max_epochs=config.training.epochs,
        precision=machine.precision,
        accelerator=_accelerator(machine),
        devices=machine.devices,
        strategy="ddp" if machine.devices > 1 else "auto",
        logger=[
            MetricsFile(run / "metrics.csv", step),
            TensorBoardLogger(run, name="tensorboard", version="", purge_step=step),
        ],
        callbacks=_callbacks(config, corpus, run, module),
        plugins=[AtomicCheckpoints()],
        use_distributed_sampler=False,  # the loader shares batches itself
        num_sanity_val_steps=0,
        enable_model_summary=False,
        enable_progress_bar=sys.stderr.isatty(),
    )


def _accelerator(machine: MachineConfig) -> str:
    """Other accelerators than CUDA lack the double precision that the kernels need."""
    if machine.accelerator != "auto":
        return machine.accelerator
    return "gpu" if torch.cuda.is_available() else "cpu"


def _callbacks(
    config: RunConfig, corpus: Corpus, run: Path, module: TrainingModule
) -> list[Callback]:
    settings = config.training
    callbacks: list[Callback] = [CollapseWarning(), SaveBest(run)]
    callbacks.append(SaveLast(run, settings.checkpoint_every))
    callbacks.append(TQDMProgressBar(refresh_rate=5) if sys.stderr.isatty() else EpochLines())
    if settings.patience:
        callbacks.append(StopEarly("dev/bound", patience=settings.patience))
    if settings.variance_every and module.model.latent:
        probe = collate(_dev_sentences(config, corpus)[:PROBE_SENTENCES])
        callbacks.append(GradientVariance(probe, settings.variance_every))
    return callbacks


def _dev_sentences(config: RunConfig, corpus: Corpus) -> list[Encoded]:
    """All of them, or as many as asked, evenly spread."""
    dev = encode_task(config.task, corpus.splits["dev"], corpus_vocabulary(corpus))
    return spread(dev, config.training.dev_sentences or len(dev))


def _checkpoint_to_resume(
    config: RunConfig, corpus: Corpus, run: Path, resume: bool
) -> Path | None:
    last = checkpoint_path(run, LAST)
    if not resume:
        if last.exists():
            raise RunError(f"{run} holds a run already: go on with --resume, or choose another")
        return None
    if not last.exists():
        return None
    changed = [name for name in config.differences(read_config(run)) if name not in MAY_CHANGE]
    if changed:
        raise RunError(f"{run} was started with other settings, see {', '.join(changed)}")
    saved, now = load_checkpoint(last)[RUN_KEY], corpus_vocabulary(corpus)
    if (saved["words"], saved["keys"]) != (now.words.real_words, now.keys.real_words):
        raise RunError(f"the corpus {corpus.name} has other words than when {run} was started")
    return last


@rank_zero_only
def _write_config(config: RunConfig, run: Path) -> None:
    with replacing(run / "config.yaml") as unfinished:
        unfinished.write_text(yaml.safe_dump(config.as_dict(), sort_keys=False))


def _quieten_lightning() -> None:
    """Leave out what does not concern a user of these models."""
    silent = [
        "You're resuming from a checkpoint that ended before",  # the loader knows where to go on
        "The 'val_dataloader' does not have many workers",
        "The 'train_dataloader' does not have many workers",
        "The number of training batches .* is smaller than the logging interval",
        "Checkpoint directory .* exists and is not empty",
        "Trying to infer the `batch_size`",
        "`isinstance\\(treespec, LeafSpec\\)` is deprecated",
    ]
    for message in silent:
        warnings.filterwarnings("ignore", message)
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
