"""A run that was killed, at whatever moment, ends as if nothing had happened."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from models.config.schedules import Schedule
from models.errors import RunError
from models.training.fit import fit
from tests.models.training.conftest import EPOCHS, STEPS, TINY, logged, outcome, tiny
from tests.models.training.killing import CALLS, Bomb, survives

pytestmark = pytest.mark.filterwarnings("ignore:posterior collapse", "ignore:.*`ckpt_path`")

ALL_POINTS = [(hook, n) for hook, calls in CALLS.items() for n in range(1, calls + 1)]
SOME_POINTS = [
    ("on_train_epoch_start", 2),
    ("on_train_batch_start", 1),  # before the first step
    ("on_train_batch_start", 6),
    ("on_train_batch_start", 9),  # the first of an epoch
    ("on_before_optimizer_step", 4),
    ("on_train_batch_end", 7),
    ("on_train_batch_end", 8),  # the last of an epoch
    ("on_validation_start", 1),
    ("on_validation_batch_end", 2),
    ("on_validation_end", 3),
    ("on_train_epoch_end", 1),
    ("on_train_end", 1),
]


def idle(patience):
    training = {"learning_rate": 0.0, "patience": patience, "variance_every": 0}
    return tiny(objective={"estimator": "rnnlm"}, training=training)


IDLE = idle(patience=1)


@pytest.fixture(scope="module")
def uninterrupted(corpus, tmp_path_factory):
    run = tmp_path_factory.mktemp("runs") / "uninterrupted"
    fit(TINY, corpus, run)
    return run


def check(bomb, config, corpus, run, expected):
    assert not survives(bomb, config, corpus, run)
    fit(config, corpus, run, resume=True)
    assert outcome(run) == expected


@pytest.mark.parametrize(("hook", "n"), SOME_POINTS)
def test_killed_once(hook, n, corpus, tmp_path, uninterrupted):
    check(Bomb(hook, n), TINY, corpus, tmp_path, outcome(uninterrupted))


def test_an_estimator_that_learns_goes_on_from_what_it_learnt(corpus, tmp_path):
    """Measurements of its variance, which every run of these has, teach it nothing."""
    config = tiny(objective={"estimator": "aimle"})
    whole = fit(config, corpus, tmp_path / "whole")
    assert whole.objective.state_dict()["step"]["reach"] != 1.0
    bomb = Bomb("on_train_batch_end", 7)
    check(bomb, config, corpus, tmp_path / "killed", outcome(tmp_path / "whole"))
    rarely = tiny(objective={"estimator": "aimle"}, training={"variance_every": 0})
    unmeasured = fit(rarely, corpus, tmp_path / "unmeasured")
    assert unmeasured.objective.state_dict() == whole.objective.state_dict()


def test_time_is_counted_over_all_parts_of_a_run(corpus, tmp_path):
    assert not survives(Bomb("on_train_batch_end", STEPS + 2), TINY, corpus, tmp_path)
    fit(TINY, corpus, tmp_path, resume=True)
    seconds = logged(tmp_path, "train/cpu_seconds")
    assert len(seconds) == EPOCHS
    assert 0 < seconds[0] < seconds[1] < seconds[2]


@pytest.mark.slow
@pytest.mark.parametrize("first", [False, True])
@pytest.mark.parametrize(("hook", "n"), ALL_POINTS)
def test_killed_at_any_moment(hook, n, first, corpus, tmp_path, uninterrupted):
    check(Bomb(hook, n, first), TINY, corpus, tmp_path, outcome(uninterrupted))


def test_every_moment_is_among_the_points(corpus, tmp_path):
    """One call more than there are, of any hook, and the run survives."""
    bombs = [Bomb(hook, calls + 1) for hook, calls in CALLS.items()]

    class All(Bomb):
        def among(self, callbacks):
            return [*callbacks, *bombs]

    assert survives(All("setup", 0), TINY, corpus, tmp_path)
    assert all(bomb.left == 1 for bomb in bombs)


def test_killed_again_and_again(corpus, tmp_path, uninterrupted):
    attempts = 1
    while not survives(Bomb("on_train_batch_end", 4), TINY, corpus, tmp_path, resume=True):
        attempts += 1
    assert attempts == 4  # three new steps each time, and the last one again
    assert outcome(tmp_path) == outcome(uninterrupted)


@pytest.mark.parametrize(("hook", "n"), [("on_train_batch_end", 8), ("on_validation_end", 1)])
def test_checkpoints_that_do_not_fit_the_epoch(hook, n, corpus, tmp_path, uninterrupted):
    """Saved after 3, 6, 9 steps and at the start of each epoch of 4; the outcome is the same."""
    config = tiny(training={"checkpoint_every": 3})
    check(Bomb(hook, n), config, corpus, tmp_path, outcome(uninterrupted))


@pytest.mark.parametrize("estimator", ["rnnlm", "reinforce-ms"])
def test_other_estimators(estimator, corpus, tmp_path):
    config = tiny(objective={"estimator": estimator}, training={"epochs": 2})
    fit(config, corpus, tmp_path / "whole")
    expected = outcome(tmp_path / "whole")
    check(Bomb("on_train_batch_end", 3), config, corpus, tmp_path / "killed", expected)


@pytest.mark.parametrize(
    ("hook", "n"),
    [("on_train_batch_end", 6), ("on_validation_batch_end", 2), ("on_train_end", 1)],
)
def test_averages(hook, n, corpus, tmp_path):
    """Killed in an epoch, while the dev set is read by the average, and at the end."""
    config = tiny(training={"average": 0.5})
    fit(config, corpus, tmp_path / "whole")
    expected = outcome(tmp_path / "whole")
    check(Bomb(hook, n), config, corpus, tmp_path / "killed", expected)


@pytest.mark.parametrize("step", [2, 3, 6])
def test_phrases(step, corpus, tmp_path):
    """Killed while the phrase model teaches, at its last step, and afterwards."""
    config = replace(
        tiny(
            model={"posterior": "semi-markov", "max_phrase": 3},
            objective={"phrase_model": Schedule(1.0, 0.0, after=1)},
            training={"epochs": 2},
        ),
        task="data2text",
    )
    fit(config, corpus, tmp_path / "whole")
    expected = outcome(tmp_path / "whole")
    check(Bomb("on_train_batch_end", step), config, corpus, tmp_path / "killed", expected)


@pytest.fixture(scope="module")
def stopped_early(corpus, tmp_path_factory):
    """Nothing is learnt, so the second epoch is no better than the first."""
    run = tmp_path_factory.mktemp("runs") / "stopped"
    fit(IDLE, corpus, run)
    assert outcome(run)["step"] == 2 * STEPS < EPOCHS * STEPS
    return run


def test_a_run_that_stops_early_stops_at_the_same_epoch(corpus, tmp_path, stopped_early):
    check(Bomb("on_train_epoch_end", 2), IDLE, corpus, tmp_path, outcome(stopped_early))


@pytest.mark.parametrize(
    ("patience", "epochs"), [(1, 2), (2, 3), (0, 3)], ids=["as before", "more", "no end"]
)
def test_patience_may_change(patience, epochs, corpus, tmp_path, stopped_early):
    """With the patience it had, a run that has stopped stays as it is."""
    run = shutil.copytree(stopped_early, tmp_path / "run")
    fit(idle(patience), corpus, run, resume=True)
    assert outcome(run)["step"] == epochs * STEPS
    assert len(logged(run, "dev/bound")) == epochs


def test_resuming_a_finished_run_changes_nothing(corpus, tmp_path, uninterrupted):
    run = shutil.copytree(uninterrupted, tmp_path / "run")
    fit(TINY, corpus, run, resume=True)
    assert outcome(run) == outcome(uninterrupted)


def test_a_run_that_moved_knows_its_best(corpus, tmp_path):
    """The first epoch's, at a learning rate that leads astray."""
    config = tiny(training={"learning_rate": 0.1})
    assert not survives(Bomb("on_train_batch_end", 6), config, corpus, tmp_path / "here")
    run = shutil.move(tmp_path / "here", tmp_path / "there")
    fit(config, corpus, run, resume=True)
    bounds = logged(run, "dev/bound")
    assert bounds[0] == min(bounds)
    assert outcome(run)["best step"] == STEPS


@pytest.mark.parametrize("average", [0.0, 0.5])
def test_more_epochs(average, corpus, tmp_path):
    """A finished run goes on to where a longer one would have come."""
    config = tiny(training={"average": average})
    fit(config, corpus, tmp_path / "longer")
    run = tmp_path / "shorter"
    fit(tiny(training={"average": average, "epochs": 1}), corpus, run)
    fit(config, corpus, run, resume=True)
    assert outcome(run) == outcome(tmp_path / "longer")


def test_resuming_nothing_is_a_start(corpus, tmp_path, uninterrupted):
    fit(TINY, corpus, tmp_path, resume=True)
    assert outcome(tmp_path) == outcome(uninterrupted)


def test_a_folder_that_holds_a_run(corpus, uninterrupted):
    before = outcome(uninterrupted)
    with pytest.raises(RunError, match="holds a run already: go on with --resume"):
        fit(TINY, corpus, uninterrupted)
    assert outcome(uninterrupted) == before


@pytest.mark.parametrize(
    ("changes", "names"),
    [
        ({"model": {"hidden_size": 9}}, "model.hidden_size"),
        ({"objective": {"estimator": "pm-mrf"}}, "objective.estimator"),
        (
            {"data": {"batch_size": 5}, "training": {"seed": 1, "epochs": 9}},
            "data.batch_size, training.seed",
        ),
    ],
)
def test_other_settings_are_refused_by_name(changes, names, corpus, uninterrupted):
    with pytest.raises(RunError, match=f"other settings, see {names};"):
        fit(tiny(**changes), corpus, uninterrupted, resume=True)
    assert len(logged(uninterrupted, "dev/bound")) == EPOCHS
