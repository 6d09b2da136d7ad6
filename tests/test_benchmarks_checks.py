"""The benchmarks' checks catch wrong contenders, and only those."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from benchmarks.checks import check
from benchmarks.chi_square import goodness_of_fit, independence, same_distribution
from benchmarks.contenders import CONTENDERS, Contender, Work
from benchmarks.operations import OPERATIONS
from benchmarks.ours import REFERENCE, STRUCTDIST, whole_chains
from benchmarks.problem import Size
from benchmarks.results import Results
from benchmarks.samplers import Arena, run
from benchmarks.sections import sampler_tables
from benchmarks.timing import Limits
from structdist import LinearChainCRF
from structdist.ops import reference

CPU = torch.device("cpu")
SMALL = Size(batch=3, length=6, states=3)


def shared_noise(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Right path by path, but one draw of noise serves the whole batch."""
    noise = torch.empty(emissions.shape[1:]).exponential_().log().neg()
    return _gumbel_ffbs(emissions, transitions, noise.expand_as(emissions))


def noise_shared_by_pairs(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Each item follows the distribution, but neighbours agree: only the joint tells."""
    batch, length, states = emissions.shape
    noise = torch.empty((batch + 1) // 2, length, states).exponential_().log().neg()
    return _gumbel_ffbs(emissions, transitions, noise.repeat_interleave(2, 0)[:batch])


def _gumbel_ffbs(emissions: Tensor, transitions: Tensor, noise: Tensor) -> Tensor:
    chain = whole_chains(emissions, transitions)
    return reference.gumbel_ffbs(chain, noise.to(emissions).unsqueeze(0), 1.0).soft[0]


def frozen_noise(emissions: Tensor, transitions: Tensor) -> Tensor:
    generator = torch.Generator().manual_seed(0)
    return LinearChainCRF(emissions, transitions).sample(generator=generator)


def from_marginals(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Right marginals at every step, wrong paths."""
    marginals = LinearChainCRF(emissions, transitions).marginals
    paths = torch.distributions.Categorical(marginals).sample()
    return one_hot(paths, emissions.shape[-1]).to(emissions.dtype)


def detached(emissions: Tensor, transitions: Tensor) -> Tensor:
    """Right values, wrong gradients."""
    value = STRUCTDIST["gumbel-ffbs"](emissions, transitions)
    return value.detach() + 0.5 * (value - value.detach())


def leaky_straight_through(emissions: Tensor, transitions: Tensor) -> Tensor:
    """A gradient even where the reward is constant."""
    soft = STRUCTDIST["gumbel-ffbs"](emissions, transitions)
    hard = one_hot(soft.argmax(-1), soft.shape[-1]).to(soft.dtype)
    return hard + (emissions - emissions.detach()) + 0 * transitions.sum()


def doubled_gradient(emissions: Tensor, transitions: Tensor) -> Tensor:
    value = STRUCTDIST["log-z"](emissions, transitions)
    return 2 * value - value.detach()


WRONG: dict[str, tuple[str, Work, str]] = {
    "log Z off by 1e-3": ("log-z", lambda e, t: STRUCTDIST["log-z"](e, t) + 1e-3, "value off"),
    "log Z is NaN": ("log-z", lambda e, t: STRUCTDIST["log-z"](e, t) * torch.nan, "value off"),
    "gradient doubled": ("log-z", doubled_gradient, "gradient by emissions"),
    "transposed": ("marginals", lambda e, t: STRUCTDIST["marginals"](e, t.mT), "value off"),
    "shape": ("entropy", lambda e, t: STRUCTDIST["entropy"](e, t)[None], "shape"),
    "no best path": ("viterbi", lambda e, t: e.argmin(-1), "off the best"),
    "raises": ("log-z", lambda e, t: 1 / 0, "ZeroDivisionError"),
    "shared noise": ("gumbel-ffbs", shared_noise, "noise is shared"),
    "shared by pairs": ("gumbel-ffbs", noise_shared_by_pairs, "not independent"),
    "frozen noise": ("sample", frozen_noise, "two calls"),
    "from marginals": ("sample", from_marginals, "chi-square of whole paths"),
    "wrong slope": ("gumbel-ffbs", detached, "central difference"),
    "leaky": ("gumbel-ffbs-st", leaky_straight_through, "constant reward"),
    "exact, not PM-MRF": ("pm-mrf", STRUCTDIST["gumbel-ffbs"], "against simulation"),
}


def arena() -> Arena:
    return Arena(CPU, Limits(budget=5.0, fewest=1, usual=1, most=2, shortest=0.0))


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_contender_is_caught(name: str) -> None:
    operation, work, what = WRONG[name]
    verdict = check(Contender(name, {operation: work}), OPERATIONS[operation], SMALL, CPU)
    assert verdict.failure is not None
    assert what in verdict.failure


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("works", [STRUCTDIST, REFERENCE], ids=["structdist", "reference"])
def test_ours_are_right(works: dict[str, Callable[..., Tensor]], operation: str) -> None:
    verdict = check(Contender("ours", works), OPERATIONS[operation], SMALL, CPU)
    assert verdict.passed, verdict.failure
    assert ("biased by design" in (verdict.note or "")) == operation.startswith("pm-mrf")


def test_torch_struct_shares_its_gumbel_noise() -> None:
    pytest.importorskip("torch_struct")
    torch_struct = next(c for c in CONTENDERS if c.name == "torch-struct")
    verdict = check(torch_struct, OPERATIONS["gumbel-ffbs-st"], SMALL, CPU)
    assert "noise is shared" in (verdict.failure or "")


def test_a_failing_contender_is_listed_without_time_or_speedup() -> None:
    contenders = [
        Contender("structdist", STRUCTDIST),
        Contender("reference", {"log-z": REFERENCE["log-z"]}),
        Contender("off", {"log-z": WRONG["log Z off by 1e-3"][1]}),
        Contender("shared", {"gumbel-ffbs": shared_noise}),
    ]
    operations = [OPERATIONS["log-z"], OPERATIONS["gumbel-ffbs"]]
    rows = run([SMALL], operations, arena(), contenders)
    by_name = {(row["operation"], row["contender"]): row for row in rows}
    for key in (("log-z", "off"), ("gumbel-ffbs", "shared")):
        row = by_name[key]
        assert row["status"] == "failed"
        assert row["forward"] is None
        assert row["forward_speedup"] is None
        assert row["forward_backward_speedup"] is None
    assert by_name["log-z", "reference"]["forward_backward_speedup"] > 0
    [table] = sampler_tables(Results("samplers", {}, {}, rows))
    assert any("FAILED: log-z, off: value off" in note for note in table.notes)


def test_a_contender_that_breaks_down_at_size_is_listed() -> None:
    def small_only(emissions: Tensor, transitions: Tensor) -> Tensor:
        if emissions.shape[1] > 5:
            raise MemoryError("no room")
        return STRUCTDIST["sample"](emissions, transitions)

    [_, row] = run(
        [SMALL], [OPERATIONS["sample"]], arena(), [Contender("x", {"sample": small_only})]
    )
    assert (row["status"], row["detail"]) == ("failed", "raised MemoryError: no room")


def test_no_speedup_where_structdist_itself_fails() -> None:
    contenders = [
        Contender("structdist", {"log-z": WRONG["log Z off by 1e-3"][1]}),
        Contender("reference", REFERENCE),
    ]
    rows = run([SMALL], [OPERATIONS["log-z"]], arena(), contenders)
    assert all(row["forward_speedup"] is None for row in rows)


def test_what_is_over_budget_is_skipped_with_the_reason() -> None:
    hungry = Contender("hungry", REFERENCE, bytes_needed=lambda size: 10**18)
    absent = Contender("absent", REFERENCE, module="no_such_module")
    long_only = Contender("long only", REFERENCE, shortest=100)
    slow = Arena(CPU, Limits(budget=1e-9))
    late = Arena(CPU, Limits(), time_for_all=-1.0)
    reasons = {
        c.name: row["detail"]
        for c, a in ((hungry, arena()), (absent, arena()), (long_only, arena()))
        for row in run([SMALL], [OPERATIONS["log-z"]], a, [c])
        if row["status"] == "skipped"
    }
    assert "GB" in reasons["hungry"]
    assert "not installed" in reasons["absent"]
    assert "100 or more" in reasons["long only"]
    reason = slow.reason_to_skip(Contender("slow", REFERENCE), OPERATIONS["log-z"], SMALL)
    assert reason is not None
    assert "over budget" in reason
    reason = late.reason_to_skip(Contender("late", REFERENCE), OPERATIONS["log-z"], SMALL)
    assert reason == "the time for all is up"


def test_chi_square_accepts_what_is_right() -> None:
    generator = torch.Generator().manual_seed(1)
    probabilities = torch.tensor([0.5, 0.3, 0.2])
    draws = torch.multinomial(probabilities, 10_000, True, generator=generator)
    first, second = (torch.bincount(x) for x in draws.chunk(2))
    table = torch.bincount(draws[::2] * 3 + draws[1::2], minlength=9).view(3, 3)
    assert goodness_of_fit(first, probabilities) > 1e-3
    assert same_distribution(first, second) > 1e-3
    assert independence(table) > 1e-3


def test_chi_square_rejects_what_is_wrong() -> None:
    assert goodness_of_fit(torch.tensor([500, 500]), torch.tensor([0.3, 0.7])) < 1e-6
    assert same_distribution(torch.tensor([500, 500]), torch.tensor([300, 700])) < 1e-6
    assert independence(torch.tensor([[500, 0], [0, 500]])) < 1e-6
    assert independence(torch.tensor([[500, 0], [0, 0]])) == 0.0


def test_chi_square_has_the_known_quantile() -> None:
    counts = torch.tensor([50.0, 50.0]) + torch.tensor([9.8, -9.8])  # statistic 3.8416
    assert goodness_of_fit(counts, torch.tensor([0.5, 0.5])) == pytest.approx(0.05, abs=1e-4)
