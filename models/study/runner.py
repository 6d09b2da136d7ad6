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
from typing import Any

from models.errors import RunError
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
        stage = next(self.stages, None)
        self.process = None if stage is None else _started(stage, self.run)
        self.state = DONE if stage is None else stage.doing

    def look(self, stopping: bool) -> None:
        """Go on, if its process has ended well."""
        if self.process is None or self.process.poll() is None:
            return
        if self.process.returncode == 0 and not stopping:
            self.advance()
            return
        self.state = STOPPED if stopping else FAILED
        self.problem = "" if stopping else _told(self.run)
        self.process = None


class Runner:
    """Carries a study out. What other processes train, it waits for."""

    def __init__(self, study: Study, processes: int) -> None:
        self.study, self.processes, self.stopped_by = study, processes, 0
        self.jobs: list[Job] = []

    def run(self, show: Callable[[Sequence[Job]], None]) -> None:
        """To the end, or until a signal; `show` is called again and again."""
        with locked(self.study.folder), self._signals_passed_on():
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
        try:
            if different := conflicts(run):
                job.state, job.problem = DIFFERENT, f"see {', '.join(different)}; it is left alone"
            elif next(stages_to_do(self.study, run), None) is None:
                job.state = DONE
        except RunError as error:
            job.state, job.problem = FAILED, str(error)
        return job

    def _advance(self) -> bool:
        """Look after processes that have ended, start others; false when nothing is left to do."""
        for job in self.jobs:
            job.look(stopping=self.stopped_by > 0)
        for job in (job for job in self.jobs if job.state in (WAITING, ELSEWHERE)):
            if self.stopped_by == 0 and len(self._running()) < self.processes:
                job.state = ELSEWHERE if _is_in_use(job.run) else WAITING
                if job.state == WAITING:
                    job.advance()
        waiting = any(job.state in (WAITING, ELSEWHERE) for job in self.jobs)
        return bool(self._running()) or (waiting and self.stopped_by == 0)

    def _running(self) -> list[subprocess.Popen[bytes]]:
        return [job.process for job in self.jobs if job.process is not None]

    @contextmanager
    def _signals_passed_on(self) -> Iterator[None]:
        """To the processes: the first lets them save and stop, another stops them at once."""
        heeded = {number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN}
        before = {number: signal.signal(number, self._receive) for number in heeded}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _receive(self, number: int, _: Any) -> None:
        self.stopped_by = number
        self._stop()

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
