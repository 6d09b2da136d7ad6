"""The command line, from training to numbers in a file; errors that say what to do."""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import asdict, replace

import pytest

from models.commands import main
from models.config import RunConfig
from models.data.readers import E2E_FILES
from models.locks import locked
from models.restaurants.corpus import synthetic_corpus
from models.runs import load_run, read_config

SENTENCES = {"train": 20, "dev": 6, "test": 4}
SETTINGS = [
    *("--data.batch_size", "10", "--model.num_states", "3", "--model.hidden_size", "8"),
    *("--training.epochs", "1", "--accelerator", "cpu", "--threads", "1"),
]


def run(*arguments) -> None:
    main([str(argument) for argument in arguments])


def exit_code(*arguments) -> int:
    with pytest.raises(SystemExit) as stopped:
        run(*arguments)
    return stopped.value.code


def write_release(folder):
    """E2E files with sentences of the built-in grammar."""
    folder.mkdir()
    corpus = synthetic_corpus(*SENTENCES.values())
    for split, name in E2E_FILES.items():
        rows = [
            f'"{", ".join(f"{key}[{value}]" for key, value in e.table)}","{e.text}"\n'
            for e in corpus.splits[split]
        ]
        (folder / name).write_text("mr,ref\n" + "".join(rows))


pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With a release, a corpus prepared from it, and a run."""
    folder = tmp_path_factory.mktemp("work")
    write_release(folder / "release")
    run("data", "e2e", "--from", folder / "release", "--to", folder / "corpus")
    train(folder, "run")
    return folder


def train(folder, name, *options):
    data = ["--data.corpus", "e2e", "--data.directory", folder / "corpus"]
    run("train", *data, *SETTINGS, "--run", folder / name, *options)


def test_data_from_a_folder(folder, tmp_path, capsys):
    run("data", "e2e", "--from", folder / "release", "--to", tmp_path / "corpus")
    printed = capsys.readouterr().out
    assert f"prepared: {tmp_path / 'corpus'}" in printed.replace("\n", "")
    for shown in ("train", "dev", "test", "mean length", "vocabulary: ", "_name_"):
        assert shown in printed
    assert (tmp_path / "corpus" / "corpus.json.gz").exists()


def test_train_says_what_to_do_next(folder, capsys):
    train(folder, "another")
    printed = capsys.readouterr().out
    assert "epoch 1, step 2: bound " in printed
    assert f"done: {folder / 'another'}; next: python -m models evaluate" in printed


def test_evaluate(folder, tmp_path, capsys):
    path = tmp_path / "new" / "scores.json"
    run("evaluate", folder / "run", "--samples", 5, "--show", 2, "--json", path)
    printed = capsys.readouterr().out
    for shown in ("NLL", "PPL", "neg. ELBO", "entropy", "states in use", "_name_"):
        assert shown in printed
    assert "NMI" not in printed  # these data do not know the true slots
    written = json.loads(path.read_text())
    assert RunConfig.from_dict(written["run"]).model.num_states == 3
    assert written["checkpoint"] == {"name": "best", "step": 2}
    assert (written["split"], written["sentences"], written["samples"]) == ("test", 4, 5)
    scores = {"nll", "ppl", "neg_elbo", "entropy", "entropy_share", "position_entropy_share"}
    assert written["scores"].keys() == scores | {"states_in_use", "word_nats", "state_nats"}
    assert written["recovery"] is None


def test_the_seed_decides(folder, tmp_path):
    found = []
    for seed in (1, 1, 2):
        path = tmp_path / "scores.json"
        run("evaluate", folder / "run", "--samples", 2, "--seed", seed, "--json", path)
        found.append(json.loads(path.read_text())["scores"]["nll"])
    assert found[0] == found[1] != found[2]


def test_evaluate_some_sentences(folder, tmp_path):
    path = tmp_path / "scores.json"
    options = ["--split", "dev", "--limit", 3, "--checkpoint", "last", "--samples", 1]
    run("evaluate", folder / "run", *options, "--json", path)
    written = json.loads(path.read_text())
    assert (written["split"], written["sentences"]) == ("dev", 3)
    assert written["checkpoint"]["name"] == "last"


def test_a_folder_whose_name_looks_like_markup(folder, tmp_path, capsys):
    copied = shutil.copytree(folder / "run", tmp_path / "[" / "b]")
    analysis = tmp_path / "[" / "i].json"
    run("evaluate", copied, "--samples", 1)
    run("templates", copied, "--json", analysis)
    assert f"analysis: {analysis}" in capsys.readouterr().out.replace("\n", "")


@pytest.mark.parametrize("command", [["templates"], ["report"], ["train", "--resume", "--run"]])
def test_a_run_that_another_process_writes_to(command, folder, tmp_path, capsys, monkeypatch):
    """Whoever would write to it is refused; who only reads is not."""
    copied = shutil.copytree(folder / "run", tmp_path / "run")
    (copied / "templates.json.gz").unlink(missing_ok=True)
    before = sorted(copied.rglob("*"))
    with locked(copied):
        monkeypatch.setattr("models.locks.HELD", set())  # this process is another now
        assert exit_code(*command, copied) == 2
        told = f"error: {copied} is being written to by process {os.getpid()}: wait for it"
        assert told in capsys.readouterr().err
        assert sorted(copied.rglob("*")) == sorted({*before, copied / ".lock"})
        run("evaluate", copied, "--samples", 1)
        monkeypatch.undo()


def test_evaluate_a_language_model(folder, capsys):
    train(folder, "rnnlm", "--objective.estimator", "rnnlm")
    run("evaluate", folder / "rnnlm")
    printed = capsys.readouterr().out
    assert "PPL" in printed
    assert "ELBO" not in printed


def test_slots_that_are_known_are_compared(tmp_path, capsys, monkeypatch):
    """With the built-in corpus, made smaller."""
    small = synthetic_corpus(*SENTENCES.values())
    for module in ("models.corpora", "models.runs"):
        monkeypatch.setattr(f"{module}.open_corpus", lambda *_: small)
    run("train", *SETTINGS, "--run", tmp_path / "run")
    path = tmp_path / "scores.json"
    run("evaluate", tmp_path / "run", "--samples", 1, "--show", 1, "--json", path)
    printed = capsys.readouterr().out
    for shown in ("NMI", "homogeneity", "completeness", "many-to-one"):
        assert shown in printed
    words, last_line = small.splits["test"][0].words, printed.split("many-to-one")[1]
    assert all(word in last_line for word in words)
    found = json.loads(path.read_text())["recovery"]
    assert found.keys() == {"homogeneity", "completeness", "v_measure", "many_to_one"}


def test_data_synthetic(capsys, monkeypatch):
    small = synthetic_corpus(*SENTENCES.values())
    monkeypatch.setattr("models.commands.data.open_corpus", lambda name: small)
    run("data", "synthetic")
    printed = capsys.readouterr().out
    assert " ".join(small.splits["train"][0].words) in " ".join(printed.split())
    assert f"vocabulary: {len(small.vocabulary)} types" in printed


def test_a_malformed_row(tmp_path, capsys):
    write_release(tmp_path / "release")
    with (tmp_path / "release" / "devset.csv").open("a") as file:
        file.write("name[Zizzi\n")
    code = exit_code("data", "e2e", "--from", tmp_path / "release", "--to", tmp_path / "corpus")
    assert code == 2
    line = SENTENCES["dev"] + 2
    assert f"devset.csv, line {line}: 1 columns, not 2" in capsys.readouterr().err
    assert not (tmp_path / "corpus").exists()


def test_data_from_nowhere_or_from_two_places(tmp_path, capsys):
    assert exit_code("data", "e2e") == 2
    assert exit_code("data", "coco", "--from", tmp_path, "--download") == 2
    assert capsys.readouterr().err.count("give either --from DIR or --download") == 2


def test_a_corpus_that_was_not_prepared(tmp_path, capsys):
    missing = ["--data.corpus", "e2e", "--data.directory", tmp_path / "absent"]
    assert exit_code("train", *missing, "--run", tmp_path / "run") == 2
    assert "first run `python -m models data e2e`" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_a_run_that_is_there_already(folder, capsys):
    data = ["--data.corpus", "e2e", "--data.directory", folder / "corpus"]
    assert exit_code("train", *data, *SETTINGS, "--run", folder / "run") == 2
    assert "go on with --resume" in capsys.readouterr().err


def test_a_run_that_is_not_there(tmp_path, capsys):
    assert exit_code("evaluate", tmp_path / "absent") == 2
    assert "does not exist; train with `python -m models train" in capsys.readouterr().err


@pytest.mark.parametrize("options", [["--samples", "0"], ["--limit", "-1"], ["--split", "all"]])
def test_options_that_make_no_sense(options, folder, capsys):
    assert exit_code("evaluate", folder / "run", *options) == 2
    assert options[0].strip("-") in capsys.readouterr().err


def test_too_many_processes_for_the_batches(folder, tmp_path, capsys):
    data = ["--data.corpus", "e2e", "--data.directory", folder / "corpus"]
    options = [*data, "--data.batch_size", 1, "--devices", 2, "--run", tmp_path / "run"]
    assert exit_code("train", *options) == 2
    assert "a batch of 1 cannot be shared by 2 processes" in capsys.readouterr().err


def test_a_run_resumes_by_its_folder_alone(folder, capsys):
    """Its settings are known; what may change can be given, and nothing else."""
    train(folder, "resumed")
    before = read_config(folder / "resumed")
    run("train", "--resume", "--run", folder / "resumed", "--training.epochs", 2)
    longer = replace(before, training=replace(before.training, epochs=2))
    assert read_config(folder / "resumed") == longer
    assert load_run(folder / "resumed", "last").step == 4
    other = ["--run", folder / "resumed", "--model.hidden_size", 9]
    assert exit_code("train", "--resume", *other) == 2
    assert "other settings, see model.hidden_size" in capsys.readouterr().err


def test_nothing_to_resume(tmp_path, capsys):
    assert exit_code("train", "--resume", "--run", tmp_path / "absent") == 2
    assert "absent holds no run to go on with" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no command"),
        (["fly"], "there is no command 'fly'\n"),
        (["evalute"], "there is no command 'evalute'; did you mean evaluate?"),
        (["data", "wiki"], "invalid choice: 'wiki'"),
        (["evaluate"], "RUN is missing"),
        (["evaluate", "runs/a", "--limt", "3"], "no option --limt; did you mean --limit?"),
        (["train", "--training.epoch=3"], "--training.epoch; did you mean --training.epochs?"),
        (["evaluate", "runs/a", "--limit", "x"], "--limit:"),
    ],
)
def test_commands_and_options_that_are_none(arguments, message, capsys):
    assert exit_code(*arguments) == 2
    assert message in capsys.readouterr().err


def train_options() -> list[str]:
    """One for each setting; the task and those of the machine have no prefix."""
    parts = asdict(RunConfig())
    alone = [f"--{name}" for name in (*parts.pop("machine"), "task")]
    del parts["task"]
    return alone + [f"--{part}.{name}" for part, values in parts.items() for name in values]


OPTIONS = {
    "train": ["--config", "--run", "--resume", "--objective.beta.start", *train_options()],
    "evaluate": [
        *("run", "--split", "--samples", "--checkpoint", "--limit"),
        *("--show", "--control", "--seed", "--threads", "--json"),
    ],
    "templates": ["run", "--keys", "--length", "--pattern", "--limit", "--json", "--checkpoint"],
    "report": ["run", "--compare", "--output", "--checkpoint"],
    "data": ["corpus", "--from", "--download", "--to"],
}


@pytest.mark.parametrize("command", OPTIONS)
def test_help(command, capsys):
    assert exit_code(command, "--help") == 0
    printed = capsys.readouterr().out
    assert all(option in printed for option in OPTIONS[command])
