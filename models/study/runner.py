"""Runs a study: as many processes at a time as asked, each run's stages one after the other."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from models.errors import DataError, RunError
from models.files import read_text, telling
from models.locks import locked
from models.study.plan import Study, StudyRun
from models.study.progress import Stage, conflicts, stages_to_do

TICK = 0.2  # seconds between looks at the processes
WAITING, ELSEWHERE, DONE, STOPPED = "waiting", "used by another process", "done", "stopped"
FAILED, DIFFERENT = "failed", "has other settings"
SIGNALS = (signal.SIGINT, signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM))


@dataclass
class Job:
    """A run, and what is being done for it."""

    run: StudyRun
    stages: Iterator[Stage]
    state: str = WAITING
    process: subprocess.Popen[bytes] | None = None
    problem: str = ""

    def advance(self) -> None:
        """Start the next stage, if there is one."""
        self.process = None
        with self.failing():
            stage = next(self.stages, None)
            self.process = None if stage is None else _started(stage, self.run)
            self.state = DONE if stage is None else stage.doing

    def look(self, stopping: bool) -> None:
        """Go on, if its process has ended well."""
        if self.process is None or self.process.poll() is None:
            return
        if stopping:
            self.process, self.state = None, STOPPED
        elif self.process.returncode == 0:
            self.advance()
        else:
            self.process, self.state, self.problem = None, FAILED, _told(self.run)

    @contextmanager
    def failing(self) -> Iterator[None]:
        """What is wrong with the folder of a run stops no other."""
        try:
            yield
        except (DataError, RunError) as error:
            self.state, self.problem = FAILED, str(error)


class Runner:
    """Carries a study out, first seeds first. What other processes train, it waits for."""

    def __init__(self, study: Study, processes: int) -> None:
        self.study, self.processes = study, processes
        self.jobs: list[Job] = []
        self.signals: list[int] = []  # received
        self._passed_on = 0  # how many of them

    def run(self, show: Callable[[Sequence[Job]], None]) -> None:
        """To the end, or until a signal; `show` is called again and again."""
        with locked(self.study.folder), self._receiving_signals():
            self.jobs = [self._job(run) for run in self.study.runs]
            try:
                while self._advance():
                    show(self.jobs)
                    time.sleep(TICK)
            finally:
                self._stop()
                for process in self._running():
                    process.wait()
                show(self.jobs)

    def _job(self, run: StudyRun) -> Job:
        job = Job(run, stages_to_do(self.study, run))
        with job.failing():
            if different := conflicts(run):
                job.state, job.problem = DIFFERENT, f"{', '.join(different)}; it is left alone"
            elif next(stages_to_do(self.study, run), None) is None:
                job.state = DONE
        return job

    def _advance(self) -> bool:
        """Look after processes that have ended, start others; false when nothing is left to do."""
        if len(self.signals) > self._passed_on:
            self._passed_on = len(self.signals)
            self._stop()
        stopping = self._passed_on > 0
        for job in self.jobs:
            job.look(stopping)
        waiting = [job for job in self.jobs if job.state in (WAITING, ELSEWHERE) and not stopping]
        groups = self.study.groups()
        for job in sorted(waiting, key=lambda job: groups[job.run.group].index(job.run)):
            if len(self._running()) < self.processes:
                job.state = ELSEWHERE if _is_in_use(job.run) else WAITING
                if job.state == WAITING:
                    job.advance()
        return bool(self._running() or waiting)

    def _running(self) -> list[subprocess.Popen[bytes]]:
        return [job.process for job in self.jobs if job.process is not None]

    @contextmanager
    def _receiving_signals(self) -> Iterator[None]:
        """They are passed on: the first lets processes save and stop, another ends them at once."""
        heeded = {number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN}
        before = {n: signal.signal(n, lambda n, _: self.signals.append(n)) for n in heeded}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _stop(self) -> None:
        for process in self._running():
            process.terminate()


def _started(stage: Stage, run: StudyRun) -> subprocess.Popen[bytes]:
    """A process of its own group, which Ctrl-C in a terminal does not reach but through us."""
    command = ["-m", "models", *stage.arguments]
    with telling(run.log, "written"), run.log.open("ab") as log:
        log.write(f"$ {shlex.join(['python', *command])}\n".encode())
        log.flush()
        return subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def _is_in_use(run: StudyRun) -> bool:
    try:
        with locked(run.folder):
            return False
    except RunError:
        return True


def _told(run: StudyRun) -> str:
    """The error that its process printed, or the last thing it said."""
    lines = read_text(run.log).strip().split("\n")
    errors = [line for line in lines if line.startswith("error: ")]
    return (errors or lines)[-1].removeprefix("error: ")
