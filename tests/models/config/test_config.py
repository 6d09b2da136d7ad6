"""Settings from files and the command line arrive as they were given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import yaml

from models.commands import main
from models.config import (
    DataConfig,
    MachineConfig,
    ModelConfig,
    ObjectiveConfig,
    RunConfig,
    Schedule,
    TrainingConfig,
)
from models.errors import SettingError

FILES = sorted(Path(__file__).parents[3].glob("models/configs/*.yaml"))
CHANGED = RunConfig(
    DataConfig("e2e", "folder", 7),
    ModelConfig(num_states=5, dropout=0.0, source_dropout=0.3),
    ObjectiveConfig(
        "pm-mrf", {"num_samples": 2}, temperature=Schedule(1.0, 0.1, 3, shape="geometric")
    ),
    TrainingConfig(epochs=3, learning_rate=1e-2, final_learning_rate=1e-3),
    MachineConfig("cpu", devices=2, precision="bf16-mixed"),
    task="data2text",
)


@pytest.fixture
def parse(monkeypatch):
    """The configuration that the arguments of `train` come to, and the folder of the run."""
    found = []
    monkeypatch.setattr("models.corpora.open_corpus", lambda *_: None)
    monkeypatch.setattr(
        "models.training.fit.fit", lambda config, _, run, resume: found.append((config, run))
    )

    def parse(*arguments):
        main(["train", *arguments])
        return found.pop()

    return parse


@pytest.mark.parametrize("config", [RunConfig(), CHANGED])
def test_round_trip(config):
    """Through a file of plain types too."""
    assert RunConfig.from_dict(config.as_dict()) == config
    assert RunConfig.from_dict(yaml.safe_load(yaml.safe_dump(config.as_dict()))) == config


def test_differences():
    config = RunConfig()
    assert config.differences(RunConfig()) == []
    other = replace(
        config,
        objective=replace(config.objective, beta=Schedule(0.2), estimator="rnnlm"),
        machine=replace(config.machine, threads=3),
    )
    assert config.differences(other) == ["objective.estimator", "objective.beta", "machine.threads"]
    assert config.differences(replace(config, task="paraphrase")) == ["task"]


def test_defaults(parse):
    assert parse() == (RunConfig(), Path("runs/synthetic-gumbel-crf-st"))


def test_there_are_files():
    assert {"e2e", "demo"} <= {path.stem for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_files(path, parse):
    """Each setting in the file is a setting of the run."""
    config, _ = parse("--config", str(path))
    found = config.as_dict()
    for part, settings in yaml.safe_load(path.read_text()).items():
        if not isinstance(settings, dict):  # of no component
            assert found[part] == settings, part
            continue
        for name, value in settings.items():
            if isinstance(value, dict):  # a schedule
                assert found[part][name].items() >= value.items(), name
            else:
                assert found[part][name] == value, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_command_line_wins(path, parse):
    options = ["--training.epochs", "77", "--objective.beta.start", "0.5", "--threads", "3"]
    changed, _ = parse("--config", str(path), *options)
    config, _ = parse("--config", str(path))
    assert changed.differences(config) == ["objective.beta", "training.epochs", "machine.threads"]
    assert (changed.training.epochs, changed.objective.beta.start) == (77, 0.5)
    assert changed.machine.threads == 3


def test_a_schedule_as_one_argument(parse):
    schedule = "{start: 1.0, end: 0.01, epochs: 2.5, shape: geometric}"
    config, _ = parse("--objective.temperature", schedule)
    assert config.objective.temperature == Schedule(1.0, 0.01, 2.5, shape="geometric")


@pytest.mark.parametrize("rate", ["1e-4", "0", "null"])
def test_the_final_learning_rate_may_be_none(rate, parse):
    config, _ = parse("--training.final_learning_rate", rate)
    expected = None if rate == "null" else float(rate)
    assert config.training.final_learning_rate == expected


REINFORCE = ("--objective.estimator", "reinforce-ms-c")


def test_settings_of_an_estimator(parse):
    config, _ = parse(*REINFORCE, "--objective.estimator_settings.num_samples", "3")
    assert config.objective.estimator_settings == {"num_samples": 3}
    config, _ = parse(*REINFORCE, "--objective.estimator_settings", "{num_samples: 3, constant: 1}")
    assert config.objective.estimator_settings == {"num_samples": 3, "constant": 1}
    config, _ = parse(*REINFORCE, "--objective.estimator_settings.constant", "0.1")  # the default
    assert config.objective == ObjectiveConfig("reinforce-ms-c")


@pytest.mark.parametrize("name", ["rloo", "vargrad"])
def test_an_estimator_by_another_name(name, parse):
    config, folder = parse("--objective.estimator", name)
    assert config.objective.estimator == name
    assert folder == Path(f"runs/synthetic-{name}")


@pytest.mark.parametrize("estimator", ["rnnlm", "gumbel-crf-st", "reinforce-ms", "reinforce-ms-c"])
def test_a_run_of_an_earlier_version(estimator, parse):
    """It says what the defaults were, and is the same run as without saying it."""
    older = RunConfig(objective=ObjectiveConfig(estimator)).as_dict()
    del older["objective"]["estimator_settings"]
    older["objective"] |= {"num_samples": 5, "constant_baseline": 0.1, "reward_scale": 1.0}
    now, _ = parse("--objective.estimator", estimator)
    assert RunConfig.from_dict(older).differences(now) == []


def test_settings_of_an_earlier_version():
    older = RunConfig(objective=ObjectiveConfig("reinforce-ms-c")).as_dict()
    older["objective"] |= {"num_samples": 3, "constant_baseline": 0.2, "reward_scale": None}
    settings = RunConfig.from_dict(older).objective.estimator_settings
    assert settings == {"num_samples": 3, "constant": 0.2}


def test_a_run_from_before_there_were_phrases():
    older = RunConfig().as_dict()
    for group, names in {
        "model": ["posterior", "max_phrase"],
        "objective": ["phrase_model"],
    }.items():
        for name in names:
            del older[group][name]
    assert RunConfig.from_dict(older) == RunConfig()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.pop("model"), "model is missing"),
        (lambda values: values.pop("threads"), "threads is missing"),
        (lambda values: values.update(model=3), "model is a group of settings, not 3"),
        (lambda values: values.update(colour="red"), "colour"),
        (lambda values: values["model"].update(colour="red"), "'model' does not accept .*'colour'"),
        (lambda values: values["model"].update(num_states="many"), "model.num_states: .*many"),
        (lambda values: values["model"].update(num_states=1), "num_states must be at least 2"),
        (lambda values: values["objective"]["beta"].update(start="x"), "objective.beta.start: .*x"),
        (lambda values: values["objective"].update(estimator="magic"), "magic"),
        (lambda values: values.update(devices="two"), "machine.devices: .*two"),
    ],
)
def test_what_does_not_fit_is_named(change, message):
    values = RunConfig().as_dict()
    change(values)
    with pytest.raises(SettingError, match=message):
        RunConfig.from_dict(values)


def test_the_folder_is_named_after_corpus_task_and_estimator(parse):
    _, folder = parse("--data.corpus", "coco", "--objective.estimator", "rnnlm")
    assert folder == Path("runs/coco-rnnlm")
    _, folder = parse("--data.corpus", "coco", "--task", "paraphrase")
    assert folder == Path("runs/coco-paraphrase-gumbel-crf-st")
    assert parse("--run", "elsewhere")[1] == Path("elsewhere")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("training: {epoch: 3}", "epoch"),
        ("colour: red", "colour"),
        ("objective: {estimator: magic}", "magic"),
        ("objective: {beta: {start: 1, stop: 2}}", "stop"),
        ("model: {num_states: many}", "many"),
    ],
)
def test_unknown_settings_in_a_file(content, message, parse, tmp_path, capsys):
    (tmp_path / "some.yaml").write_text(content)
    with pytest.raises(SystemExit) as stopped:
        parse("--config", str(tmp_path / "some.yaml"))
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err.split("error:")[-1]


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        ("--bogus", "1", "--bogus"),
        ("--config", "absent.yaml", "absent.yaml"),
        ("--devices", "two", "devices"),
        ("--devices", "0", "devices must be at least 1, not 0"),
        ("--threads", "-1", "threads must be at least 0, not -1"),
        ("--data.batch_size", "0", "batch_size must be at least 1, not 0"),
        ("--model.num_states", "1", "num_states must be at least 2, not 1"),
        ("--model.dropout", "1.0", "dropout must be below 1, not 1.0"),
        ("--model.posterior", "markov", "posterior"),
        ("--model.max_phrase", "0", "max_phrase must be at least 1, not 0"),
        ("--objective.phrase_model.start", "1", "needs model.posterior semi-markov"),
        ("--model.source_dropout", "1.0", "source_dropout must be below 1, not 1.0"),
        ("--model.source_dropout", "-0.1", "source_dropout must be at least 0, not -0.1"),
        ("--training.final_learning_rate", "-0.1", "final_learning_rate must not be negative"),
        ("--task", "poetry", "task"),
        ("--objective.estimator_settings.num_samples", "0", "num_samples must be at least 1"),
        ("--objective.estimator_settings.num_samples", "many", "num_samples must be an integer"),
        ("--objective.estimator_settings.colour", "1", "has no setting 'colour'"),
        ("--objective.estimator_settings.temperature", "1", "objective.temperature is"),
        ("--objective.beta.epochs", "-1", "cannot take -1.0 epochs"),
        ("--objective.beta", "{start: 0, shape: geometric}", "positive start and end"),
        ("--training.epochs", "-1", "epochs must be at least 1, not -1"),
        ("--training.checkpoint_every", "0", "checkpoint_every must be at least 1, not 0"),
    ],
)
def test_settings_that_make_no_sense(option, value, message, parse, capsys):
    with pytest.raises(SystemExit) as stopped:
        parse(option, value)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err.split("error:")[-1]
