"""torch.compile and torch.func: the right answer, or a clear error."""

from __future__ import annotations

import pytest
import torch
from torch.distributions import kl_divergence

from structdist import LinearChain, LinearChainCRF
from tests.derivatives import gradients, weighted
from tests.structures.registry import over
from tests.structures.structure import Ask, Structure, normal


def scores(*batch: int) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    emissions = torch.randn(*batch, 5, 3, dtype=torch.float64, generator=generator)
    transitions = torch.randn(3, 3, dtype=torch.float64, generator=generator)
    return emissions, transitions


QUANTITIES = {
    "log_partition": lambda e, a: LinearChainCRF(e, a).log_partition,
    "entropy": lambda e, a: LinearChainCRF(e, a).entropy(),
    "marginals": lambda e, a: LinearChainCRF(e, a).marginals,
    "cross_entropy": lambda e, a: LinearChainCRF(e, a).cross_entropy(
        LinearChainCRF(a.new_zeros(5, 3), a)
    ),
    "kl": lambda e, a: kl_divergence(LinearChainCRF(e, a), LinearChainCRF(e, a.new_zeros(3, 3))),
    "log_prob": lambda e, a: LinearChainCRF(e, a).log_prob(torch.tensor([0, 1, 2, 1, 0])),
}


@pytest.fixture(params=QUANTITIES)
def quantity(request):
    return QUANTITIES[request.param]


def test_vmap_equals_a_batch(quantity):
    emissions, transitions = scores(4)
    found = torch.func.vmap(quantity, in_dims=(0, None))(emissions, transitions)
    torch.testing.assert_close(found, quantity(emissions, transitions))


def test_vmap_over_transitions(quantity):
    emissions, _ = scores()
    transitions = torch.randn(4, 3, 3, dtype=torch.float64)
    found = torch.func.vmap(quantity, in_dims=(None, 0))(emissions, transitions)
    expected = torch.stack([quantity(emissions, a) for a in transitions])
    torch.testing.assert_close(found, expected)


def test_grad_and_vjp_equal_autograd(quantity):
    emissions, transitions = scores()
    found = torch.func.grad(lambda e, a: quantity(e, a).pow(2).sum(), (0, 1))(
        emissions, transitions
    )
    leaves = [x.clone().requires_grad_() for x in (emissions, transitions)]
    expected = torch.autograd.grad(quantity(*leaves).pow(2).sum(), leaves)
    torch.testing.assert_close(found, expected)


def test_hessian_and_jvp(quantity):
    emissions, transitions = scores()
    hessian = torch.func.hessian(lambda a: quantity(emissions, a).sum())(transitions)
    assert hessian.isfinite().all()
    tangent = torch.randn_like(transitions)
    _, found = torch.func.jvp(lambda a: quantity(emissions, a), (transitions,), (tangent,))
    jacobian = torch.func.jacrev(lambda a: quantity(emissions, a))(transitions)
    torch.testing.assert_close(found, (jacobian * tangent).sum((-1, -2)))


def test_vmap_of_rsample():
    emissions, transitions = scores(4)

    def draw(e: torch.Tensor) -> torch.Tensor:
        return LinearChainCRF(e, transitions).rsample((2,), straight_through=True)

    found = torch.func.vmap(draw, randomness="different")(emissions)
    assert found.shape == (4, 2, 5, 3)
    assert (found.sum(-1) == 1).all()


def test_an_object_made_outside_keeps_no_trace_of_a_transform():
    emissions, transitions = scores()
    outside = LinearChainCRF(emissions, transitions)
    torch.func.grad(lambda x: (outside.entropy() * x).sum())(torch.ones(()).double())
    torch.testing.assert_close(outside.entropy(), LinearChainCRF(emissions, transitions).entropy())


# Every structure -----------------------------------------------------------------------------


def fixed_quantities(structure: Structure) -> dict[str, Ask]:
    """Not expectations: the values that those are asked about are drawn at random."""
    quantities = structure.quantities.items()
    return {name: ask for name, ask in quantities if not name.endswith("expectation")}


@over(ask=fixed_quantities)
def test_vmap_over_scores_equals_a_loop(structure: Structure, ask: Ask):
    example = structure.random("vmap", lengths=None, seed=3)
    first, *others = example.scores.values()
    several = first + normal(4, *first.shape, seed=4)

    def answer(scores: torch.Tensor) -> torch.Tensor:
        return ask(example.with_scores(scores, *others).crf())

    found = torch.func.vmap(answer)(several)
    torch.testing.assert_close(found, torch.stack([answer(scores) for scores in several]))


@over(ask=fixed_quantities)
def test_functional_gradients_equal_those_of_autograd(structure: Structure, ask: Ask):
    example = structure.random("grad", lengths=None, seed=3)
    leaf = example.leaves()

    def answer(*scores: torch.Tensor) -> torch.Tensor:
        return weighted(ask(example.with_scores(*scores).crf()))

    all_of_them = tuple(range(len(example.scores)))
    found = torch.func.grad(answer, all_of_them)(*example.scores.values())
    torch.testing.assert_close(found, gradients(ask(leaf.crf()), leaf))


# Compiled and traced -------------------------------------------------------------------------


class Tagger(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.encoder = torch.nn.Linear(4, 3)
        self.crf = LinearChain(3, start=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        dist = self.crf(self.encoder(x), lengths)
        sample = dist.rsample(temperature=0.5)
        return dist.log_partition.sum() + dist.entropy().sum() + (sample**2).sum()


@pytest.mark.filterwarnings("ignore")
def test_compile_gives_the_eager_answer():
    torch.manual_seed(0)
    model, x, lengths = Tagger(), torch.randn(6, 5, 4), torch.tensor([5, 4, 3, 2, 1, 0])
    compiled = torch.compile(model, backend="aot_eager")
    results = []
    for forward in (model, compiled, compiled):
        torch.manual_seed(1)
        model.zero_grad()
        loss = forward(x, lengths)
        loss.backward()
        results.append([loss.detach(), *[p.grad.clone() for p in model.parameters()]])
    for other in results[1:]:
        torch.testing.assert_close(other, results[0])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("draw", ["rsample", "sample", "perturb_and_map"])
def test_compile_takes_batches_of_several_sizes(draw):
    transitions = torch.randn(3, 3)
    compiled = torch.compile(
        lambda e: getattr(LinearChainCRF(e, transitions), draw)().sum(), backend="eager"
    )
    for batch in (4, 6, 9):
        assert compiled(torch.randn(batch, 5, 3)).round() == batch * 5


@pytest.mark.filterwarnings("ignore")
def test_a_trace_follows_new_inputs():
    transitions = torch.randn(3, 3)
    traced = torch.jit.trace(
        lambda e: LinearChainCRF(e, transitions, validate_args=False).log_partition,
        torch.randn(2, 5, 3),
    )
    emissions = torch.randn(2, 5, 3)
    expected = LinearChainCRF(emissions, transitions).log_partition
    torch.testing.assert_close(traced(emissions), expected)
