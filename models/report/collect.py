"""Everything a report on a run shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from models.data.corpus import spread
from models.generation.answers import write_differently
from models.generation.writer import Request, Writer
from models.report.content import Output, Report, TableChoice, coloured
from models.report.logs import comparison, metric_charts, read_logs
from models.runs import TrainedRun, Watch, unwatched
from models.templates.bank import TemplateBank
from models.templates.of_runs import analyse_run, map_templates, run_templates

TASKS = {
    "text": "modelling sentences",
    "data2text": "sentences from tables",
    "paraphrase": "sentences from the content words of others",
    "paraphrase-unpaired": "sentences from their own content words",
}
SENTENCES = 12
TABLES, TEMPLATES = 8, 6  # to choose from, and sentences for each table


def collect(trained: TrainedRun, others: Sequence[Path], watch: Watch = unwatched) -> Report:
    """A report on the run, compared with others."""
    logs = read_logs([trained.folder, *others])
    title = f"{logs[0].name}: {trained.config.objective.estimator}"
    report = Report(title, _facts(trained), charts=metric_charts(logs), comparison=comparison(logs))
    if not trained.model.latent:
        return report
    corpus = trained.corpus()
    bank = run_templates(trained, corpus, watch)
    analysis = analyse_run(bank, corpus)
    examples = spread(corpus.splits["dev"], SENTENCES)
    states = map_templates(trained, examples)
    browser = []
    if trained.config.task != "text":
        writer = Writer(trained)
        requests = spread(writer.requests(corpus.splits["dev"]), TABLES)
        for request in watch(requests, "sentences under templates"):
            browser.append(_under_templates(writer, bank, request))
    return replace(
        report,
        sentences=tuple(coloured(e.words, own) for e, own in zip(examples, states, strict=True)),
        browser=tuple(browser),
        ngrams=tuple(ngram for ngram in analysis.ngrams if len(ngram.states) > 1),
        states=analysis.states,
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


def _under_templates(writer: Writer, bank: TemplateBank, request: Request) -> TableChoice:
    """A source of the dev set, under several templates."""
    outputs = []
    for sentence, template, _ in write_differently(writer, bank, request, TEMPLATES):
        assert template is not None
        note = f"template @{template.number}; log p per word {sentence.log_prob_per_word:.2f}"
        runs = coloured(sentence.words, sentence.states)
        outputs.append(Output(template.states, sentence.text, runs, note))
    return TableChoice(request.label, tuple(outputs))
