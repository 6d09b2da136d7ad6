"""Which backend runs: what is said about it, how one is forced, and that states do not mix."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import defaultdict

import pytest
import torch

from structdist import LinearChainCRF, ops
from structdist.ops.native import library
from tests.traps.chains import BACKENDS, chain, gradients, leaves, scores, seeded

HERE = [name for name in BACKENDS if name != "native" or library.unavailable is None]
PAIRS = [(one, other) for one in HERE for other in HERE if one != other]


@pytest.fixture
def without_environment(monkeypatch):
    monkeypatch.delenv("STRUCTDIST_BACKEND", raising=False)


# What is said --------------------------------------------------------------------------------


def by_structure(**options) -> dict[str, list[ops.BackendStatus]]:
    found = defaultdict(list)
    for status in ops.backends(**options):
        found[status.structure].append(status)
    return found


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_every_backend_is_listed_with_a_reason(device, dtype):
    found = by_structure(device=device, dtype=dtype)
    assert set(BACKENDS) <= {status.backend for status in found["linear chain"]}
    for statuses in found.values():
        names = [status.backend for status in statuses]
        assert len(set(names)) == len(names)
        assert "reference" in names
        assert all(len(status.reason) > 5 for status in statuses)
        assert sum(status.in_use for status in statuses) == 1


def in_use(structure: str = "linear chain", **options) -> str:
    return next(s.backend for s in by_structure(**options)[structure] if s.in_use)


def test_what_is_said_to_be_in_use_is(without_environment, monkeypatch):
    chosen = []
    run = ops.forward_by

    def seen(backend, problem):
        forward = run(backend, problem)
        chosen.append("reference" if forward is None else forward.backend.NAME)
        return forward

    monkeypatch.setattr(ops, "forward_by", seen)
    chain((2,)).log_partition  # noqa: B018
    assert chosen == [in_use()]
    for name in HERE:
        with ops.use_backend(name):
            assert in_use() == name
            chain((2,)).log_partition  # noqa: B018
            assert chosen[-1] == name


def test_the_fastest_is_the_default(without_environment):
    assert in_use() == HERE[0]
    assert in_use(device="meta") == "reference"


@pytest.mark.parametrize("name", HERE)
def test_a_forced_backend_is_said_to_be_forced(name):
    with ops.use_backend(name):
        for statuses in by_structure().values():
            (used,) = [status for status in statuses if status.in_use]
            assert used.backend in (name, "reference")
            if used.backend == name:
                assert "asked for" in used.reason


# How one is forced ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["fast", "", "Native", "cuda"])
def test_an_unknown_name_is_refused_with_the_names(name):
    with pytest.raises(ValueError, match="native, triton, rescaled") as raised:  # noqa: SIM117
        with ops.use_backend(name):
            pytest.fail("the block was entered")
    assert "reference" in str(raised.value)
    assert repr(name) in str(raised.value)


def test_a_block_ends_where_it_ends(without_environment):
    default = ops.forced_backend()
    with ops.use_backend("reference"):
        with ops.use_backend("rescaled"):
            assert ops.forced_backend() == "rescaled"
        assert ops.forced_backend() == "reference"
        with pytest.raises(KeyError), ops.use_backend("rescaled"):
            raise KeyError
        assert ops.forced_backend() == "reference"
    assert ops.forced_backend() == default


def test_a_backend_that_cannot_serve_says_why():
    dist = LinearChainCRF(torch.zeros(4, 3, device="meta"), torch.zeros(3, 3, device="meta"))
    with ops.use_backend("rescaled"), pytest.raises(RuntimeError, match=r"'rescaled'.*meta"):
        dist.log_partition  # noqa: B018


PROGRAM = """
import torch
from structdist import LinearChainCRF, ops

dist = LinearChainCRF(torch.zeros(2, 4, 3), torch.zeros(3, 3))  # the first use is after this
print("made")
print(float(dist.log_partition[0]))
print([status.backend for status in ops.backends() if status.in_use])
with ops.use_backend("reference"):
    print([status.backend for status in ops.backends() if status.in_use])
"""


def run_with(name: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        env={"STRUCTDIST_BACKEND": name, "PATH": ""},
    )


def test_the_environment_forces_one():
    made, log_partition, used, within_a_block = run_with("rescaled").stdout.splitlines()
    assert made == "made"
    assert float(log_partition) == pytest.approx(4 * torch.tensor(3.0).log().item())
    assert "rescaled" in used
    assert "reference" in within_a_block


def test_an_unknown_one_in_the_environment_is_an_error_at_first_use():
    done = run_with("fastest")
    assert done.returncode != 0
    assert done.stdout.splitlines() == ["made"]
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ValueError")
    assert "'fastest'" in last
    assert "native, triton, rescaled" in last


def test_an_empty_name_in_the_environment_forces_none():
    assert HERE[0] in run_with("").stdout.splitlines()[2]


# States do not mix ---------------------------------------------------------------------------


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_another_backend_makes_its_own_forward_pass(one, other, monkeypatch):
    passes = []
    run = ops.forward_by

    def counted(backend, problem):
        forward = run(backend, problem)
        passes.append("reference" if forward is None else forward.backend.NAME)
        return forward

    monkeypatch.setattr(ops, "forward_by", counted)
    dist = chain((3,), lengths=torch.tensor([4, 2, 0]))
    answers = []
    for name in (one, one, other, other, one):
        with ops.use_backend(name):
            answers.append((dist.log_partition, dist.entropy(), dist.marginals))
    assert passes == [one, other, one]
    for found in answers[1:]:
        for x, y in zip(found, answers[0], strict=True):
            torch.testing.assert_close(x, y)


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_gradients_are_those_of_the_backend_that_made_the_answer(one, other):
    """A graph made under one backend is followed back under another."""
    made = leaves(scores((3,)))
    dist = LinearChainCRF(**made)

    def answers():
        draw = dist.rsample((2,), generator=seeded(0), temperature=0.5)
        return torch.cat([dist.log_partition, dist.entropy(), draw.flatten()])

    with ops.use_backend(one):
        found = answers()
        wanted = gradients(found, made)
    with ops.use_backend(other):
        answers()
        for name, grad in gradients(found, made).items():
            assert torch.equal(grad, wanted[name])


# Threads -------------------------------------------------------------------------------------


def test_a_block_is_its_threads_own(without_environment):
    """Three threads, each in a block of its own at the same time, and one in none."""
    barrier = threading.Barrier(4, timeout=10)
    seen: dict[str | None, str | None] = {}

    def ask(name: str | None) -> None:
        if name is None:
            barrier.wait()
            seen[name] = ops.forced_backend()
            barrier.wait()
            return
        with ops.use_backend(name):
            barrier.wait()
            seen[name] = ops.forced_backend()
            barrier.wait()

    threads = [threading.Thread(target=ask, args=(name,)) for name in (*BACKENDS, None)]
    with ops.use_backend("reference"):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert ops.forced_backend() == "reference"
    assert seen == {**{name: name for name in BACKENDS}, None: None}


def test_threads_that_share_an_object_get_the_same_answers():
    dist = chain((3,), num_steps=12)
    expected = dist.entropy()
    wrong = []

    def ask(name: str) -> None:
        for _ in range(30):
            with ops.use_backend(name):
                found = dist.entropy()
            if not torch.allclose(found, expected):
                wrong.append((name, found))

    threads = [threading.Thread(target=ask, args=(name,)) for name in HERE]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
