"""`python -m tests.fuzz --seed 1 --seconds 60`: a line for each wrong answer, and a summary."""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator, Sequence

import torch

from structdist import ops
from tests.fuzz.asked import Asked
from tests.fuzz.cases import Case, make_case
from tests.fuzz.questions import QUESTIONS


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask until time is up, or there were enough chains; 1 if an answer was wrong."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(options.threads)
    backends = options.backends or available_backends()
    numbers = itertools.count() if options.case is None else [options.case]
    begun, chains, failures = time.monotonic(), 0, 0
    for number in numbers:
        case = make_case(options.seed, number)
        for backend in backends:
            for failure in failures_of(case, backend, options.seed, number):
                print(failure, flush=True)
                failures += 1
        chains += case.exact.num_chains
        if time.monotonic() - begun > options.seconds or chains >= options.chains:
            break
    print(
        f"seed {options.seed}: {chains} chains, each on {' and '.join(backends)}: "
        f"{failures} wrong answers in {time.monotonic() - begun:.0f} s"
    )
    return 1 if failures else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seed", type=int, default=0, help="which cases (default 0)")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--chains", type=float, default=100_000, help="or after so many (100,000)")
    parser.add_argument("--case", type=int, help="the case of this number alone")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--backends", nargs="+", help="default: all fast ones that serve the CPU")
    return parser


def available_backends() -> list[str]:
    """The fast backends that can serve here."""
    names = dict.fromkeys(status.backend for status in ops.backends())
    return [name for name in names if name != "reference" and _serves(name)]


def _serves(backend: str) -> bool:
    with ops.use_backend(backend):
        try:
            ops.backends()
        except RuntimeError:
            return False
    return True


def failures_of(case: Case, backend: str, seed: int, number: int) -> Iterator[str]:
    """A line for each wrong answer, with the command that shows it again."""
    again = f"python -m tests.fuzz --seed {seed} --case {number} --backends {backend}"
    with ops.use_backend(backend):
        for wrong in _wrong_answers(case, seed + number):
            yield f"{case.name}, {backend}: {wrong} ({again})"


def _wrong_answers(case: Case, seed: int) -> Iterator[str]:
    try:
        dist = case.dist()
        dtype = dist.log_partition.dtype
    except ValueError as error:
        if not (case.impossible and "no allowed path" in str(error)):
            yield repr(error)
        return
    if case.impossible:
        yield "a chain without an allowed path is no error"
        return
    for question in QUESTIONS:
        try:
            yield from map(str, question(Asked(case, dist, dtype, seed)))
        except Exception as error:
            yield f"{question.__name__}: {error!r}"


if __name__ == "__main__":
    sys.exit(main())
