"""`LinearChain`: a layer that learns, and never breaks a rule it was given."""

import pytest
import torch
from torch import nn

import structdist.nn
from structdist import LinearChain, LinearChainCRF
from tests.chains import seeded

OUTSIDE, BEGIN, INSIDE = range(3)
BIO_MOVES = torch.tensor([[True, True, False], [True, True, True], [True, True, True]])
BIO_START = torch.tensor([True, True, False])


def tagging_task(num_sentences: int = 32, length: int = 8) -> tuple[torch.Tensor, torch.Tensor]:
    """Tags in a cycle, and words that say nothing half of the time: transitions matter."""
    generator = seeded(0)
    phase = torch.randint(3, (num_sentences, 1), generator=generator)
    tags = (torch.arange(length) + phase) % 3
    silent = torch.rand(tags.shape, generator=generator) < 0.5
    return torch.where(silent, 3, tags), tags


def bio_layer(**options) -> LinearChain:
    return LinearChain(3, allowed=BIO_MOVES, allowed_start=BIO_START, **options)


def breaks_bio(paths: torch.Tensor) -> torch.Tensor:
    """Is there an inside tag at the start, or after an outside tag? Bool [...]."""
    after_outside = (paths[..., :-1] == OUTSIDE) & (paths[..., 1:] == INSIDE)
    return (paths[..., 0] == INSIDE) | after_outside.any(-1)


def test_is_the_one_of_the_package():
    assert structdist.nn.LinearChain is LinearChain


def test_learns_to_tag():
    torch.manual_seed(0)
    words, tags = tagging_task()
    encoder, layer = nn.Embedding(4, 3), LinearChain(3, start=True, end=True)
    optimizer = torch.optim.Adam([*encoder.parameters(), *layer.parameters()], lr=0.1)
    losses = []
    for _ in range(60):
        loss = -layer(encoder(words)).log_prob(tags).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    accuracy = (layer(encoder(words)).argmax == tags).double().mean()
    assert losses[-1] < losses[0] / 2
    assert accuracy > 0.9


def test_mask_is_never_violated():
    """Not by the best path, nor by any sample, however much the emissions ask for it."""
    emissions = torch.randn(20, 6, 3, generator=seeded(1))
    emissions[..., INSIDE] += 20.0
    assert breaks_bio(LinearChain(3)(emissions).argmax).any()
    crf = bio_layer(init_std=1.0)(emissions)
    paths = [crf.argmax, crf.topk(5).paths, crf.sample_paths((50,), generator=seeded(2))]
    paths += [crf.rsample((50,), generator=seeded(3)).argmax(-1)]
    paths += [crf.perturb_and_map((50,), generator=seeded(4)).argmax(-1)]
    assert not any(breaks_bio(p).any() for p in paths)


def test_mask_blocks_gradients_and_training():
    layer = bio_layer(start=True)
    before = layer.transitions.detach().clone()
    layer(torch.randn(2, 5, 3)).entropy().sum().backward()
    assert layer.transitions.grad.isfinite().all()
    assert layer.transitions.grad[OUTSIDE, INSIDE] == 0
    assert layer.start.grad[INSIDE] == 0
    assert layer.transitions.grad.abs().sum() > 0
    torch.optim.SGD(layer.parameters(), lr=1.0).step()
    assert layer.transitions[OUTSIDE, INSIDE] == before[OUTSIDE, INSIDE]


def test_allowed_end():
    layer = LinearChain(3, allowed_end=torch.tensor([True, False, False]))
    assert (layer(torch.randn(9, 4, 3)).argmax[:, -1] == 0).all()


@pytest.mark.parametrize("start", [False, True])
@pytest.mark.parametrize("end", [False, True])
def test_start_and_end_flags(start: bool, end: bool):
    layer = LinearChain(4, start=start, end=end)
    wanted = {"transitions": True, "start": start, "end": end}
    assert {name for name, _ in layer.named_parameters()} == {n for n, on in wanted.items() if on}
    crf = layer(torch.randn(2, 5, 4))
    assert isinstance(crf, LinearChainCRF)
    assert (crf.start is not None, crf.end is not None) == (start, end)


def test_equals_a_chain_made_by_hand():
    layer = LinearChain(3, start=True, end=True)
    emissions, lengths = torch.randn(2, 5, 3), torch.tensor([5, 2])
    by_hand = LinearChainCRF(
        emissions, layer.transitions, lengths, start=layer.start, end=layer.end
    )
    assert torch.equal(layer(emissions, lengths).log_partition, by_hand.log_partition)


def test_state_dict_round_trip():
    source, target = bio_layer(end=True), bio_layer(end=True)
    emissions = torch.randn(2, 5, 3)
    assert not torch.equal(source(emissions).mean, target(emissions).mean)
    target.load_state_dict(source.state_dict())
    assert torch.equal(source(emissions).mean, target(emissions).mean)


def test_mask_is_a_copy_and_follows_the_module():
    mask = BIO_MOVES.clone()
    layer = LinearChain(3, allowed=mask)
    mask.fill_(False)
    assert torch.equal(layer.allowed, BIO_MOVES)
    assert layer.double()(torch.randn(5, 3).double()).log_partition.dtype == torch.float64


def test_repr_tells_the_size():
    assert "3, start=True, end=False" in repr(LinearChain(3, start=True))


@pytest.mark.parametrize("num_states", [0, -1])
def test_bad_number_of_states(num_states: int):
    with pytest.raises(ValueError, match="num_states"):
        LinearChain(num_states)


@pytest.mark.parametrize(
    ("name", "mask"),
    [
        ("allowed", torch.ones(3, 3)),
        ("allowed", torch.ones(3, dtype=torch.bool)),
        ("allowed_start", torch.ones(2, dtype=torch.bool)),
        ("allowed_end", torch.ones(3, 3, dtype=torch.bool)),
    ],
)
def test_bad_mask(name: str, mask: torch.Tensor):
    with pytest.raises(ValueError, match=name):
        LinearChain(3, **{name: mask})


def test_bad_emissions():
    with pytest.raises(ValueError, match="emissions"):
        LinearChain(3)(torch.zeros(2, 5, 4))


def test_mask_that_allows_nothing():
    layer = LinearChain(3, allowed=torch.zeros(3, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="no allowed path"):
        layer(torch.zeros(5, 3)).entropy()
