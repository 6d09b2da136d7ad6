"""The torch backend of linear chains: how many operations a step costs, and looks of the host."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from structdist import LinearChainCRF, ops
from structdist.ops import Chain, rescaled
from tests.chains import FORMS

VIEWS = {  # they launch nothing
    "_unsafe_view",
    "alias",
    "as_strided",
    "detach",
    "expand",
    "permute",
    "select",
    "slice",
    "split",
    "squeeze",
    "t",
    "transpose",
    "unbind",
    "unsqueeze",
    "view",
}
LOOKS = {"_local_scalar_dense", "nonzero", "is_nonzero", "equal"}  # the host waits for the device


class Operations(TorchDispatchMode):
    """The names of all operations that are run."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def __torch_dispatch__(self, operation: Any, types: Any, args: Any = (), kwargs: Any = None):
        self.names.append(operation._schema.name.removeprefix("aten::"))
        return operation(*args, **(kwargs or {}))


def draw(dist: LinearChainCRF) -> Tensor:
    """From given noise: to make some is not what is counted."""
    noise = torch.randn(2, *dist.batch_shape, *dist.event_shape)
    return dist.rsample((2,), noise=noise)


Ask = Callable[[LinearChainCRF], Any]
QUESTIONS: dict[str, tuple[Ask, int]] = {  # with the most operations that a step may cost
    "log_partition": (lambda d: d.log_partition.sum().backward(), 7),
    "marginals": (lambda d: d.marginals.detach(), 7),
    "entropy": (lambda d: d.entropy().sum().backward(), 14),
    "expectation": (lambda d: d.expectation(torch.ones(d.event_shape)).sum().backward(), 15),
    "rsample": (lambda d: draw(d).square().sum().backward(), 11),
    "sample_paths": (lambda d: d.sample_paths((2,)), 13),
    "argmax": (lambda d: d.argmax, 4),
    "perturb_and_map": (lambda d: d.perturb_and_map().square().sum().backward(), 5),
}


def random_chain(form: str, num_steps: int) -> LinearChainCRF:
    """Mixed lengths, an empty chain among them; gradients are wanted."""
    generator, num_states = torch.Generator().manual_seed(0), 3
    lead = {"shared": (), "per_chain": (4,), "per_step": (4, num_steps - 1)}[form]
    shapes = (4, num_steps, num_states), (*lead, num_states, num_states)
    scores = [torch.randn(shape, generator=generator, requires_grad=True) for shape in shapes]
    lengths = torch.tensor([num_steps, num_steps - 2, 3, 0])
    return LinearChainCRF(*scores, lengths, validate_args=False)


def operations(ask: Ask, dist: LinearChainCRF) -> list[str]:
    with ops.use_backend("rescaled"), Operations() as found:
        ask(dist)
    return found.names


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_step_costs_few_operations(question: str, form: str):
    """Forward and backward together."""
    ask, most = QUESTIONS[question]
    counts = []
    for num_steps in (12, 32):
        found = operations(ask, random_chain(form, num_steps))
        counts.append(sum(name not in VIEWS for name in found))
    assert (counts[1] - counts[0]) / 20 <= most


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("question", ["log_partition", "marginals", "entropy", "rsample"])
def test_the_host_looks_once(question: str, form: str):
    """In the forward pass, and not again in an adjoint."""
    found = operations(QUESTIONS[question][0], random_chain(form, 12))
    assert sum(name in LOOKS for name in found) == 1


def test_looks_are_seen():
    found = operations(lambda d: d.emissions.sum().item(), random_chain("shared", 3))
    assert sum(name in LOOKS for name in found) == 1


@pytest.fixture(params=[False, True])
def _subnormal_numbers(request):
    """As they are, or as some devices have them: none."""
    torch.set_flush_denormal(request.param)
    yield
    torch.set_flush_denormal(False)


@pytest.mark.usefixtures("_subnormal_numbers")
def test_what_is_lost_before_a_norm_is_found_again():
    """State 0 has a weight of 6e-39 beside one of 1e-19, which is what the step is divided by.

    Then both lead to state 2, by moves that leave them equally important.
    """
    emissions = torch.full((1, 4, 3), -torch.inf)
    emissions[0, [0, 1, 2, 3], [0, 1, 2, 2]] = 0.0
    emissions[0, 1, 0] = -88.0
    transitions = torch.full((1, 3, 3, 3), -torch.inf)
    transitions[0, [0, 0, 1, 2], [0, 2, 0, 2], [0, 1, 2, 2]] = 0.0
    transitions[0, 0, 0, 1], transitions[0, 1, 1, 2] = math.log(1e-19), math.log(2e-20)
    chain = Chain(emissions, transitions, torch.tensor([4]))
    exact = ops.reference.log_partition(Chain(emissions.double(), transitions.double(), chain[2]))
    found, _ = rescaled.filter(chain)
    torch.testing.assert_close(found.log_z, exact, rtol=0.0, atol=1e-4)
    nodes = rescaled.marginals(chain, found, 0)
    torch.testing.assert_close(nodes[0, 1], torch.tensor([0.75169, 0.24831, 0.0]))
