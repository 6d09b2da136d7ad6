"""Semi-Markov chains that are something else as well: there both must say the same."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch_struct
from torch import Tensor
from torch.distributions import kl_divergence
from torch.testing import assert_close

from structdist import LinearChainCRF, SemiMarkovCRF, ops
from structdist.ops.finite import sum_of_scores
from structdist.ops.semi_markov.native import arguments, nodes
from structdist.ops.semi_markov.single_steps import SingleSteps
from tests.chains import FORMS, Example, fill_padding, forbid_some, random_example
from tests.derivatives import gradients
from tests.structures.registry import backends_of, using
from tests.structures.semi_markov import SemiMarkovChains, random_segments
from tests.structures.structure import normal, seeded

# With L = 1: the linear chain ----------------------------------------------------------------

CHAINS = [
    *[random_example(f"{form}-ends", (2, 3), form, ends=True, seed=1) for form in FORMS],
    fill_padding(forbid_some(random_example("forbidden", (5,), ends=True, seed=2), 2), torch.nan),
    random_example("sharp", (5,), "per_chain", scale=30.0, seed=3),
]
over_chains = pytest.mark.parametrize("chain", CHAINS, ids=lambda chain: chain.name)


def as_segments(chain: Example) -> SemiMarkovCRF:
    """Segments of length one, with scores of their own that are 0."""
    no_durations = torch.zeros(1, chain.emissions.shape[-1], dtype=torch.float64)
    ends = {"start": chain.start, "end": chain.end}
    return SemiMarkovCRF(chain.emissions, chain.transitions, no_durations, chain.lengths, **ends)


def as_nodes(chain: Example) -> LinearChainCRF:
    return chain.crf()


Make = Callable[[Example], SemiMarkovCRF | LinearChainCRF]


def nodes_of(d: SemiMarkovCRF | LinearChainCRF) -> Tensor:
    return d.token_marginals if isinstance(d, SemiMarkovCRF) else d.marginals


def events_of(d: SemiMarkovCRF | LinearChainCRF) -> Tensor:
    return d.variance.squeeze(-2) if isinstance(d, SemiMarkovCRF) else d.variance


def divergence(make: Make, chain: Example) -> Tensor:
    return kl_divergence(make(chain), make(chain.rescored()))


def known(make: Make, chain: Example) -> Tensor:
    """Of the best path, the second step alone."""
    best = chain.crf().argmax
    observed = torch.where(torch.arange(best.shape[-1]) == 1, best, -1)
    return make(chain).condition(observed).log_partition


QUANTITIES: dict[str, Callable[[Make, Example], Tensor]] = {
    "log_partition": lambda make, chain: make(chain).log_partition,
    "entropy": lambda make, chain: make(chain).entropy(),
    "renyi": lambda make, chain: make(chain).renyi_entropy(2.0),
    "renyi_inf": lambda make, chain: make(chain).renyi_entropy(torch.inf),
    "variance": lambda make, chain: events_of(make(chain)),
    "cross_entropy": lambda make, chain: make(chain).cross_entropy(make(chain.rescored())),
    "condition": known,
    "nodes": lambda make, chain: nodes_of(make(chain)),
    "edges": lambda make, chain: make(chain).edge_marginals,
    "kl": divergence,
    "log_prob": lambda make, chain: make(chain).log_prob(chain.crf().argmax),
    "topk": lambda make, chain: make(chain).topk(3).log_probs.exp(),
    "expectation": lambda make, chain: make(chain).expectation(
        normal(*chain.emissions.shape), normal(3, 3, seed=1)
    ),
}


@over_chains
@pytest.mark.parametrize("ask", QUANTITIES.values(), ids=QUANTITIES)
def test_segments_of_length_one_are_nodes(chain: Example, ask: Callable):
    """Values and gradients."""
    ours, theirs = chain.leaves(), chain.leaves()
    found, expected = ask(as_segments, ours), ask(as_nodes, theirs)
    assert_close(found, expected)
    assert_close(gradients(found, ours), gradients(expected, theirs))


@over_chains
def test_paths_of_segments_of_length_one_are_those_of_nodes(chain: Example):
    segments, nodes = as_segments(chain), as_nodes(chain)
    assert torch.equal(segments.argmax, nodes.argmax)
    assert torch.equal(segments.topk(4).paths, nodes.topk(4).paths)
    drawn = [d.sample_paths((20,), generator=seeded(1)) for d in (segments, nodes)]
    assert torch.equal(*drawn)
    assert torch.equal(
        segments.sample((3,), generator=seeded(2)).squeeze(-2),
        nodes.event_of(nodes.sample_paths((3,), generator=seeded(2))),
    )


@over_chains
def test_relaxed_segments_of_length_one_are_relaxed_nodes(chain: Example):
    """The same noise gives the same draw and gradient; every step is a boundary."""
    ours, theirs = chain.leaves(), chain.leaves()
    segments, nodes = as_segments(ours), as_nodes(theirs)
    noise = -normal(4, *segments.batch_shape, *segments.noise_shape).exp().log1p().log()
    labels, boundaries = segments.rsample_labels((4,), temperature=0.7, noise=noise)
    expected = nodes.rsample((4,), temperature=0.7, noise=noise[..., :-1])
    assert_close(labels, expected)
    assert_close(gradients(labels, ours), gradients(expected, theirs))
    inside = torch.arange(nodes.event_shape[0]) < nodes.lengths[..., None]
    assert torch.equal(boundaries, inside.double().expand_as(boundaries))


@pytest.mark.parametrize("backend", backends_of(SemiMarkovChains()))
def test_segments_of_length_one_are_served_as_nodes(backend: str):
    """Under the name of the backend that serves longer ones."""
    with using(SemiMarkovChains(), backend):
        served = {}
        for longest in (1, 2):
            crf = random_segments("any", (2,), longest=longest).crf()
            forward = ops.run_forward(crf._parameters.flatten())
            assert backend == forward.backend.NAME
            served[longest] = isinstance(forward.backend, SingleSteps)
        assert served == {1: True, 2: False}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("backend", backends_of(SemiMarkovChains()))
def test_masks_of_a_step_and_of_its_segment_do_not_add_up_to_infinity(
    backend: str, dtype: torch.dtype
):
    """No label of step 1 is meant; all are as unlikely as can be, hence as likely as before."""
    least = torch.finfo(dtype).min
    emissions, durations = torch.zeros(1, 3, 2, dtype=dtype), torch.zeros(1, 1, 2, dtype=dtype)
    emissions[:, 1], durations[..., 0] = least, least
    leaves = [x.requires_grad_() for x in (emissions, durations)]
    with using(SemiMarkovChains(), backend):
        crf = SemiMarkovCRF(leaves[0], torch.zeros(2, 2, dtype=dtype), leaves[1])
        expected = torch.tensor([[0.0, 1.0], [0.5, 0.5], [0.0, 1.0]], dtype=dtype)
        assert_close(crf.token_marginals[0], expected)
        assert crf.log_partition.isfinite().all()
        grads = torch.autograd.grad(crf.entropy().sum() + crf.log_partition.sum(), leaves)
        assert all(grad.isfinite().all() for grad in grads)


@pytest.mark.skipif(arguments.misfit is not None, reason=str(arguments.misfit))
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
@pytest.mark.parametrize("form", [(1, 1), (3, 1), (3, 4)], ids=str)
def test_compiled_scores_of_nodes_equal_their_plain_twin(form: tuple, dtype: torch.dtype):
    """Every pair of what scores may be, NaN in the padding included.

    Where sums would overflow, they are the largest number but for a few roundings.
    """
    numbers = [0.5, -3.0, torch.finfo(dtype).min, torch.finfo(dtype).max, -torch.inf, torch.nan]
    pairs = torch.cartesian_prod(torch.tensor(numbers), torch.tensor(numbers)).to(dtype)
    steps = pairs[:, 0].expand(3, 4, -1).clone() - normal(3, 4, 1, seed=6).to(dtype)
    segments = pairs[:, 1].expand(*form, -1)
    found = nodes.scores_of_nodes(steps, segments)
    few_roundings = 8 * torch.finfo(dtype).eps
    expected = sum_of_scores(steps, segments)
    assert_close(found, expected, rtol=few_roundings, atol=0, equal_nan=True)
    usual = expected.abs() < 1e30
    assert torch.equal(found[usual], expected[usual])
    grads = normal(3, 4, 5, seed=7).to(dtype)
    assert_close(nodes.sum_over_steps(grads, 3), grads.sum(1, keepdim=True))
    assert_close(nodes.sum_over_steps(grads, 1), grads.sum((0, 1), keepdim=True))


# With durations alone: a linear chain of more states -----------------------------------------


def expanded(crf: SemiMarkovCRF) -> LinearChainCRF:
    """States (r, k): a segment of label k of which r steps are left, this one included."""
    _, longest, num_labels = crf.event_shape
    left = torch.arange(longest)
    emissions = crf.emissions.repeat(*[1] * (crf.emissions.dim() - 1), longest)
    begin = crf.transitions.unsqueeze(-2) + crf.durations  # [K, L, K]: into a new segment
    moves = torch.full((longest, num_labels, longest, num_labels), -torch.inf).double()
    moves[0] = begin
    for r in range(1, longest):
        moves[r, :, r - 1] = torch.where(torch.eye(num_labels) > 0, 0.0, -torch.inf)
    start = (crf.durations + crf.start.unsqueeze(-2)).flatten(-2)
    end = torch.where(left[:, None] == 0, crf.end.unsqueeze(-2), -torch.inf).flatten(-2)
    size = longest * num_labels
    return LinearChainCRF(emissions, moves.reshape(size, size), crf.lengths, start=start, end=end)


EXPLICIT = random_segments("explicit", (5,), num_steps=6, longest=3, segments=False, seed=4)
OF_EXPANDED: dict[str, Callable[[LinearChainCRF], Tensor]] = {
    "log_partition": lambda d: d.log_partition,
    "entropy": lambda d: d.entropy(),
    "token_marginals": lambda d: d.marginals.unflatten(-1, (3, 2)).sum(-2),
    "boundary_marginals": lambda d: boundaries(d.marginals.unflatten(-1, (3, 2)), d.lengths),
    "renyi": lambda d: d.renyi_entropy(0.5),
}


def boundaries(states: Tensor, lengths: Tensor) -> Tensor:
    """[*B, T]: of states [*B, T, L, K], that the step before is the last of its segment."""
    after_last = torch.cat(
        [torch.ones_like(states[..., :1, 0, 0]), states[..., :-1, 0, :].sum(-1)], -1
    )
    return after_last * (torch.arange(states.shape[-3]) < lengths[..., None])


@pytest.mark.parametrize("self_transitions", [False, True])
@pytest.mark.parametrize("name", OF_EXPANDED)
def test_explicit_durations_are_an_expanded_chain(name: str, self_transitions: bool):
    example = EXPLICIT
    if self_transitions:
        scores = {**example.scores, "transitions": normal(2, 2, seed=5)}
        example = example.with_scores(*scores.values())
    ours, theirs = example.leaves(), example.leaves()
    crf = ours.crf()
    found = {"entropy": crf.entropy, "renyi": lambda: crf.renyi_entropy(0.5)}.get(
        name, lambda: getattr(crf, name)
    )()
    expected = OF_EXPANDED[name](expanded(theirs.crf()))
    assert_close(found, expected)
    assert_close(gradients(found, ours), gradients(expected, theirs))


# torch-struct --------------------------------------------------------------------------------


def torch_struct_potentials(crf: SemiMarkovCRF) -> Tensor:
    """[B, T, L + 1, K, K], by first step, length, next label and label; beyond the end label 0."""
    num_steps, longest, num_labels = crf.event_shape
    scores = torch.full((*crf.batch_shape, num_steps, longest + 1, num_labels, num_labels), -1e5)
    scores = scores.double()
    for t in range(num_steps):
        for size in range(1, min(longest, num_steps - t) + 1):
            own = crf.emissions[:, t : t + size].sum(1) + crf.durations[size - 1]
            own = own + crf.segments[:, t, size - 1]
            if t + size < num_steps:
                scores[:, t, size] = own.unsqueeze(-2) + crf.transitions.T
            else:
                scores[:, t, size, 0] = own
    return scores


@pytest.mark.filterwarnings("ignore:.*does not define `arg_constraints`")
def test_torch_struct_agrees_where_it_is_right():
    crf = random_segments("whole", (3,), num_steps=7, longest=3, ends=False, lengths=None).crf()
    theirs = torch_struct.SemiMarkovCRF(torch_struct_potentials(crf))
    assert_close(crf.log_partition, theirs.partition)
    marginals = theirs.marginals.sum(-2)[:, :, 1:]  # over the next label
    assert_close(crf.marginals, marginals, atol=1e-6, rtol=1e-6)
    assert_close(crf.mode, theirs.argmax.sum(-2)[:, :, 1:], atol=1e-6, rtol=1e-6)
