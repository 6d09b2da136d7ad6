"""`python -m models study`."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser
from jsonargparse.typing import NonNegativeInt, PositiveInt

from models.commands import Parser
from models.commands.train import settings_reader
from models.errors import DataError, SettingError, StoppedError, StudyFailedError
from models.study.plan import Study, read_study

USAGE = "study FILE [--processes N] [--folder DIR] [--seeds N ...] [--report] [--keep]"
DETAILS = """\
The file names settings that all runs share, groups of runs with settings of their own, and their
seeds; models/studies/ has some, and models/study/plan.py says what can be in one. Each run is an
ordinary one, trained, evaluated and, if asked, scored; the first seed of every group comes first.
What is done is not done again, and what was stopped goes on: give the same command once more.
Tables and plots, of a study that is half done too, are made with --report:
  python -m models study models/studies/demo.yaml --processes 2
  python -m models study models/studies/demo.yaml --report
Results of the runs that are done, without their weights, are kept beside the file with --keep;
wherever the runs are missing, the study goes on from there."""

RUNS = Path("runs/studies")


def add_arguments(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("file", type=str, help="The study.")
    add("--processes", type=PositiveInt, default=1, help="Runs at a time, on a thread each.")
    add("--folder", type=str | None, help="Where its runs are; default runs/studies/NAME.")
    add("--seeds", type=NonNegativeInt, nargs="+", help="Only runs with these seeds.")
    add("--report", action="store_true", help="Compare what is there: FOLDER/report.md and plots.")
    add("--keep", action="store_true", help="Keep the results of what is done beside the file.")


def run(options: Any) -> None:
    path = Path(options.file)
    folder = Path(options.folder) if options.folder else RUNS / path.stem
    study = read_study(path, folder, settings_reader())
    if options.seeds:
        runs = tuple(own for own in study.runs if own.seed in options.seeds)
        if not runs:
            raise SettingError(f"no run of {path} has the seeds {options.seeds}")
        study = replace(study, runs=runs)
    _check_stages(study)
    if options.keep:
        from models.study.kept import keep_results

        print(f"kept in {study.results}: {', '.join(keep_results(study)) or 'nothing new'}")
    if options.report:
        from models.study.report import write_report

        print(f"report: {write_report(study)}")
    if not (options.keep or options.report):
        _carry_out(study, options)


def _check_stages(study: Study) -> None:
    """What is to be done after training has options that its command knows."""
    from models.study.progress import evaluation, scoring, writing

    first = study.runs[0]
    asked = [evaluation(study, first)] if study.evaluate is not None else []
    asked += [writing(study, first), scoring(study, first)] if study.score is not None else []
    for name, *arguments in asked:
        parser = Parser(exit_on_error=False)
        import_module(f"models.commands.{name}").add_arguments(parser)
        try:
            parser.parse_args(arguments)
        except SettingError as error:
            raise DataError(study.path, f"{name}: {error}") from error


def _carry_out(study: Study, options: Any) -> None:
    from models.study.display import shown
    from models.study.runner import DONE, Runner

    runner = Runner(study, options.processes)
    with shown() as show:
        runner.run(show)
    done = sum(job.state == DONE for job in runner.jobs)
    again = f"study {study.path}" + (f" --folder {options.folder}" if options.folder else "")
    again += f" --seeds {' '.join(map(str, options.seeds))}" if options.seeds else ""
    if runner.signals:
        raise StoppedError(runner.signals[0], f"{done} of {len(runner.jobs)} runs", again)
    problems = [f"{job.run.name} {job.state}: {job.problem}" for job in runner.jobs if job.problem]
    if problems:
        raise StudyFailedError(
            "\n".join([f"{done} of {len(runner.jobs)} runs are done", *problems])
        )
    print(f"done: {study.folder}; next: python -m models {again} --report")
