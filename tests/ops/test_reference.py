"""The first rung of the ladder: the textbook recurrences against enumeration."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from structdist import ops
from structdist.ops import reference
from structdist.ops.chain import Chain, in_chain
from structdist.ops.edges import edges_at, edges_into
from tests.chains import FORMS, Example, fill_padding, forbid_some, random_example, seeded
from tests.oracle import Oracle, SingleChain, all_paths

NUM_CHAINS = 5


def _examples() -> list[Example]:
    found = []
    for form in FORMS:
        plain = random_example(form, (NUM_CHAINS,), form, seed=1)
        found.append(plain)
        forbidden = forbid_some(random_example(f"{form}-forbidden", (5,), form, seed=2), seed=2)
        found.append(fill_padding(forbidden, torch.nan))
        found.append(random_example(f"{form}-one-step", (5,), form, num_steps=1, seed=3))
        found.append(random_example(f"{form}-one-state", (5,), form, num_states=1, seed=4))
    return found


over_examples = pytest.mark.parametrize("example", _examples(), ids=lambda e: e.name)


def chain_of(example: Example) -> Chain:
    return Chain(example.emissions, example.transitions, example.lengths)


@over_examples
def test_sums_over_paths(example: Example):
    chain, oracle = chain_of(example), example.oracle()
    assert_close(reference.log_partition(chain), oracle.log_partition)
    assert_close(reference.entropy(chain), oracle.entropy())
    assert_close(reference.marginals(chain, 0), oracle.marginals)
    assert_close(reference.marginals(chain, 1), oracle.edge_marginals)


@over_examples
def test_gradients(example: Example):
    """Of everything that sums over paths, by autograd through both."""
    found = []
    for ask in (_ask_reference, _ask_oracle):
        leaf = example.leaves()
        inputs = (leaf.emissions, leaf.transitions)
        found.append(torch.autograd.grad(ask(leaf), inputs, materialize_grads=True))
    assert_close(*found)


def _ask_reference(leaf: Example) -> Tensor:
    chain = chain_of(leaf)
    first = reference.log_partition(chain) + reference.entropy(chain).square()
    second = reference.marginals(chain, 0)[:, 0, 0] ** 2
    return (first + second + reference.marginals(chain, 1).square().sum((1, 2, 3))).sum()


def _ask_oracle(leaf: Example) -> Tensor:
    oracle = leaf.oracle()
    first = oracle.log_partition + oracle.entropy().square()
    second = oracle.marginals[:, 0, 0] ** 2
    return (first + second + oracle.edge_marginals.square().sum((1, 2, 3))).sum()


@over_examples
def test_expectation(example: Example):
    chain, generator = chain_of(example), seeded(5)
    values = [torch.randn(x.shape, generator=generator, dtype=torch.float64) for x in chain[:2]]
    assert_close(reference.expectation(chain, values), example.oracle().expectation(*values))


@over_examples
def test_best_paths(example: Example):
    chain, oracle = chain_of(example), example.oracle()
    best, found, expected = reference.viterbi(chain), ops.k_best(chain, 4), oracle.topk(4)
    assert torch.equal(best.path, oracle.argmax)
    assert_close(best.score, expected.log_probs[0] + oracle.log_partition)
    assert torch.equal(found.paths, expected.paths)
    assert_close(found.scores, expected.log_probs + oracle.log_partition)


def test_impossible_chain_is_minus_inf():
    emissions = torch.full((1, 3, 2), -torch.inf)
    chain = Chain(emissions, torch.zeros(2, 2), torch.tensor([3]))
    assert reference.log_partition(chain).item() == -torch.inf
    assert reference.viterbi(chain).score.item() == -torch.inf


def test_path_scores():
    example = forbid_some(random_example("scores", (5,), "per_step", seed=6), seed=6)
    oracle = example.oracle()
    paths = all_paths(4, 3, 4)[:, None].expand(-1, NUM_CHAINS, -1)
    found = reference.path_scores(chain_of(example), paths)
    assert_close(found, oracle.log_prob(paths) + oracle.log_partition)


@pytest.mark.parametrize(("num_steps", "num_states"), [(1, 1), (1, 3), (3, 2), (4, 1)])
def test_enumerate_paths(num_steps: int, num_states: int):
    found = reference.enumerate_paths(num_steps, num_states)
    assert torch.equal(found, all_paths(num_steps, num_states, num_steps))


# Samplers, given their noise -----------------------------------------------------------------


def prefix_weights(chain: SingleChain) -> Tensor:
    """[n, K]: log weight of all prefixes that end in a state, by enumeration."""
    rows = []
    for t in range(chain.length):
        prefix = SingleChain(chain.emissions, chain.transitions, t + 1)
        scores = prefix.score(prefix.paths)
        last = prefix.paths[:, t]
        rows.append(torch.stack([scores[last == k].logsumexp(0) for k in range(chain.num_states)]))
    return torch.stack(rows) if rows else chain.emissions[:0]


def gumbel_ffbs(chain: SingleChain, gumbel: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Algorithm 2 for one chain and noise [T, K]: relaxed [T, K] and hard [T]."""
    log_alpha = prefix_weights(chain)
    soft, path = torch.zeros_like(gumbel), torch.zeros(len(gumbel), dtype=torch.long)
    for t in reversed(range(chain.length)):
        logits = log_alpha[t] + gumbel[t]
        if t + 1 < chain.length:
            logits = logits + chain.transitions[t, :, path[t + 1]]
        soft[t], path[t] = torch.softmax(logits / temperature, -1), logits.argmax()
    return soft, path


@pytest.mark.parametrize("temperature", [0.1, 1.0, 5.0])
@over_examples
def test_gumbel_ffbs(example: Example, temperature: float):
    chain, oracle = chain_of(example), example.oracle()
    uniform = torch.rand((2, *chain.emissions.shape), generator=seeded(7), dtype=torch.float64)
    gumbel = -(-uniform.log()).log()
    found = reference.gumbel_ffbs(chain, gumbel, temperature)
    for s in range(2):
        for n, single in enumerate(oracle.chains):
            soft, path = gumbel_ffbs(single, gumbel[s, n], temperature)
            assert_close(found.soft[s, n], soft)
            assert torch.equal(found.path[s, n], path)


def test_gumbel_ffbs_gradient():
    """Through the forward variables, into every emission and the transitions."""
    gumbel = torch.randn(1, NUM_CHAINS, 4, 3, generator=seeded(8), dtype=torch.float64)
    weights = torch.randn(4, 3, generator=seeded(9), dtype=torch.float64)
    example = random_example("gradient", (NUM_CHAINS,), "per_step", seed=10)
    ours, theirs = example.leaves(), example.leaves()
    found = reference.gumbel_ffbs(chain_of(ours), gumbel, 0.7).soft
    chains = Oracle(theirs.emissions, theirs.transitions, theirs.lengths).chains
    expected = torch.stack([gumbel_ffbs(c, gumbel[0, n], 0.7)[0] for n, c in enumerate(chains)])
    (found * weights).sum().backward()
    (expected * weights).sum().backward()
    assert_close(ours.emissions.grad, theirs.emissions.grad)
    assert_close(ours.transitions.grad, theirs.transitions.grad)


@over_examples
def test_sample_paths_inverts_the_distribution_function(example: Example):
    """A grid of equally spaced numbers at one step reproduces that step's conditional."""
    chain, oracle = chain_of(example), example.oracle()
    grid = (torch.arange(1000, dtype=torch.float64) + 0.5) / 1000
    uniform = torch.full((1000, *chain.emissions.shape[:2]), 0.5, dtype=torch.float64)
    last = (chain.lengths - 1).clamp(min=0)
    uniform[:, torch.arange(NUM_CHAINS), last] = grid[:, None]
    paths = reference.sample_paths(chain, uniform)
    for n, single in enumerate(oracle.chains):
        if single.length > 0:
            share = paths[:, n, last[n]].bincount(minlength=single.num_states) / 1000
            assert_close(share.double(), single.marginals()[last[n]], atol=2e-3, rtol=0)
        assert (paths[:, n, single.length :] == 0).all()
        assert single.log_prob(paths[:, n]).isfinite().all()


def test_extreme_uniforms_never_reach_the_impossible():
    emissions = torch.tensor([[[-torch.inf, 0.0, 0.0, -torch.inf]]])
    chain = Chain(emissions, torch.zeros(4, 4), torch.tensor([1]))
    uniform = torch.tensor([0.0, 1 - 2**-53, 0.25, 0.75], dtype=torch.float64).view(4, 1, 1)
    assert reference.sample_paths(chain, uniform).flatten().tolist() == [1, 2, 1, 2]


def test_relaxed_viterbi_follows_the_best_path():
    example = random_example("relaxed", (NUM_CHAINS,), "per_chain", seed=11)
    draw = reference.relaxed_viterbi(chain_of(example), temperature=0.5)
    assert torch.equal(draw.path[0], example.oracle().argmax)
    rows = in_chain(example.lengths, 4)
    assert torch.equal(draw.soft[0].argmax(-1)[rows], draw.path[0][rows])
    assert_close(draw.soft[0].sum(-1), rows.double())


# Index convention ----------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_edges_go_from_row_to_column(form: str):
    transitions = random_example("edges", (2,), form, seed=12).transitions
    dense = Oracle(torch.zeros(2, 4, 3), transitions)
    state = torch.tensor([[0, 2], [1, 1], [2, 0]])
    for t in range(3):
        columns = edges_into(transitions, t, state)
        for n in range(2):
            expected = dense.chains[n].transitions[t]
            assert_close(edges_at(transitions, t).expand(2, -1, -1)[n], expected)
            assert_close(columns[:, n], expected[:, state[:, n]].T)
