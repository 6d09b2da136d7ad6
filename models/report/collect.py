"""Everything a report on a run shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from models.report.content import Report
from models.report.logs import charts, comparison, read_logs
from models.report.templates import browser, coloured_sentences, ngrams, state_words
from models.run_templates import analyse_run, run_templates
from models.runs import TrainedRun

TASKS = {
    "text": "modelling sentences",
    "data2text": "sentences from tables",
    "paraphrase": "sentences from the content words of others",
    "paraphrase-unpaired": "sentences from their own content words",
}


def collect(trained: TrainedRun, others: Sequence[Path]) -> Report:
    """`others` are runs to compare with."""
    logs = read_logs([trained.folder, *others])
    title = f"{logs[0].name}: {trained.config.objective.estimator}"
    report = Report(title, _facts(trained), charts=charts(logs), comparison=comparison(logs))
    return _with_templates(report, trained) if trained.model.latent else report


def _with_templates(report: Report, trained: TrainedRun) -> Report:
    corpus = trained.corpus()
    bank = run_templates(trained, corpus)
    analysis = analyse_run(bank, corpus)
    writes = trained.config.task != "text"
    return replace(
        report,
        sentences=coloured_sentences(trained, corpus),
        browser=browser(trained, corpus, bank) if writes else None,
        ngrams=ngrams(analysis),
        states=state_words(analysis),
    )


def _facts(trained: TrainedRun) -> tuple[tuple[str, str], ...]:
    config = trained.config
    return (
        ("task", TASKS[config.task]),
        ("corpus", config.data.corpus),
        ("estimator", config.objective.estimator),
        ("states", str(config.model.num_states) if trained.model.latent else "none"),
        ("hidden size", str(config.model.hidden_size)),
        ("words", f"{len(trained.vocabulary.words):,}"),
        ("steps trained", f"{trained.step:,}"),
        ("learning rate", str(config.training.learning_rate)),
        ("seed", str(config.training.seed)),
    )
