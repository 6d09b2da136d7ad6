"""What the runs of a study come to: means over seeds, and how far these spread."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from statistics import mean, stdev

import numpy as np

from models.files import read_json
from models.study.plan import Study, StudyRun
from models.study.progress import CPU_SECONDS, SCORES, best_epoch, epochs, evaluation_path

NATS = {
    "dev/word_nats": "-log p(x given z)",
    "dev/state_nats": "-log p(z)",
    "dev/entropy": "entropy",
    "dev/bound": "bound",
}
EVALUATED = {
    "nll": "NLL",
    "ppl": "PPL",
    "neg_elbo": "neg. ELBO",
    "entropy": "entropy",
    "states_in_use": "states in use",
}
PERCENTAGES = {  # of an evaluation; as those of `score` they are fractions in the file
    "recovery": {"v_measure": "NMI"},
    "boundaries": {"f1": "boundary F1"},
    "control": {
        "slot_errors": "slot errors",
        "slot_errors_under_templates": "under templates",
        "adherence": "adherence",
        "different_orders": "three orders",
    },
}
NO_PERCENTAGES = ("NIST", "CIDEr")
BUDGETS = {"a quarter": 0.25, "half": 0.5, "all of it": 1.0}

Groups = Mapping[str, Sequence[StudyRun]]  # by label
Values = Mapping[str, float | None]
Rows = list[tuple[str | int | None, ...]]  # the header first; None where nothing was measured


def table(groups: Groups, measure: Callable[[StudyRun], Values]) -> Rows:
    """A row for each group; columns that no run has a value for are left out."""
    measured = {label: [measure(run) for run in runs] for label, runs in groups.items()}
    every = list(chain(*measured.values()))
    names = dict.fromkeys(chain(*every))
    columns = [name for name in names if any(own.get(name) is not None for own in every)]
    rows = [
        (label, len(own), *(_over_seeds(values.get(name) for values in own) for name in columns))
        for label, own in measured.items()
    ]
    return [("", "seeds", *columns), *rows]


def evaluated(study: Study, run: StudyRun) -> Values:
    """What was measured after training."""
    found = read_json(evaluation_path(study, run))
    values = {name: found["scores"][key] for key, name in EVALUATED.items()}
    for part, names in PERCENTAGES.items():
        values |= {n: 100 * found[part][key] for key, n in names.items() if found.get(part)}
    return values


def scored(run: StudyRun) -> Values:
    """What `score` says of texts, but for counts."""
    found = read_json(run.folder / SCORES)["scores"]
    return {
        name: score["value"] * (1 if name in NO_PERCENTAGES else 100)
        for name, score in found.items()
        if isinstance(score["value"], float)
    }


def cpu_minutes(run: StudyRun) -> list[float]:
    """CPU minutes of training until the end of each epoch; none if the log lacks some."""
    minutes = [seconds / 60 for seconds in epochs(run, CPU_SECONDS)]
    return minutes if len(minutes) == len(epochs(run, "dev/bound")) else []


def budget_minutes(groups: Groups) -> float | None:
    """CPU minutes of the quickest training among runs with templates."""
    latent = [run for run in chain(*groups.values()) if run.config.objective.latent]
    return min((minutes[-1] for minutes in map(cpu_minutes, latent) if minutes), default=None)


def after_budgets(metric: str, minutes: float, run: StudyRun) -> Values:
    """How long training took, and the metric after equal CPU times."""
    times = {f"{name}: {share * minutes:.3g} min": share for name, share in BUDGETS.items()}
    values = {name: value_at(run, metric, share * minutes) for name, share in times.items()}
    return {"CPU min": next(reversed(cpu_minutes(run)), None)} | values


def value_at(run: StudyRun, metric: str, minutes: float) -> float | None:
    """On the line between the epochs before and after that time; the last value after the end."""
    values, times = epochs(run, metric), cpu_minutes(run)
    if not times or minutes < times[0]:
        return None
    return float(np.interp(minutes, times, values))


def at_the_end(metric: str, run: StudyRun) -> Values:
    """How much is still gained in the last quarter of the epochs."""
    values = epochs(run, metric)
    before = values[len(values) - len(values) // 4 - 1]
    return {
        "at three quarters": before,
        "at the end": values[-1],
        "change": values[-1] - before,
        "change in the last epoch": values[-1] - values[-2] if len(values) > 1 else None,
        "epoch of the checkpoint": best_epoch(run),
    }


def nats_table(groups: Groups) -> Rows:
    """Of what the bound is made, after some epochs: powers of two, and the last."""
    latent = {label: runs for label, runs in groups.items() if runs[0].config.objective.latent}
    last = max((len(epochs(run, "dev/bound")) for run in chain(*latent.values())), default=0)
    chosen = [epoch for epoch in range(1, last + 1) if epoch & (epoch - 1) == 0 or epoch == last]
    rows: Rows = [("", "nats", *(f"epoch {epoch}" for epoch in chosen))]
    for label, runs in latent.items():
        for metric, part in NATS.items():
            curves = [epochs(run, metric) for run in runs]
            reached = [[curve[epoch - 1 : epoch] for curve in curves] for epoch in chosen]
            rows.append((label, part, *(_over_seeds(chain(*values)) for values in reached)))
    return rows


def _over_seeds(values: Iterable[float | None]) -> str | None:
    """The mean and, of several, the standard deviation; none where nothing was measured."""
    found = [value for value in values if value is not None]
    if not found:
        return None
    if len(found) == 1:
        return str(found[0]) if isinstance(found[0], int) else f"{found[0]:.2f}"
    return f"{mean(found):.2f} ± {stdev(found):.2f}"
