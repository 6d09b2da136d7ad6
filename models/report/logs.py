"""What the logs of runs tell: curves, scores, and a comparison."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from models.config import RunConfig
from models.errors import RunError
from models.report.content import Cell, Chart, Curve, Grid, Points
from models.runs import read_config, read_metrics

CHARTS = {
    "dev/bound": "What validation goes by: nats per sentence, the lower the better.",
    "train/loss": "The loss of single batches; early in training schedules change its meaning.",
    "dev/ppl": "Perplexity by the bound, per word.",
    "dev/entropy": "Of the posterior over templates, nats per sentence.",
    "dev/states_in_use": "States with a thousandth of the dev set's words or more.",
    "train/log_variance_ratio": "Log variance ratio of the inference network's gradient.",
}
MEASURES = {
    "dev/bound": "bound",
    "dev/ppl": "PPL",
    "dev/neg_elbo": "neg. ELBO",
    "dev/entropy": "entropy",
    "dev/states_in_use": "states in use",
}


@dataclass(frozen=True)
class LoggedRun:
    name: str
    config: RunConfig
    metrics: Mapping[str, Points]

    @property
    def best_step(self) -> int | None:
        """The step at which the dev set was best: that of the checkpoint that is kept."""
        bounds = [p for p in self.metrics.get("dev/bound", ()) if not math.isnan(p[1])]
        return min(bounds, key=lambda point: point[1])[0] if bounds else None

    def at(self, metric: str, step: int | None) -> float | None:
        return dict(self.metrics.get(metric, ())).get(-1 if step is None else step)


def read_points(run: Path) -> dict[str, Points]:
    """What is logged of each metric."""
    metrics: dict[str, list[tuple[int, float]]] = defaultdict(list)
    for row in read_metrics(run / "metrics.csv"):
        metrics[row["metric"]].append((int(row["step"]), float(row["value"])))
    return {metric: tuple(own) for metric, own in metrics.items()}


def read_log(run: Path) -> LoggedRun:
    metrics = read_points(run)
    return LoggedRun(run.resolve().name, read_config(run), metrics)


def read_logs(runs: Sequence[Path]) -> list[LoggedRun]:
    """The log of each run once; runs in several places that share a name go by their paths."""
    folders = list({run.resolve(): run for run in runs}.values())
    logs = [read_log(folder) for folder in folders]
    times = Counter(log.name for log in logs)
    return [
        log if times[log.name] == 1 else replace(log, name=str(folder))
        for log, folder in zip(logs, folders, strict=True)
    ]


def runs_like(run: Path) -> list[Path]:
    """Runs beside it with the same task and corpus, by name; itself among them."""
    own = read_log(run).config
    found = []
    for folder in sorted(path.parent for path in run.resolve().parent.glob("*/config.yaml")):
        try:
            other = read_log(folder).config
        except RunError:
            continue
        if (other.task, other.data.corpus) == (own.task, own.data.corpus):
            found.append(folder)
    return found


def metric_charts(runs: Sequence[LoggedRun]) -> tuple[Chart, ...]:
    """A chart for each metric that some run has."""
    found = []
    for metric, meaning in CHARTS.items():
        curves = [Curve(run.name, run.metrics[metric]) for run in runs if metric in run.metrics]
        if curves:
            found.append(Chart(metric, meaning, tuple(curves)))
    return tuple(found)


def comparison(runs: Sequence[LoggedRun]) -> Grid:
    """Each run where its dev set was best."""
    columns = ("run", "estimator", "hidden size", "states", *MEASURES.values(), "epoch of the best")
    return Grid(columns, tuple(_row(run) for run in runs))


def _row(run: LoggedRun) -> tuple[Cell, ...]:
    step, model = run.best_step, run.config.model
    values = [run.at(metric, step) for metric in MEASURES]
    in_use = values.pop()
    epochs = [s for s, _ in run.metrics.get("dev/bound", ())]
    return (
        run.name,
        run.config.objective.estimator,
        model.hidden_size,
        model.num_states if run.config.objective.latent else None,
        *values,
        int(in_use) if in_use is not None and in_use.is_integer() else in_use,
        None if step is None else epochs.index(step) + 1,
    )
