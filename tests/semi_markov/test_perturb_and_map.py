"""Perturb-and-MAP of segmentations: what is perturbed, and that it is biased.

Failure rate: as in `tests/test_sampling.py`, for 12 p-values: 0.012 % with fresh seeds.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from structdist import SemiMarkovCRF
from tests.chains import Example, random_example
from tests.chi_square import ALPHA, NUM_DRAWS, p_values
from tests.derivatives import gradients
from tests.structures.semi_markov import SegmentExample, from_events, random_segments
from tests.structures.structure import normal, seeded

over_noise = pytest.mark.parametrize("perturb", ["segments", "all", "nodes"])


def drawn(example: SegmentExample, perturb: str) -> Tensor:
    """[S, *B, T]: paths."""
    crf = example.crf()
    options = {"straight_through": True, "generator": seeded(0), "perturb": perturb}
    return from_events(crf, crf.perturb_and_map((NUM_DRAWS,), **options))


@over_noise
def test_it_is_biased(perturb: str):
    """The chi-square test can fail, and does for a sampler known to be biased."""
    durations = torch.tensor([[0.0, 0.0], [1.0, -1.0], [0.0, 0.0]], dtype=torch.float64)
    sticky = 1.5 * torch.eye(2, dtype=torch.float64)
    example = SegmentExample("sticky", torch.zeros(4, 2).double(), sticky, durations)
    assert max(p_values(drawn(example, perturb), example)) < 1e-20


@over_noise
def test_it_is_exact_where_there_is_but_one_step(perturb: str):
    """A single perturbed segment, or node, is the Gumbel-max trick."""
    example = random_segments("one step", (4,), num_steps=1, num_labels=3, lengths=None, seed=2)
    assert min(p_values(drawn(example, perturb), example)) > ALPHA


@over_noise
def test_hard_and_cold_draws_are_the_best_segmentation_of_perturbed_scores(perturb: str):
    """As scores, noise is what it says it is on; the relaxation tends to the same."""
    example = random_segments("perturbed", (3,), "per_step", longest=3, num_labels=3, seed=3)
    num_steps, _, num_labels = (sizes := example.crf().event_shape)
    shapes = {
        "segments": [sizes],
        "nodes": [(num_steps, num_labels)],
        "all": [sizes, (num_steps - 1, num_labels, num_labels)],
    }
    parts = [normal(3, *shape, seed=n) for n, shape in enumerate(shapes[perturb])]
    names = {"segments": ["segments"], "nodes": ["emissions"], "all": ["segments", "transitions"]}
    scores = dict(example.scores)
    for name, noise in zip(names[perturb], parts, strict=True):
        scores[name] = scores[name] + noise
    best = example.with_scores(*scores.values()).crf().mode
    rows = torch.cat([x.flatten(1, -2) for x in parts], 1)  # [B, rows, K]
    noise = rows if perturb == "all" else parts[0]
    options = {"perturb": perturb, "noise": noise}
    assert torch.equal(example.crf().perturb_and_map(straight_through=True, **options), best)
    assert_close(example.crf().perturb_and_map(temperature=1e-6, **options), best)


@over_noise
def test_straight_through_has_the_relaxed_gradient(perturb: str):
    example = random_segments("straight", (2, 3), seed=5)
    soft, hard = example.leaves(), example.leaves()
    options = {"temperature": 0.7, "perturb": perturb}
    relaxed = soft.crf().perturb_and_map((4,), generator=seeded(5), **options)
    straight = hard.crf().perturb_and_map(
        (4,), generator=seeded(5), straight_through=True, **options
    )
    assert ((straight == 0) | (straight == 1)).all()
    assert_close(gradients(straight, hard), gradients(relaxed, soft))


def as_segments(chain: Example) -> SemiMarkovCRF:
    durations = torch.zeros(1, 3, dtype=torch.float64)
    ends = {"start": chain.start, "end": chain.end}
    return SemiMarkovCRF(chain.emissions, chain.transitions, durations, chain.lengths, **ends)


def test_segments_of_length_one_are_perturbed_as_nodes_and_edges_are():
    """The first node and all edges, or all nodes: the same noise gives the same draw."""
    chain = random_example("nodes", (5,), ends=True)
    num_steps, num_states = chain.crf().event_shape
    on_nodes = normal(5, num_steps, num_states)
    on_edges = normal(5, (num_steps - 1) * num_states, num_states, seed=1)
    on_first = on_nodes * (torch.arange(num_steps) == 0)[:, None]
    pairs = [
        ({"perturb": "nodes", "noise": on_nodes}, {"perturb": "nodes", "noise": on_nodes}),
        (
            {"perturb": "edges", "noise": torch.cat([on_nodes[:, :1], on_edges], 1)},
            {"perturb": "all", "noise": torch.cat([on_first, on_edges], 1)},
        ),
    ]
    for of_nodes, of_segments in pairs:
        ours, theirs = chain.leaves(), chain.leaves()
        found = as_segments(ours).perturb_and_map(**of_segments).squeeze(-2)
        expected = theirs.crf().perturb_and_map(**of_nodes)
        assert_close(found, expected)
        assert_close(gradients(found, ours), gradients(expected, theirs))


@pytest.mark.parametrize("perturb", ["", "edges", None])
def test_what_else_could_be_perturbed(perturb: object):
    crf = random_segments("wrong", (2,)).crf()
    with pytest.raises(ValueError, match='perturb must be "segments", "nodes" or "all"'):
        crf.perturb_and_map(perturb=perturb)


@over_noise
def test_noise_of_another_shape(perturb: str):
    crf = random_segments("wrong", (2,)).crf()
    with pytest.raises(ValueError, match="noise must be"):
        crf.perturb_and_map(perturb=perturb, noise=torch.zeros(2, 4, 7))
