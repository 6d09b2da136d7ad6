"""Settings, one frozen class per component. The files in `models/configs/` set what differs.

The docstrings are what `python -m models train --help` prints.
"""

from __future__ import annotations

import math
import re
from argparse import ArgumentError
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

from jsonargparse import ArgumentParser

from models.config.schedules import Schedule
from models.data.sources import Task
from models.errors import SettingError

LANGUAGE_MODEL = "rnnlm"  # in the place of an estimator: a model without templates
DEFAULT_ESTIMATOR = "gumbel-crf-st"
MAY_CHANGE = {"training.epochs", "training.patience", "machine.threads"}  # in a resumed run
NOT_NEGATIVE, POSITIVE, SHARE = ({"values": v} for v in ("not negative", "positive", "a share"))


@dataclass(frozen=True)
class DataConfig:
    """What to train on.

    Args:
        corpus: The built-in `synthetic` grammar, or real text: `e2e`, `coco`, or `text`, your own.
        directory: Where `python -m models data` put the corpus; default runs/data/CORPUS.
        batch_size: Sentences in a batch, over all devices together.
    """

    corpus: Literal["synthetic", "e2e", "coco", "text"] = "synthetic"
    directory: str | None = None
    batch_size: int = 100

    def __post_init__(self) -> None:
        _require(self, batch_size=1)


@dataclass(frozen=True)
class ModelConfig:
    """Sizes of the model; defaults are those of the released runs on E2E.

    Args:
        num_states: States a word of a template can have (the paper's text says 50).
        hidden_size: Size of the LSTMs, in each direction, and of the word embeddings.
        num_layers: Layers of each LSTM.
        dropout: Share of embeddings and LSTM outputs that is dropped.
        word_scores: Score states by the word itself, too, not by the BiLSTM alone.
        word_layer: A hidden layer between what the decoder knows and the next word. Without it a
            state makes words likelier or less likely; with it, it also changes what context says.
        posterior: The distribution over templates: a `linear-chain` has a state for each word, a
            `semi-markov` chain one for each phrase, and says where phrases begin.
        max_phrase: Words in the longest phrase; for a semi-Markov posterior.
        source_dropout: Share of the source's words shown as unknown in training where the sentence
            quotes them, so that the decoder learns to copy; for tasks with a source.
    """

    num_states: int = 20
    hidden_size: int = 300
    num_layers: int = 1
    dropout: float = 0.2
    word_scores: bool = False
    word_layer: bool = False
    posterior: Literal["linear-chain", "semi-markov"] = "linear-chain"
    max_phrase: int = 8
    source_dropout: float = 0.1

    @property
    def has_phrases(self) -> bool:
        """Whether templates say where phrases begin."""
        return self.posterior == "semi-markov"

    def __post_init__(self) -> None:
        _require(self, num_states=2, hidden_size=1, num_layers=1, dropout=0, source_dropout=0)
        _require(self, max_phrase=1)
        for name in ("dropout", "source_dropout"):
            if getattr(self, name) >= 1:
                raise SettingError(f"{name} must be below 1, not {getattr(self, name)}")


@dataclass(frozen=True)
class ObjectiveConfig:
    """How the gradient is estimated.

    Args:
        estimator: A name that `structdist.estimators.estimator` knows, such as `gumbel-crf-st` or
            `rloo`; or `rnnlm`, which has no templates: the language model to compare with.
        estimator_settings: What the estimator of that name has other than by default, except for
            its temperature: `--objective.estimator_settings.num_samples 3`.
        temperature: Temperature of the estimators that have one.
        beta: Weight of the posterior's entropy, per sentence. Too small, and the posterior becomes
            constant; too large, and it becomes uniform.
        word_dropout: Share of the decoder's input words hidden, so that it heeds the template.
        context_dropout: Share of sentences whose states the posterior scores by their word alone
            (see `model.word_scores`), and share, drawn anew, whose words the decoder predicts from
            their state alone. States that begin as classes of words keep their meaning.
        target_gradient: Share of the gradient of log p(z) that reaches q through the sampled
            states. With 0 they are fixed targets of p(z), as in the published code; with 1 it is
            the gradient of the bound, and q soon collapses unless the decoder needs the states.
        phrase_model: Weight of the lessons of a model of single phrases, for a semi-Markov
            posterior (`models/vae/phrase_model.py`). While it is positive, q learns from them
            alone, and the decoder from what q draws.
    """

    estimator: str = DEFAULT_ESTIMATOR
    estimator_settings: dict[str, Any] = field(default_factory=dict)
    temperature: Schedule = field(default=Schedule(1.0), metadata=POSITIVE)
    beta: Schedule = field(default=Schedule(0.1), metadata=NOT_NEGATIVE)
    word_dropout: Schedule = field(default=Schedule(1.0, 0.0, 1.0), metadata=SHARE)
    context_dropout: Schedule = field(default=Schedule(0.0), metadata=SHARE)
    target_gradient: Schedule = field(default=Schedule(0.0), metadata=NOT_NEGATIVE)
    phrase_model: Schedule = field(default=Schedule(0.0), metadata=NOT_NEGATIVE)

    @property
    def latent(self) -> bool:
        """Whether the model has templates."""
        return self.estimator != LANGUAGE_MODEL

    def knobs(self, epoch: float) -> Knobs:
        """The values that the schedules have after so many epochs."""
        return Knobs(**{name: getattr(self, name).at(epoch) for name in KNOBS})

    def __post_init__(self) -> None:
        if self.estimator != DEFAULT_ESTIMATOR or self.estimator_settings:
            from models.config.estimators import changed_settings

            settings = changed_settings(self.estimator, self.estimator_settings)
            object.__setattr__(self, "estimator_settings", settings)
        for knob in (setting for setting in fields(self) if setting.metadata):
            schedule, name = getattr(self, knob.name), f"objective.{knob.name}"
            if schedule.smallest < 0:
                raise SettingError(f"{name} must not be negative")
            if knob.metadata == POSITIVE and schedule.smallest == 0:
                raise SettingError(f"{name} must be positive")
            if knob.metadata == SHARE and schedule.largest > 1:
                raise SettingError(f"{name} is a share: at most 1")


KNOBS = [setting.name for setting in fields(ObjectiveConfig) if setting.metadata]


class Knobs:
    """Values of the schedules of an objective at one time, by their names.

    What is not given has the value that its schedule ends with by default: no dropout.
    """

    def __init__(self, **values: float) -> None:
        defaults = {name: getattr(ObjectiveConfig(), name).at(math.inf) for name in KNOBS}
        if values.keys() - defaults.keys():
            raise TypeError(f"knobs are {', '.join(KNOBS)}, not {', '.join(values)}")
        self.values = defaults | values

    def __getattr__(self, name: str) -> float:
        if name not in KNOBS:
            raise AttributeError(name)
        return self.values[name]


@dataclass(frozen=True)
class TrainingConfig:
    """How to train, and for how long.

    Args:
        epochs: Passes over the training sentences.
        learning_rate: Step size of Adam.
        final_learning_rate: What it falls to, evenly, by the last step; null for no change. A run
            resumed for more epochs goes on from the rate that the longer run would have there.
        average: What is validated, saved and used is a mean of the parameters, over about this
            share of the steps, the latest; 0 for the last ones alone.
        clip: Largest norm of the gradient.
        seed: Seed of the parameters, the order of the sentences and all draws.
        patience: Stop after so many epochs without a better dev set; 0 for never.
        dev_sentences: How many of the dev set to look at after each epoch; 0 for all.
        dev_samples: Templates drawn for each of them; their NLL, by importance sampling, is logged
            if there are more than one.
        checkpoint_every: Steps between checkpoints to resume from.
        variance_every: Steps between measurements of the gradient's variance; 0 for never.
    """

    epochs: int = 10
    learning_rate: float = 1e-3
    final_learning_rate: float | None = None
    average: float = 0.0
    clip: float = 1.0
    seed: int = 0
    patience: int = 0
    dev_sentences: int = 0
    dev_samples: int = 1
    checkpoint_every: int = 100
    variance_every: int = 0

    def __post_init__(self) -> None:
        _require(self, epochs=1, learning_rate=0, checkpoint_every=1, dev_samples=1)
        _require(self, patience=0, dev_sentences=0, variance_every=0)
        if self.final_learning_rate is not None and self.final_learning_rate < 0:
            raise SettingError("final_learning_rate must not be negative")
        if not 0 <= self.average <= 1:
            raise SettingError(f"average is a share, from 0 to 1, not {self.average}")
        if self.clip <= 0:
            raise SettingError(f"clip must be positive, not {self.clip}")


@dataclass(frozen=True)
class MachineConfig:
    """Where to train.

    Args:
        accelerator: `cpu`, `gpu`, or `auto` for the best there is.
        devices: With more than one, as many processes share each batch.
        precision: Full (`32-true`), or mixed.
        threads: CPU threads of each process; 0 leaves the choice to torch.
    """

    accelerator: Literal["auto", "cpu", "gpu"] = "auto"
    devices: int = 1
    precision: Literal["32-true", "bf16-mixed", "16-mixed"] = "32-true"
    threads: int = 0

    def __post_init__(self) -> None:
        _require(self, devices=1, threads=0)


@dataclass(frozen=True)
class Decoding:
    """How to write.

    Args:
        method: `greedy` takes the likeliest state and word at each step, `sample` draws them,
            `beam` keeps several beginnings.
        beam: How many, and how many states are tried for each.
        length_penalty: In a beam, log probabilities are divided by the number of words to this
            power, so 0 prefers short sentences, and more than 1 long ones.
        sureness: Of what a beam or templates offer about a table, the best is chosen by how likely
            it is, and by how sure it leaves the model of the table, which counts so much more. Less
            of it makes sentences shorter and more like those of people, who leave things out.
        temperature: Temperature of the draws; below 1 they are closer to the likeliest.
        max_words: After so many words a sentence without a template is cut.
    """

    method: Literal["greedy", "sample", "beam"] = "beam"
    beam: int = 5
    length_penalty: float = 1.0
    sureness: float = 2.0
    temperature: float = 1.0
    max_words: int = 60

    def __post_init__(self) -> None:
        _require(self, beam=1, max_words=1)
        if not 0 < self.temperature < math.inf:
            raise SettingError(f"temperature must be positive, not {self.temperature}")
        if not math.isfinite(self.length_penalty):
            raise SettingError(f"length_penalty must be finite, not {self.length_penalty}")
        if not 0 <= self.sureness < math.inf:
            raise SettingError(f"sureness must be finite and not negative, not {self.sureness}")


@dataclass(frozen=True)
class RunConfig:
    """Everything a run depends on."""

    data: DataConfig = field(default_factory=DataConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    objective: ObjectiveConfig = field(default_factory=ObjectiveConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    machine: MachineConfig = field(default_factory=MachineConfig)
    task: Task = "text"

    def __post_init__(self) -> None:
        if self.objective.context_dropout.largest > 0 and not self.model.word_scores:
            raise SettingError("objective.context_dropout needs model.word_scores true")
        if self.objective.phrase_model.largest > 0 and not self.model.has_phrases:
            raise SettingError("objective.phrase_model needs model.posterior semi-markov")

    def as_dict(self) -> dict[str, Any]:
        """The settings in plain types, as in a file for `--config`: the machine's stand alone."""
        parts = asdict(self)
        return parts | parts.pop("machine")

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunConfig:
        """The inverse of `as_dict`; a `SettingError` names the setting that does not fit.

        Settings that earlier versions did not have are the defaults.
        """
        from models.config.estimators import settings_of_earlier_versions

        if not isinstance(values, dict):
            raise SettingError("there are no settings")
        for name, default in RunConfig().as_dict().items():
            if name not in values:
                raise SettingError(f"{name} is missing")
            if isinstance(default, dict) and not isinstance(values[name], dict):
                raise SettingError(f"{name} is a group of settings, not {values[name]!r}")
        machine = {name: values[name] for name in asdict(MachineConfig())}
        parts = {name: value for name, value in values.items() if name not in machine}
        parts |= {"machine": machine, "objective": settings_of_earlier_versions(parts["objective"])}
        parser = ArgumentParser(exit_on_error=False)
        parser.add_class_arguments(cls)
        try:
            return cls(**parser.instantiate(parser.parse_object(parts)))
        except (ArgumentError, TypeError) as error:
            message = re.sub(r'Parser key "([^"]+)":\s*', r"\1: ", str(error))
            raise SettingError(re.sub(r"<class '(\w+)'>", r"\1", message)) from error

    def differences(self, other: RunConfig) -> list[str]:
        """Dotted names of settings that differ."""
        different = ["task"] if self.task != other.task else []
        for part in (part.name for part in fields(self) if part.name != "task"):
            mine, others = getattr(self, part), getattr(other, part)
            names = [setting.name for setting in fields(mine)]
            different += [f"{part}.{n}" for n in names if getattr(mine, n) != getattr(others, n)]
        return different

    def conflicts(self, before: RunConfig) -> list[str]:
        """Dotted names of settings with which a run that has those of before cannot go on."""
        return [name for name in self.differences(before) if name not in MAY_CHANGE]


def _require(config: Any, **smallest: int) -> None:
    for name, least in smallest.items():
        if getattr(config, name) < least:
            raise SettingError(f"{name} must be at least {least}, not {getattr(config, name)}")
