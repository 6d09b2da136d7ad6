"""Questions to a distribution, each with what enumeration knows of the answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from tests.fuzz.asked import Asked, Wrong
from tests.fuzz.cases import Case
from tests.fuzz.exact import Interval
from tests.fuzz.parts import arguments_of, by_kind, parts_of

# A draw this unlikely is wrong: of 1e7 draws from 1e4 paths each, one such is seen by chance with
# probability 1e-9.
LEAST_LOG_PROB = math.log(1e-20)
NUM_DRAWS = 3


def log_partition(asked: Asked) -> Iterator[Wrong]:
    """Its value, and its gradient, which is the probabilities of parts."""
    exact, answer = asked.exact, asked.dist.log_partition
    true = exact.log_partition()
    yield from asked.compare("log_partition", asked.flat(answer), true, asked.tolerance)
    allowed = torch.full((exact.num_chains, 1), asked.tolerance)
    yield from asked.compare_gradients("log_partition", answer, exact.part_marginals(), allowed)


def marginals(asked: Asked) -> Iterator[Wrong]:
    """The probabilities of every kind of part."""
    dist, sizes = asked.dist, asked.exact.sizes
    lows, highs = (by_kind(side, sizes) for side in asked.exact.part_marginals())
    named = {"edge_marginals": "moves", "marginals": "segments" if sizes.longest else "steps"}
    if sizes.longest:
        named["token_marginals"] = "steps"
    for name, kind in named.items():
        found = asked.flat(getattr(dist, name), lows[kind].dim() - 1)
        true = Interval(lows[kind], highs[kind])
        yield from asked.compare(name, found, true, asked.tolerance)


def entropy(asked: Asked) -> Iterator[Wrong]:
    """Its value and gradient, as far as scores determine them, and its range in any case."""
    exact, answer = asked.exact, asked.dist.entropy()
    found, true = asked.flat(answer), exact.entropy()
    any_value = Interval(torch.zeros_like(true), exact.log_num_outcomes)
    yield from asked.compare("entropy", found, any_value, asked.tolerance)
    allowed, by_parts = _allowed(asked), exact.entropy_by_parts()
    yield from asked.compare("entropy", found, Interval(true, true), allowed)
    known = Interval(by_parts, by_parts)
    yield from asked.compare_gradients("entropy", answer, known, 10 * allowed.unsqueeze(-1))


def _allowed(asked: Asked) -> Tensor:
    """[N]: the tolerance of functions of probabilities; any number, where these are in doubt."""
    doubt = asked.exact.doubt()
    return torch.where(doubt < 1e-3, asked.tolerance + 100 * doubt, 1e6)


def renyi_entropies(asked: Asked) -> Iterator[Wrong]:
    """Of the orders 2 and infinity."""
    for order in (2.0, math.inf):
        found, true = asked.dist.renyi_entropy(order), asked.exact.renyi_entropy(order)
        title = f"renyi_entropy({order})"
        yield from asked.compare(title, asked.flat(found), Interval(true, true), _allowed(asked))


def expectation(asked: Asked) -> Iterator[Wrong]:
    """Of normal values of steps and moves; it is never beyond the values of outcomes."""
    sizes, generator = asked.exact.sizes, asked.generator()
    nodes = torch.randn(sizes.num_steps, sizes.num_labels, generator=generator)
    edges = torch.randn(sizes.num_labels, sizes.num_labels, generator=generator)
    true, size = asked.exact.expectation(_values_of_parts(asked.case, nodes, edges))
    found = asked.flat(asked.dist.expectation(nodes, edges))
    tolerance = asked.tolerance * (1 + size)
    yield from asked.compare("expectation", found, Interval(-size, size), tolerance)
    allowed = _allowed(asked) * (1 + size)
    yield from asked.compare("expectation", found, Interval(true, true), allowed)


def _values_of_parts(case: Case, nodes: Tensor, edges: Tensor) -> Tensor:
    """[N, F]: of steps and moves, in place of the scores; those of other parts are 0."""
    values = dict.fromkeys(case.example.scores)
    values |= {"emissions": nodes, "transitions": edges}
    sizes = case.exact.sizes
    return parts_of(arguments_of(replace(case.example, **values), sizes), sizes)


def best_paths(asked: Asked) -> Iterator[Wrong]:
    """The best path and the three best: no others are surely better, and none comes twice."""
    exact, top = asked.exact, asked.dist.topk(3)
    paths = asked.flat(top.paths, 1, 1)
    for name, found in (("argmax", asked.flat(asked.dist.argmax, 1)[None]), ("topk", paths)):
        log_probs, slack = exact.log_probs_of(found)
        least = exact.rivals(len(found))
        there = least > -torch.inf
        ahead = torch.where(there, log_probs + slack - least, 0.0).clamp(max=1)
        yield from asked.compare(
            f"lead of {name}", ahead, _from(torch.zeros_like(ahead)), asked.tolerance
        )
        same = (found[:, None] == found[None]).all(-1) & there[:, None] & there[None]
        again = (same.sum(1) - 1).clamp(min=0).double()
        yield from asked.compare(
            f"copies of a path of {name}", again, _from(torch.zeros_like(again), 0.0), 0.0
        )
    found = asked.flat(top.log_probs, 0, 1)
    yield from asked.compare(
        "topk.log_probs", found, _log_probs(asked, paths, there), asked.tolerance
    )


def _from(low: Tensor, high: float = 1e300) -> Interval:
    low = low.double()
    return Interval(low, torch.full_like(low, high))


def _log_probs(asked: Asked, paths: Tensor, there: Tensor | None = None) -> Interval:
    """[S, N]: of paths [S, N, T]; -inf for those that are not there."""
    log_probs, slack = asked.exact.log_probs_of(paths)
    if there is not None:
        log_probs = torch.where(there, log_probs, -torch.inf)
    low, high = asked.exact.log_partition()
    slack = slack + (high - low)
    return Interval(log_probs - slack, log_probs + slack)


def log_prob(asked: Asked) -> Iterator[Wrong]:
    """Of outcomes picked at random, -inf if and only if they are forbidden, and its gradient."""
    exact, dist = asked.exact, asked.dist
    paths = exact.some_paths(NUM_DRAWS, asked.generator())
    given = paths.view(NUM_DRAWS, *dist.batch_shape, -1)
    answer = dist.log_prob(dist.event_of(given))  # paths may have the shape of events
    true = _log_probs(asked, paths)
    yield from asked.compare("log_prob", asked.flat(answer, 0, 1), true, asked.tolerance)
    first = torch.where(answer[0] == -torch.inf, 0.0, answer[0])
    allowed = torch.full((exact.num_chains, 1), asked.tolerance)
    known = _log_prob_by_parts(asked, paths[:1], true.high[0] > -torch.inf)
    yield from asked.compare_gradients("log_prob", first, known, allowed)


def _log_prob_by_parts(asked: Asked, paths: Tensor, wanted: Tensor) -> Interval:
    """[N, F]: which parts a path has, less their probabilities; 0 for chains not wanted."""
    low, high = asked.exact.part_marginals()
    has = asked.exact.parts_on(paths[0])
    return Interval(*(torch.where(wanted.unsqueeze(-1), has - x, 0.0) for x in (high, low)))


def draws(asked: Asked) -> Iterator[Wrong]:
    """They are allowed, and not beyond belief; relaxed ones are finite, with their gradients."""
    dist, example = asked.dist, asked.case.example
    paths = dist.sample_paths((NUM_DRAWS,), generator=asked.generator())
    options = {"temperature": 0.5, "generator": asked.generator()}
    relaxed = dist.rsample_with_paths((NUM_DRAWS,), **options)
    for name, found in (("sample_paths", paths), ("rsample", relaxed.paths)):
        high = _log_probs(asked, asked.flat(found, 1, 1)).high
        low = torch.full_like(high, LEAST_LOG_PROB)
        yield from asked.compare(f"log probability of {name}", high.clamp(max=0), _from(low), 0.0)
    for name, value in (
        ("rsample", relaxed.value),
        ("perturb_and_map", dist.perturb_and_map(**options)),
    ):
        yield from asked.finite(name, value)
        yield from asked.compare(name, value.detach(), _from(torch.zeros(1), 1.0), asked.tolerance)
        leaves = [x for x in example.scores.values() if x.requires_grad]
        if value.requires_grad:
            weights = torch.randn(value.shape, generator=asked.generator()).to(value.dtype)
            for grad in torch.autograd.grad(
                (value * weights).sum(), leaves, retain_graph=True, materialize_grads=True
            ):
                yield from asked.finite(f"gradient of {name}", grad)
    if not asked.exact.sizes.longest:
        inside = torch.arange(asked.exact.sizes.num_steps) < example.lengths.unsqueeze(-1)
        total = relaxed.value.detach().sum(-1)
        ones = inside.double().expand(total.shape)
        yield from asked.compare("sum of rsample", total, Interval(ones, ones), asked.tolerance)


def layouts(asked: Asked) -> Iterator[Wrong]:
    """Relaxed draws and their gradients are the same where scores lie in order in memory."""
    if bool((asked.exact.doubt() > 1e-3).any()):
        return
    for name in ("rsample", "perturb_and_map"):
        laid_out = _relaxed_with_gradients(asked, asked.case, name)
        in_order = _relaxed_with_gradients(asked, asked.case.in_order(), name)
        for found, expected in zip(laid_out, in_order, strict=True):
            true = expected.detach().double()
            size = true.abs().max() if true.numel() else 0.0
            title = f"{name}, or a gradient of it, in another layout"
            allowed = 10 * asked.tolerance * (1 + size)
            yield from asked.compare(title, found.detach(), Interval(true, true), allowed)


def _relaxed_with_gradients(asked: Asked, case: Case, name: str) -> tuple[Tensor, ...]:
    value = getattr(case.dist(), name)((), temperature=0.5, generator=asked.generator())
    leaves = [x for x in case.example.scores.values() if x.requires_grad]
    if not value.requires_grad:
        return (value,)
    weights = torch.randn(value.shape, generator=asked.generator()).to(value.dtype)
    return value, *torch.autograd.grad((value * weights).sum(), leaves, materialize_grads=True)


QUESTIONS: list[Callable[[Asked], Iterator[Wrong]]] = [
    log_partition,
    marginals,
    entropy,
    renyi_entropies,
    expectation,
    best_paths,
    log_prob,
    draws,
    layouts,
]
