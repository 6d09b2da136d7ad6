"""`LinearChain`: a layer that learns, and never breaks a rule it was given."""

import importlib

import pytest
import torch
from torch import nn
from torch.distributions import Distribution
from torch.testing import assert_close

import structdist.nn
from structdist import LinearChain, LinearChainCRF
from structdist.ops import enumerate_paths
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


def test_what_was_learnt_without_masks_loads_into_a_layer_with_them():
    free, strict = LinearChain(3, end=True), bio_layer(end=True)
    strict.load_state_dict(free.state_dict())
    free.load_state_dict(strict.state_dict())
    emissions = torch.randn(20, 6, 3, generator=seeded(1))
    emissions[..., INSIDE] += 20.0
    assert breaks_bio(free(emissions).argmax).any()
    assert not breaks_bio(strict(emissions).argmax).any()


def test_mask_is_a_copy_and_follows_the_module():
    mask = BIO_MOVES.clone()
    layer = LinearChain(3, allowed=mask)
    mask.fill_(False)
    assert torch.equal(layer.allowed, BIO_MOVES)
    assert layer.double()(torch.randn(5, 3).double()).log_partition.dtype == torch.float64


def test_repr_tells_the_size():
    assert "3, start=True, end=False" in repr(LinearChain(3, start=True))


# Device and dtype ----------------------------------------------------------------------------

ALL_MASKS = {"allowed": BIO_MOVES, "allowed_start": BIO_START, "allowed_end": BIO_START}
VARIANTS = [{}, {"start": True, "end": True}, ALL_MASKS, {"start": True, "end": True, **ALL_MASKS}]


def tensors(layer: nn.Module) -> list[torch.Tensor]:
    return [*layer.parameters(), *layer.buffers()]


@pytest.mark.parametrize("options", VARIANTS)
def test_parameters_and_masks_are_made_on_the_device(options: dict):
    layer = LinearChain(3, device="meta", **options)
    assert len(tensors(layer)) == len(options) + 1
    assert {x.device.type for x in tensors(layer)} == {"meta"}


def test_default_device_holds_for_the_masks_as_well():
    with torch.device("meta"):
        layer = bio_layer()
    assert {x.device.type for x in tensors(layer)} == {"meta"}


@pytest.mark.parametrize("options", VARIANTS)
@pytest.mark.parametrize("lengths", [None, torch.tensor([5, 2])])
def test_shapes_on_meta(options: dict, lengths: torch.Tensor | None):
    layer = LinearChain(3, device="meta", **options)
    emissions = torch.empty(2, 5, 3, device="meta", requires_grad=True)
    tags = torch.empty(2, 5, device="meta", dtype=torch.long)
    dist = layer(emissions, lengths)
    answers = {
        (2,): [dist.log_partition, dist.entropy(), dist.log_prob(tags)],
        (2, 5): [dist.argmax, dist.sample_paths()],
        (2, 5, 3): [dist.marginals, dist.mode, dist.sample(), dist.rsample()],
        (7, 2, 5, 3): [dist.rsample((7,), straight_through=True)],
        (): [layer.loss(emissions, tags, lengths)],
    }
    for shape, found in answers.items():
        assert {(x.shape, x.device.type) for x in found} == {(shape, "meta")}
    layer.loss(emissions, tags, lengths).backward()
    assert emissions.grad.shape == emissions.shape


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_dtype(dtype: torch.dtype):
    layer = bio_layer(end=True, dtype=dtype)
    assert {x.dtype for x in layer.parameters()} == {dtype}
    assert {x.dtype for x in layer.buffers()} == {torch.bool}
    wide = torch.promote_types(dtype, torch.float32)
    assert layer(torch.zeros(4, 3, dtype=dtype)).log_partition.dtype == wide


@pytest.mark.parametrize("masks", [{}, ALL_MASKS])
def test_default_dtype_is_that_of_parameters_alone(masks: dict):
    """A float32 layer stays one: masks without scores of their own add no digits."""
    layer = LinearChain(3, dtype=torch.float32, **masks)
    torch.set_default_dtype(torch.float64)
    try:
        assert LinearChain(3).transitions.dtype == torch.float64
        dist = layer(torch.zeros(4, 3, dtype=torch.float32))
        assert dist.log_partition.dtype == torch.float32
    finally:
        torch.set_default_dtype(torch.float32)


def test_init_std():
    layer = LinearChain(50, init_std=3.0, dtype=torch.float64)
    assert 2.5 < layer.transitions.std() < 3.5
    assert not LinearChain(3, start=True, init_std=0.0).start.any()


# The loss ------------------------------------------------------------------------------------


@pytest.mark.parametrize("lengths", [None, torch.tensor([5, 1, 0, 3])])
def test_loss_is_the_mean_negative_log_prob(lengths: torch.Tensor | None):
    layer = bio_layer(start=True)
    emissions = torch.randn(4, 5, 3, generator=seeded(0))
    tags = layer(emissions, lengths).sample_paths(generator=seeded(1))
    loss = layer.loss(emissions, tags, lengths)
    assert loss.shape == ()
    assert_close(loss, -layer(emissions, lengths).log_prob(tags).mean())


@pytest.mark.parametrize("batch_shape", [(), (1,), (2, 3)])
def test_loss_over_any_batch(batch_shape: tuple):
    layer, tags = LinearChain(3), torch.zeros(*batch_shape, 4, dtype=torch.int32)
    emissions = torch.randn(*batch_shape, 4, 3)
    assert_close(layer.loss(emissions, tags), -layer(emissions).log_prob(tags).mean())


def test_loss_has_the_gradient_of_its_parts():
    """Of the emissions: marginals minus tags, divided by the number of chains."""
    layer = bio_layer(start=True, end=True)
    emissions = torch.randn(2, 4, 3, requires_grad=True)
    tags = torch.tensor([[OUTSIDE, BEGIN, INSIDE, OUTSIDE], [BEGIN, INSIDE, INSIDE, BEGIN]])
    layer.loss(emissions, tags).backward()
    dist = layer(emissions)
    assert_close(emissions.grad, (dist.marginals - dist.event_of(tags)).detach() / 2)
    for parameter in layer.parameters():
        assert parameter.grad.isfinite().all()
        assert parameter.grad.any()


def test_loss_ignores_tags_in_the_padding():
    layer, emissions, lengths = bio_layer(), torch.randn(2, 4, 3), torch.tensor([4, 2])
    tags = torch.tensor([[0, 1, 2, 0], [0, 1, 0, 0]])
    padded = torch.tensor([[0, 1, 2, 0], [0, 1, -100, 2]])  # -100: as torch's cross_entropy has it
    assert_close(layer.loss(emissions, tags, lengths), layer.loss(emissions, padded, lengths))


FORBIDDEN = [
    ([[0, 1, 2, 0], [1, 0, 2, 2]], r"batch index \(1,\): the move from 0 to 2 into step 2"),
    ([[0, 2, 0, 2], [2, 2, 2, 2]], r"batch index \(0,\): the move from 0 to 2 into step 1"),
    ([[0, 1, 2, 0], [2, 2, 1, 0]], r"batch index \(1,\): state 2 at step 0 is forbidden"),
]


@pytest.mark.parametrize(("tags", "message"), FORBIDDEN)
def test_loss_names_the_first_tag_that_breaks_a_rule(tags: list, message: str):
    with pytest.raises(ValueError, match=message):
        bio_layer().loss(torch.randn(2, 4, 3), torch.tensor(tags))


@pytest.mark.parametrize("tags", [tags for tags, _ in FORBIDDEN])
def test_loss_without_validation_is_infinite(tags: list):
    layer, emissions = bio_layer(), torch.randn(2, 4, 3, requires_grad=True)
    Distribution.set_default_validate_args(False)
    loss = layer.loss(emissions, torch.tensor(tags))
    assert loss == torch.inf
    loss.backward()
    assert emissions.grad.isfinite().all()


def test_loss_of_no_chains():
    """Zero, with a gradient of zero: a worker without data does no harm to the others."""
    layer, emissions = LinearChain(3, start=True), torch.randn(0, 4, 3, requires_grad=True)
    loss = layer.loss(emissions, torch.zeros(0, 4, dtype=torch.long))
    loss.backward()
    assert loss == 0
    assert emissions.grad.shape == (0, 4, 3)
    assert not layer.transitions.grad.any()


@pytest.mark.parametrize(
    "tags",
    [
        torch.zeros(2, 4),
        torch.zeros(2, 4, 3, dtype=torch.long),
        torch.zeros(4, dtype=torch.long),
        torch.zeros(1, 4, dtype=torch.long),
        torch.zeros(2, 3, dtype=torch.long),
        [[0, 0, 0, 0], [0, 0, 0, 0]],
    ],
)
def test_bad_tags(tags: torch.Tensor):
    """They must fit the batch: what would broadcast is more likely a mistake."""
    with pytest.raises(ValueError, match="tags must"):
        LinearChain(3).loss(torch.zeros(2, 4, 3), tags)


def test_tags_out_of_range():
    with pytest.raises(ValueError, match=r"0\.\.2 .* got 3 at step 0 of index \(0,\)"):
        LinearChain(3).loss(torch.zeros(2, 4, 3), torch.full((2, 4), 3))


# Masks of tokens and partial labels ------------------------------------------------------------

TOKENS = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])


@pytest.mark.parametrize("dtype", [torch.bool, torch.long, torch.float32])
def test_a_mask_says_what_lengths_say(dtype: torch.dtype):
    layer, emissions = bio_layer(), torch.randn(2, 4, 3, generator=seeded(0))
    tags = torch.tensor([[0, 1, 2, 0], [1, 2, -100, -100]])
    expected = layer.loss(emissions, tags, torch.tensor([4, 2]))
    assert torch.equal(layer.loss(emissions, tags, mask=TOKENS.to(dtype)), expected)
    assert layer(emissions, mask=TOKENS.to(dtype)).lengths.tolist() == [4, 2]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mask": TOKENS.flip(-1)}, r"mask .* at batch index \(1,\) it begins again"),
        ({"mask": TOKENS[:, :3]}, r"mask must be \[\*B, 4\], got \(2, 3\)"),
        ({"mask": TOKENS, "lengths": torch.tensor([4, 2])}, "give one of them"),
    ],
)
def test_bad_masks_of_tokens(options: dict, message: str):
    with pytest.raises(ValueError, match=message):
        LinearChain(3)(torch.zeros(2, 4, 3), **options)


def test_ignored_tags_are_summed_over():
    """The loss is minus the log of the sum over all paths that have the known tags."""
    layer = bio_layer(end=True, dtype=torch.float64)
    emissions = torch.randn(2, 4, 3, generator=seeded(0), dtype=torch.float64).requires_grad_()
    tags, lengths = torch.tensor([[0, -100, 2, -100], [-100, -100, 7, 7]]), torch.tensor([4, 2])
    loss = layer.loss(emissions, tags, lengths, ignore_index=-100)
    paths = enumerate_paths(4, 3)
    known = (tags.unsqueeze(1) == -100) | (tags.unsqueeze(1) == paths)
    fits = (known | (torch.arange(4) >= lengths.view(2, 1, 1))).all(-1)  # [B, P]
    log_probs = layer(emissions, lengths).log_prob(paths.unsqueeze(1)).T
    copies = torch.tensor([1.0, 9.0]).log()  # of each path, by what stands beyond the length
    expected = -(log_probs.masked_fill(~fits, -torch.inf).logsumexp(-1) - copies).mean()
    assert_close(loss, expected)
    leaves = [emissions, *layer.parameters()]
    assert_close(torch.autograd.grad(loss, leaves), torch.autograd.grad(expected, leaves))


def test_ignored_tags_that_are_not_there_change_nothing():
    layer, emissions = LinearChain(3, start=True), torch.randn(2, 4, 3, generator=seeded(0))
    tags = torch.tensor([[0, 1, 2, 0], [1, 2, 0, 1]])
    assert_close(layer.loss(emissions, tags, ignore_index=-100), layer.loss(emissions, tags))
    assert layer.loss(emissions, torch.full((2, 4), -1), ignore_index=-1).item() == pytest.approx(
        0.0, abs=1e-6
    )


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ([[0, 1, 0, 0], [0, -1, 1, 2]], r"0\.\.2 .* got -1 at step 1 of index \(1,\)"),
        ([[0, 1, 0, 0], [-100, 0, 2, -100]], r"tags at batch index \(1,\) are on no allowed path"),
    ],
)
def test_partial_tags_that_cannot_be(tags: list, message: str):
    with pytest.raises(ValueError, match=message):
        bio_layer().loss(torch.zeros(2, 4, 3), torch.tensor(tags), ignore_index=-100)


# Types and bad input -------------------------------------------------------------------------


def test_hooks_run_at_a_call():
    """`__call__` is declared for type checkers alone, and is torch's at run time."""
    assert LinearChain.__call__ is nn.Module.__call__
    layer, seen = LinearChain(3), []
    layer.register_forward_hook(lambda module, args, output: seen.append(output))
    dist = layer(torch.zeros(4, 3))
    layer.loss(torch.zeros(4, 3), torch.zeros(4, dtype=torch.long))
    assert seen[0] is dist
    assert len(seen) == 2


def test_typed_usage_can_be_imported():
    importlib.import_module("tests.typed_usage")


@pytest.mark.parametrize("num_states", [0, -1, True, 3.0])
def test_bad_number_of_states(num_states: int):
    with pytest.raises(ValueError, match="num_states"):
        LinearChain(num_states)


@pytest.mark.parametrize("init_std", [-0.1, float("nan"), float("inf"), "wide"])
def test_bad_init_std(init_std: float):
    with pytest.raises(ValueError, match="init_std"):
        LinearChain(3, init_std=init_std)


@pytest.mark.parametrize(
    ("name", "mask"),
    [
        ("allowed", torch.ones(3, 3)),
        ("allowed", torch.ones(3, dtype=torch.bool)),
        ("allowed_start", torch.ones(2, dtype=torch.bool)),
        ("allowed_end", torch.ones(3, 3, dtype=torch.bool)),
        ("allowed_end", [True, True, True]),
    ],
)
def test_bad_mask(name: str, mask: torch.Tensor):
    with pytest.raises(ValueError, match=f"{name} must"):
        LinearChain(3, **{name: mask})


def test_bad_emissions():
    with pytest.raises(ValueError, match="emissions"):
        LinearChain(3)(torch.zeros(2, 5, 4))


def test_mask_that_allows_nothing():
    layer = LinearChain(3, allowed=torch.zeros(3, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="no allowed path"):
        layer(torch.zeros(5, 3)).entropy()
