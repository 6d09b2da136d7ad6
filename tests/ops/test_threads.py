"""The compiled kernels on several threads: the same bits, after a fork, from many callers."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from structdist import LinearChainCRF, ops
from structdist.ops import Chain, native

pytestmark = pytest.mark.skipif(
    native.library.unavailable is not None, reason=str(native.library.unavailable)
)


@pytest.fixture
def set_threads():
    before = torch.get_num_threads()
    yield torch.set_num_threads
    torch.set_num_threads(before)


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


ANSWERS = {
    "log_partition": lambda d: d.log_partition,
    "entropy": lambda d: d.entropy(),
    "marginals": lambda d: d.marginals.square(),
    "log_prob": lambda d: d.log_prob(d.argmax),
    "rsample": lambda d: d.rsample((2,), generator=seeded(1)).square(),
    "perturb_and_map": lambda d: d.perturb_and_map(perturb="nodes", generator=seeded(1)).square(),
}


def gradients(ask, spread: float) -> list[torch.Tensor]:
    """Of a batch that is large enough for several threads; a wide spread makes sums underflow."""
    generator = seeded(0)
    emissions = torch.randn(90, 100, 24, generator=generator) * spread
    transitions = torch.randn(24, 24, generator=generator) * spread
    lengths = torch.randint(0, 101, (90,), generator=generator)
    leaves = [x.requires_grad_() for x in (emissions, transitions)]
    answer = ask(LinearChainCRF(*leaves, lengths))
    return [answer.detach(), *torch.autograd.grad(answer.sum(), leaves)]


@pytest.mark.parametrize("spread", [1.0, 30.0])
@pytest.mark.parametrize("ask", ANSWERS.values(), ids=ANSWERS.keys())
def test_the_same_bits_on_any_number_of_threads(ask, spread, set_threads):
    set_threads(1)
    expected = gradients(ask, spread)
    for count in (2, 2, 3, 8):
        set_threads(count)
        for found, wanted in zip(gradients(ask, spread), expected, strict=True):
            assert torch.equal(found, wanted)


def test_noise_is_the_same_on_any_number_of_threads(set_threads):
    set_threads(1)
    shape = (3, 200_001)
    expected = [native.library.gumbel_noise_of(5, shape, t) for t in (torch.float32, torch.float64)]
    for count in (2, 5):
        set_threads(count)
        for wanted in expected:
            assert torch.equal(native.library.gumbel_noise_of(5, shape, wanted.dtype), wanted)


def test_many_callers_at_once(set_threads):
    """Eight Python threads, of which one at a time has helpers."""
    set_threads(2)
    expected = gradients(ANSWERS["entropy"], 1.0)
    with ThreadPoolExecutor(8) as pool:
        jobs = [pool.submit(gradients, ANSWERS["entropy"], 1.0) for _ in range(24)]
        for job in jobs:
            assert all(torch.equal(a, b) for a, b in zip(job.result(), expected, strict=True))


AFTER_A_FORK = """
import os, sys, torch
from structdist.ops import Chain, native

generator = torch.Generator().manual_seed(0)
chain = Chain(
    torch.randn(64, 300, 32, generator=generator),
    torch.randn(32, 32, generator=generator),
    torch.full((64,), 300),
)

def log_z():
    torch.set_num_threads(2)
    state, _ = native.filter(chain)
    torch.set_num_threads(1)
    return native.log_partition(chain, state, torch.float64).tolist()

expected = log_z()
for _ in range(5):
    child = os.fork()
    if child == 0:
        os._exit(0 if all(log_z() == expected for _ in range(5)) else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert log_z() == expected
print("works")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_after_a_fork():
    done = subprocess.run(
        [sys.executable, "-c", AFTER_A_FORK],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.strip() == "works", done.stderr


COUNTING_THREADS = """
import os, torch
from structdist.ops import Chain, native

torch.set_num_threads(8)

def threads_after(num_chains):
    lengths = torch.full((num_chains,), 40)
    native.filter(Chain(torch.zeros(num_chains, 40, 20), torch.zeros(20, 20), lengths))
    return len(os.listdir("/proc/self/task"))

print(len(os.listdir("/proc/self/task")), threads_after(4), threads_after(4000))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="counts threads in /proc")
def test_small_jobs_stay_on_the_callers_thread():
    """No helper is started for a chain that takes microseconds, whatever is allowed."""
    command = [sys.executable, "-c", COUNTING_THREADS]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, small, large = map(int, done.stdout.split())
    assert small == before
    assert large > before


def test_noise_equals_its_plain_twin():
    for dtype, digits in ((torch.float32, 1e-6), (torch.float64, 1e-14)):
        for seed in (0, 1, 2**62 + 12345):
            found = native.library.gumbel_noise_of(seed, (1000,), dtype)
            expected = ops.reference.gumbel_noise(seed, 1000, dtype)
            torch.testing.assert_close(found, expected, rtol=digits, atol=digits)


def test_the_forward_pass_of_no_chains_at_all():
    chain = Chain(torch.zeros(0, 4, 3), torch.zeros(3, 3), torch.zeros(0, dtype=torch.long))
    state, has_impossible = native.filter(chain)
    assert not has_impossible
    assert native.log_partition(chain, state, torch.float64).shape == (0,)
