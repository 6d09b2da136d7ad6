"""Bad input gives a `ValueError` that names the argument and says what was wrong with it."""

import math
from collections.abc import Callable

import pytest
import torch
from torch.distributions import kl_divergence

from structdist import LinearChain, LinearChainCRF
from tests.chains import random_example

NUM_STEPS, NUM_STATES = 4, 3
GOOD = {"emissions": torch.zeros(5, 4, 3), "transitions": torch.zeros(3, 3)}


def build(**arguments) -> LinearChainCRF:
    """A good chain of batch shape (5,), T = 4, K = 3, with some arguments replaced."""
    return LinearChainCRF(**{**GOOD, **arguments})


def holding(value: float, *shape: int) -> torch.Tensor:
    """Zeros with one odd value."""
    x = torch.zeros(shape)
    x.view(-1)[1] = value
    return x


WRONG_SHAPES = {
    "emissions": [(3,), (), (5, 0, 3), (5, 4, 0), (5, 4, 2)],
    "transitions": [
        (3,),
        (),
        (2, 2),
        (3, 2),
        (2, 3, 3),
        (5, 4, 3, 3),
        (5, 2, 3, 3),
        (1, 5, 3, 3, 3),
    ],
    "start": [(), (2,), (4, 3), (5, 2), (5, 1)],
    "end": [(), (2,), (4, 3), (5, 2), (5, 1)],
    "lengths": [(4,), (3, 4), (5, 2)],
}


@pytest.mark.parametrize(
    ("name", "shape"), [(name, shape) for name, shapes in WRONG_SHAPES.items() for shape in shapes]
)
@pytest.mark.parametrize("validate_args", [True, False])
def test_wrong_shape(name: str, shape: tuple, validate_args: bool):
    """Shapes are checked always: without that, answers would be silently wrong."""
    wrong = torch.zeros(shape, dtype=torch.long if name == "lengths" else torch.float32)
    named = "transitions" if shape == (5, 4, 2) else name
    with pytest.raises(ValueError, match=named):
        build(**{name: wrong}, validate_args=validate_args)


@pytest.mark.parametrize("name", ["emissions", "transitions", "start", "end"])
@pytest.mark.parametrize("wrong", [[0.0, 1.0], 1.0, "scores"])
def test_not_a_tensor(name: str, wrong: object):
    with pytest.raises(ValueError, match=name):
        build(**{name: wrong})


@pytest.mark.parametrize("dtype", [torch.long, torch.bool, torch.complex64])
@pytest.mark.parametrize(
    ("name", "shape"),
    [("emissions", (5, 4, 3)), ("transitions", (3, 3)), ("start", (3,)), ("end", (3,))],
)
def test_scores_that_are_not_real(name: str, shape: tuple, dtype: torch.dtype):
    with pytest.raises(ValueError, match=name):
        build(**{name: torch.zeros(shape, dtype=dtype)})


@pytest.mark.parametrize(
    "lengths",
    [
        torch.tensor([4, 4, 4, 4, 5]),
        torch.tensor([4, -1, 4, 4, 4]),
        torch.tensor(5),
        torch.tensor([4.0, 4.0, 4.0, 4.0, 4.0]),
        torch.tensor([True, True, True, True, True]),
    ],
)
def test_lengths_out_of_range_or_not_integers(lengths: torch.Tensor):
    with pytest.raises(ValueError, match="lengths"):
        build(lengths=lengths, validate_args=True)


@pytest.mark.parametrize("value", [math.nan, math.inf])
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("emissions", (5, 4, 3)),
        ("transitions", (3, 3)),
        ("transitions", (5, 3, 3)),
        ("transitions", (5, 3, 3, 3)),
        ("start", (3,)),
        ("start", (5, 3)),
        ("end", (3,)),
        ("end", (5, 3)),
    ],
)
def test_nan_and_plus_inf(name: str, shape: tuple, value: float):
    with pytest.raises(ValueError, match=name):
        build(**{name: holding(value, *shape)}, validate_args=True)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_inf_are_welcome_in_padding(value: float):
    emissions, transitions = torch.zeros(5, 4, 3), torch.zeros(5, 3, 3, 3)
    emissions[:, 2:], transitions[:, 1:] = value, value
    crf = LinearChainCRF(emissions, transitions, torch.full((5,), 2), validate_args=True)
    torch.testing.assert_close(crf.log_partition, torch.full((5,), math.log(9.0)))


# No allowed path -----------------------------------------------------------------------------


def impossible(batch_shape: tuple = (5,), index: tuple = (3,), **options) -> LinearChainCRF:
    emissions = torch.zeros(*batch_shape, NUM_STEPS, NUM_STATES)
    emissions[(*index, 2)] = -torch.inf
    return LinearChainCRF(emissions, torch.zeros(3, 3), **options)


POSSIBLE = LinearChainCRF(torch.zeros(5, 4, 3), torch.zeros(3, 3))
PATHS = torch.zeros(5, 4, dtype=torch.long)
USES: dict[str, Callable[[LinearChainCRF], object]] = {
    "log_partition": lambda d: d.log_partition,
    "log_prob": lambda d: d.log_prob(PATHS),
    "marginals": lambda d: d.marginals,
    "mean": lambda d: d.mean,
    "variance": lambda d: d.variance,
    "stddev": lambda d: d.stddev,
    "edge_marginals": lambda d: d.edge_marginals,
    "mode": lambda d: d.mode,
    "argmax": lambda d: d.argmax,
    "topk": lambda d: d.topk(2),
    "entropy": lambda d: d.entropy(),
    "perplexity": lambda d: d.perplexity(),
    "renyi_0": lambda d: d.renyi_entropy(0),
    "renyi_2": lambda d: d.renyi_entropy(2),
    "renyi_inf": lambda d: d.renyi_entropy(math.inf),
    "cross_entropy": lambda d: d.cross_entropy(POSSIBLE),
    "cross_entropy-other": lambda d: POSSIBLE.cross_entropy(d),
    "kl": lambda d: kl_divergence(d, POSSIBLE),
    "kl-other": lambda d: kl_divergence(POSSIBLE, d),
    "expectation": lambda d: d.expectation(torch.ones(4, 3)),
    "sample": lambda d: d.sample(),
    "sample_paths": lambda d: d.sample_paths((2,)),
    "rsample": lambda d: d.rsample((2,)),
    "perturb_and_map": lambda d: d.perturb_and_map((2,)),
}
over_uses = pytest.mark.parametrize("use", USES)


@over_uses
def test_no_allowed_path(use: str):
    """At first use, whichever it is; the message tells which chain of the batch it is."""
    crf = impossible(validate_args=True)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"batch index \(3,\).*no allowed path"):
            USES[use](crf)


def test_no_allowed_path_in_two_batch_dimensions():
    crf = impossible((2, 3), (1, 2), validate_args=True)
    with pytest.raises(ValueError, match=r"batch index \(1, 2\)"):
        crf.entropy()


def test_no_allowed_path_without_batch():
    crf = impossible((), (), validate_args=True)
    with pytest.raises(ValueError, match=r"batch index \(\)"):
        crf.rsample()


@pytest.mark.parametrize("name", ["transitions", "start", "end"])
def test_no_allowed_path_whatever_forbids_it(name: str):
    shape = (3, 3) if name == "transitions" else (3,)
    crf = build(**{name: torch.full(shape, -torch.inf)}, validate_args=True)
    with pytest.raises(ValueError, match="no allowed path"):
        _ = crf.log_partition


def test_condition_on_what_is_impossible():
    crf = build(transitions=torch.full((3, 3), -torch.inf).fill_diagonal_(0.0))
    observed = torch.tensor([0, 1, -1, -1])
    with pytest.raises(ValueError, match="no allowed path"):
        _ = crf.condition(observed).log_partition


# Arguments of methods ------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [0, 0.0, -1.0, math.nan, math.inf, torch.tensor(0.0)])
@pytest.mark.parametrize("method", ["rsample", "perturb_and_map"])
def test_temperature(method: str, temperature: float):
    with pytest.raises(ValueError, match="temperature"):
        getattr(build(), method)(temperature=temperature)


@pytest.mark.parametrize("k", [-1, 1.5, 2.0, True, "2", None])
def test_topk(k: object):
    with pytest.raises(ValueError, match=r"\bk\b"):
        build().topk(k)


@pytest.mark.parametrize("perturb", ["", "edge", "both", None])
def test_perturb(perturb: object):
    with pytest.raises(ValueError, match="perturb"):
        build().perturb_and_map(perturb=perturb)


@pytest.mark.parametrize("order", [-1, -0.5, -math.inf, math.nan])
def test_order(order: float):
    with pytest.raises(ValueError, match="order"):
        build().renyi_entropy(order)


@pytest.mark.parametrize(
    "observed",
    [
        torch.zeros(5, 4),
        torch.zeros(5, 4, dtype=torch.bool),
        torch.zeros(5, 3, dtype=torch.long),
        torch.zeros(4, 4, dtype=torch.long),
        torch.full((5, 4), 3),
        torch.full((5, 4), -2),
    ],
)
def test_observed(observed: torch.Tensor):
    with pytest.raises(ValueError, match="observed"):
        build(validate_args=True).condition(observed)


@pytest.mark.parametrize(
    "allowed",
    [
        torch.ones(5, 4, 3),
        torch.ones(5, 4, 3, dtype=torch.long),
        torch.ones(5, 4, 2, dtype=torch.bool),
        torch.ones(4, 4, 3, dtype=torch.bool),
    ],
)
def test_allowed(allowed: torch.Tensor):
    with pytest.raises(ValueError, match="allowed"):
        build().restrict(allowed)


WRONG_VALUES = {
    "state too large": torch.full((5, 4), 3),
    "negative state": torch.full((5, 4), -1),
    "zero rows": torch.zeros(5, 4, 3),
    "two ones": torch.ones(5, 4, 3),
    "soft rows": torch.full((5, 4, 3), 1 / 3),
    "nan rows": torch.full((5, 4, 3), math.nan),
    "path too short": torch.zeros(5, 3, dtype=torch.long),
    "event too short": torch.zeros(5, 3, 3),
    "too few states": torch.zeros(5, 4, 2),
    "wrong batch": torch.zeros(4, 4, dtype=torch.long),
    "no dimension": torch.tensor(0),
    "one-hot without a time dimension": torch.zeros(3),
    "a list": [[0, 0, 0, 0]] * 5,
}


@pytest.mark.parametrize("value", WRONG_VALUES.values(), ids=WRONG_VALUES.keys())
def test_value_of_log_prob(value: object):
    with pytest.raises(ValueError, match="value"):
        build(validate_args=True).log_prob(value)


def test_value_may_be_anything_in_padding():
    crf = build(lengths=torch.tensor([2, 2, 2, 2, 2]), validate_args=True)
    path = torch.tensor([0, 1, 99, -7])
    assert torch.equal(crf.log_prob(path), crf.log_prob(torch.tensor([0, 1, 0, 0])))


@pytest.mark.parametrize("shape", [(4, 2), (3, 3), (4, 4, 3), (2, 5, 4, 3)])
def test_node_values(shape: tuple):
    with pytest.raises(ValueError, match="node_values"):
        build().expectation(torch.zeros(shape))


@pytest.mark.parametrize("shape", [(3,), (2, 2), (5, 4, 3, 3), (2, 5, 3, 3, 3)])
def test_edge_values(shape: tuple):
    with pytest.raises(ValueError, match="edge_values"):
        build().expectation(edge_values=torch.zeros(shape))


def test_edge_values_of_another_batch():
    with pytest.raises(ValueError, match="edge_values"):
        build().expectation(edge_values=torch.zeros(4, 3, 3))


@pytest.mark.parametrize(
    "other",
    [
        random_example("longer", (5,), num_steps=5, lengths=None),
        random_example("wider", (5,), num_states=4, lengths=None),
        random_example("other lengths", (5,)),
        random_example("other batch", (4,), lengths=None),
    ],
    ids=lambda e: e.name,
)
@pytest.mark.parametrize("compare", [LinearChainCRF.cross_entropy, kl_divergence])
def test_other(other, compare: Callable):
    with pytest.raises(ValueError, match="other"):
        compare(build(), other.crf())


def test_expand_to_an_incompatible_shape():
    with pytest.raises((ValueError, RuntimeError), match="expand"):
        build().expand((4,))


def test_too_many_paths_to_enumerate():
    with pytest.raises(ValueError, match="too many to enumerate"):
        LinearChainCRF(torch.zeros(50, 10), torch.zeros(10, 10)).enumerate_support()


NOT_TENSORS = {
    "emissions": lambda: LinearChainCRF(None, torch.zeros(3, 3)),
    "transitions": lambda: LinearChainCRF(torch.zeros(4, 3), None),
    "lengths": lambda: LinearChainCRF(torch.zeros(4, 3), torch.zeros(3, 3), "abc"),
    "initial": lambda: LinearChainCRF.from_hmm([0.0], torch.zeros(3, 3), torch.zeros(4, 3)),
    "observed": lambda: plain().condition([0, 1, 2, 0]),
    "allowed": lambda: plain().restrict([True]),
    "node_values": lambda: plain().expectation([1.0]),
    "edge_values": lambda: plain().expectation(edge_values=torch.zeros(3, 3) * 1j),
    "value": lambda: plain().log_prob(torch.zeros(4, 3) * 1j),
    "other": lambda: plain().cross_entropy(None),
    "temperature": lambda: plain().rsample(temperature="warm"),
    "order": lambda: plain().renyi_entropy(None),
    "sample_shape": lambda: plain().sample((-1,)),
    "num_states": lambda: LinearChain(2.5),
}


def plain() -> LinearChainCRF:
    return LinearChainCRF(torch.zeros(4, 3), torch.zeros(3, 3))


@pytest.mark.parametrize("name", NOT_TENSORS)
def test_things_of_the_wrong_type(name: str):
    with pytest.raises(ValueError, match=name):
        NOT_TENSORS[name]()


def test_values_may_be_infinite_where_nothing_is_allowed():
    emissions = torch.zeros(3, 2)
    emissions[1, 1] = -torch.inf
    crf = LinearChainCRF(emissions, torch.zeros(2, 2))
    assert crf.expectation(crf.emissions) == 0
    with pytest.raises(ValueError, match="node_values"):
        LinearChainCRF(torch.zeros(3, 2), torch.zeros(2, 2)).expectation(crf.emissions)
