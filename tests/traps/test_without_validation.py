"""With `validate_args=False` nothing is looked at, and nothing breaks: not even its neighbours."""

from __future__ import annotations

import math

import pytest
import torch
from torch.distributions import kl_divergence

from structdist import LinearChainCRF
from tests.traps.chains import gradients, leaves, normal, scores, seeded

IMPOSSIBLE, T, K = 1, 4, 3  # which chain of three has no allowed path


def forbidden(where: str, dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    """Scores of three chains, the second of which has no allowed path, for one reason or other."""
    made = scores((3,), T, K, dtype=dtype)
    made["transitions"] = made["transitions"].expand(3, T - 1, K, K).clone()
    made["start"] = made["start"].expand(3, K).clone()
    places = {
        "emissions": made["emissions"][IMPOSSIBLE, 2],
        "first emissions": made["emissions"][IMPOSSIBLE, 0],
        "last emissions": made["emissions"][IMPOSSIBLE, 3],
        "transitions": made["transitions"][IMPOSSIBLE, 1],
        "start": made["start"][IMPOSSIBLE],
        "end": made["end"][IMPOSSIBLE],
    }
    if where == "dead end":  # every state is allowed, and none can be left for the next
        made["emissions"][IMPOSSIBLE, 1, 1:] = -torch.inf
        made["transitions"][IMPOSSIBLE, 1, 0] = -torch.inf
    else:
        places[where].fill_(-torch.inf)
    return made


REASONS = [
    "emissions",
    "first emissions",
    "last emissions",
    "transitions",
    "start",
    "end",
    "dead end",
]
over_reasons = pytest.mark.parametrize("reason", REASONS)
EDGES_NOISE = normal(2, 3, 1 + (T - 1) * K, K, seed=8)
NODES_NOISE = normal(2, 3, T, K, seed=7)

FINITE = {
    "marginals": lambda d: d.marginals,
    "mean": lambda d: d.mean,
    "edge_marginals": lambda d: d.edge_marginals,
    "variance": lambda d: d.variance,
    "entropy": lambda d: d.entropy(),
    "expectation": lambda d: d.expectation(normal(T, K), normal(K, K, seed=1)),
    "node_expectation": lambda d: d.expectation(normal(T, K)),
    "rsample": lambda d: d.rsample((2,), temperature=0.5, noise=NODES_NOISE),
    "straight_through": lambda d: d.rsample((2,), straight_through=True, noise=NODES_NOISE),
    "perturb_edges": lambda d: d.perturb_and_map((2,), noise=EDGES_NOISE),
    "perturb_nodes": lambda d: d.perturb_and_map((2,), noise=NODES_NOISE, perturb="nodes"),
    "renyi_0": lambda d: d.renyi_entropy(0),
    "renyi_half": lambda d: d.renyi_entropy(0.5),
    "renyi_2": lambda d: d.renyi_entropy(2),
    "renyi_inf": lambda d: d.renyi_entropy(math.inf),
    "cross_entropy to itself": lambda d: d.cross_entropy(d),
    "kl to itself": lambda d: kl_divergence(d, d),
}
DRAWN = ("rsample", "straight_through", "perturb_edges", "perturb_nodes")  # batch is dimension 1


def split(name: str, answer: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """What an answer says of the impossible chain, and of the others."""
    dim = 1 if name in DRAWN else 0
    others = answer.index_select(dim, torch.tensor([0, 2]))
    return answer.select(dim, IMPOSSIBLE), others


@pytest.mark.parametrize("reason", ["last emissions", "transitions", "start", "dead end"])
@pytest.mark.parametrize("name", FINITE)
def test_a_chain_without_a_path_is_finite_and_alone(backend, name, reason):
    """Zeros or one-hot rows for it, and for its neighbours what they get without it."""
    made, good = leaves(forbidden(reason)), leaves(scores((3,), T, K))
    good["transitions"] = good["transitions"].detach().expand(3, T - 1, K, K).clone()
    good["start"] = good["start"].detach().expand(3, K).clone()
    good = leaves(good)
    found = FINITE[name](LinearChainCRF(**made, validate_args=False))
    expected = FINITE[name](LinearChainCRF(**good))
    assert found.isfinite().all()
    nothing, others = split(name, found)
    torch.testing.assert_close(others, split(name, expected)[1])
    if name not in DRAWN:
        assert (nothing == 0).all()
    if not found.requires_grad:
        return
    wanted = gradients(expected, good)
    for score, grad in gradients(found, made).items():
        assert grad.isfinite().all()
        torch.testing.assert_close(grad[[0, 2]], wanted[score][[0, 2]])


@over_reasons
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_paths_of_a_chain_without_a_path(backend, reason, dtype):
    """There is no right answer; the states exist, and the neighbours are right."""
    dist = LinearChainCRF(**forbidden(reason, dtype), validate_args=False)
    good = LinearChainCRF(**scores((3,), T, K, dtype=dtype))
    for paths in (dist.argmax, dist.topk(2).paths, dist.sample_paths((5,), generator=seeded(0))):
        assert ((paths >= 0) & (paths < K)).all()
    assert torch.equal(dist.argmax[[0, 2]], good.argmax[[0, 2]])
    assert torch.equal(dist.topk(2).paths[:, [0, 2]], good.topk(2).paths[:, [0, 2]])
    drawn = [d.sample_paths((5,), generator=seeded(0))[:, [0, 2]] for d in (dist, good)]
    assert torch.equal(*drawn)
    for event in (dist.mode, dist.sample((5,))):
        assert event.isfinite().all()


@over_reasons
def test_log_probs_of_a_chain_without_a_path(backend, reason):
    made = leaves(forbidden(reason))
    dist = LinearChainCRF(**made, validate_args=False)
    good = LinearChainCRF(**scores((3,), T, K))
    paths = torch.zeros(3, T, dtype=torch.long)
    found = dist.log_prob(paths)
    assert found[IMPOSSIBLE] == -torch.inf
    torch.testing.assert_close(found[[0, 2]], good.log_prob(paths)[[0, 2]])
    assert (dist.topk(2).log_probs[:, IMPOSSIBLE] == -torch.inf).all()
    assert (dist.log_prob(dist.enumerate_support())[:, IMPOSSIBLE] == -torch.inf).all()
    assert dist.log_partition[IMPOSSIBLE] == -torch.inf
    for answer in (found, dist.log_partition):
        for grad in gradients(answer.exp(), made).values():
            assert grad.isfinite().all()


def test_gradients_of_log_probs_that_are_minus_infinity(backend):
    """A sum over a batch must not spoil the gradients of those that are finite."""
    made = leaves(forbidden("emissions"))
    dist = LinearChainCRF(**made, validate_args=False)
    log_prob = dist.log_prob(torch.zeros(3, T, dtype=torch.long))
    made_alone = leaves({name: x.detach() for name, x in scores((3,), T, K).items()})
    alone = LinearChainCRF(**made_alone).log_prob(torch.zeros(3, T, dtype=torch.long))
    found = torch.autograd.grad(log_prob.sum(), made["emissions"])[0]
    expected = torch.autograd.grad(alone.sum(), made_alone["emissions"])[0]
    assert found.isfinite().all()
    torch.testing.assert_close(found[[0, 2]], expected[[0, 2]])


@over_reasons
def test_divergences_from_and_to_a_chain_without_a_path(backend, reason):
    """From it 0 (it has no mass anywhere), to it infinite, and never NaN."""
    made = leaves(forbidden(reason))
    dist = LinearChainCRF(**made, validate_args=False)
    other = LinearChainCRF(**scores((3,), T, K, seed=5))
    for answer in (kl_divergence(dist, other), dist.cross_entropy(other)):
        assert answer.isfinite().all()
        assert answer[IMPOSSIBLE] == 0
        for grad in gradients(answer, made).values():
            assert grad.isfinite().all()
    for answer in (kl_divergence(other, dist), other.cross_entropy(dist)):
        assert answer[IMPOSSIBLE] == torch.inf
        assert answer[[0, 2]].isfinite().all()
        for grad in gradients(torch.where(answer.isinf(), 0.0, answer), made).values():
            assert grad.isfinite().all()


@pytest.mark.parametrize("state", [-1, K, K + 5, -100, 2**40, -(2**40)])
@pytest.mark.parametrize("step", [0, 1, T - 1])
def test_a_state_out_of_range_is_impossible(backend, state, step):
    made = leaves(scores((3,), T, K))
    dist = LinearChainCRF(**made, validate_args=False)
    paths = torch.ones(2, 3, T, dtype=torch.long)
    expected = dist.log_prob(paths)
    paths = paths.clone()
    paths[1, 2, step] = state
    found = dist.log_prob(paths)
    assert found[1, 2] == -torch.inf
    found, expected = found.flatten()[:5], expected.flatten()[:5]
    assert torch.equal(found, expected)
    wanted = gradients(expected, made)
    for name, grad in gradients(found, made).items():
        torch.testing.assert_close(grad, wanted[name])


def test_a_state_out_of_range_in_the_padding_does_not_matter(backend):
    dist = LinearChainCRF(
        **scores((3,), T, K), lengths=torch.tensor([4, 2, 0]), validate_args=False
    )
    paths = torch.ones(3, T, dtype=torch.long)
    expected = dist.log_prob(paths)
    paths[1, 2:], paths[2] = 99, -99
    assert torch.equal(dist.log_prob(paths), expected)


def test_an_event_of_states_out_of_range_has_empty_rows():
    dist = LinearChainCRF(**scores((3,), T, K), validate_args=False)
    event = dist.event_of(torch.tensor([0, -1, 99, 1]))
    assert event.shape == (3, T, K)
    assert event.sum(-1).tolist() == [[1, 0, 0, 1]] * 3


def test_every_state_out_of_range(backend):
    dist = LinearChainCRF(**scores((3,), T, K), validate_args=False)
    assert (dist.log_prob(torch.full((3, T), 99)) == -torch.inf).all()


@pytest.mark.parametrize("num_steps", [1, 2])
def test_short_chains_without_a_path(backend, num_steps):
    emissions = torch.full((2, num_steps, K), -torch.inf, requires_grad=True)
    transitions = torch.zeros(K, K, requires_grad=True)
    dist = LinearChainCRF(emissions, transitions, validate_args=False)
    answers = [dist.marginals, dist.edge_marginals, dist.variance, dist.entropy()]
    for answer in (*answers, dist.renyi_entropy(2), dist.rsample()):
        assert answer.isfinite().all()
        if answer.requires_grad:
            found = gradients(answer, {"emissions": emissions, "transitions": transitions})
            assert all(grad.isfinite().all() for grad in found.values())
    assert all((answer == 0).all() for answer in answers)
