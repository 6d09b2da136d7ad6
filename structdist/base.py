"""`StructuredDistribution`: what all structures share, written in terms of a problem's parts.

A structure adds its parameters (`Parameters`), the two forms of its outcomes (events and integer
paths) and what has names of its own. Shapes, caching, validation, inference, draws and divergences
are here. The dynamic programs are in `structdist.ops`.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor
from torch.distributions import Distribution, constraints, register_kl

from structdist import divergences, ops
from structdist.checks import require_bool, require_integers, require_sample_shape
from structdist.relaxation import (
    given_or_drawn,
    require_temperature,
    straight_through,
    uniform_noise,
)
from structdist.relaxed import Relaxed, StraightThrough

Self = TypeVar("Self", bound="StructuredDistribution")
ParametersType = TypeVar("ParametersType", bound="Parameters")


class TopK(NamedTuple):
    """The best paths, by `topk`."""

    paths: Tensor  #: `[k, *B, T]`, best first
    log_probs: Tensor  #: `[k, *B]`, -inf where there are fewer than k paths


class PathsWithLogProb(NamedTuple):
    """Exact draws, by `sample_with_log_prob`."""

    paths: Tensor  #: `[*S, *B, T]`
    log_prob: Tensor  #: `[*S, *B]`, with a gradient


class RelaxedWithPaths(NamedTuple):
    """Relaxed draws, by `rsample_with_paths`."""

    value: Tensor  #: `[*S, *B, *event_shape]`, with a gradient
    paths: Tensor  #: `[*S, *B, T]`: the hard choices


class Parameters(Protocol):
    """What a distribution is made of, with one batch shape, dtype and device."""

    @property
    def batch_shape(self) -> torch.Size: ...

    @property
    def event_shape(self) -> torch.Size: ...

    @property
    def lengths(self) -> Tensor:
        """[*B]: integers."""

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of all answers."""

    @property
    def device(self) -> torch.device: ...

    @property
    def is_meta(self) -> bool:
        """Are there no numbers to look at?"""

    def expand(self: ParametersType, batch_shape: torch.Size) -> ParametersType:
        """The same over a larger batch."""

    def restrict(self: ParametersType, allowed: Tensor) -> ParametersType:
        """The same with every outcome forbidden that a bool mask [*B, *event_shape] forbids."""

    def shift(self: ParametersType, values: Tensor) -> ParametersType:
        """The same with values [*B, *event_shape] added to the scores of an event's entries."""

    def allowed_by(self, observed: Tensor, validate: bool) -> Tensor:
        """The mask [*B, *event_shape] that partial observations leave."""

    def flatten(self) -> ops.Problem:
        """The problem that kernels are given, over one batch dimension."""

    def versions(self) -> tuple[int, ...]:
        """Numbers that change whenever a parameter is changed in place."""

    def require_allowed_values(self) -> None:
        """Raise a ValueError that names the argument where numbers cannot be right."""

    def first_forbidden(self, index: tuple[int, ...], path: Tensor) -> str:
        """What forbids a path [T] of the structure at a batch index, in words."""


class _Known(NamedTuple):
    """The forward pass of an object, and what must not have changed since."""

    forward: ops.Forward | None
    versions: tuple[int, ...]
    backend: ops.AnyBackend | None
    inference: bool


class StructuredDistribution(Distribution):
    """A distribution over structured outcomes, in proportion to the exp of an additive score.

    Its forward pass runs once and is shared by all answers, until a parameter is changed in place
    (a change through `x.data` cannot be seen: make a new object after one).

    Example:
        What is written for this class works for every structure:

        >>> import torch
        >>> from structdist import LinearChainCRF, SemiMarkovCRF, StructuredDistribution
        >>> def num_outcomes(dist: StructuredDistribution) -> int:
        ...     return round(dist.renyi_entropy(0).exp().item())
        >>> scores, moves = torch.zeros(4, 3), torch.zeros(3, 3)
        >>> num_outcomes(LinearChainCRF(scores, moves))  # 3^4
        81
        >>> num_outcomes(SemiMarkovCRF(scores, moves, durations=torch.zeros(2, 3)))
        171
    """

    has_rsample = True

    _parameters: Any  # Parameters of the structure
    _known: _Known | None = None
    _event_part = 0  # which tensor of scores has the shape of events

    def __init__(self, parameters: Parameters, validate_args: bool | None) -> None:
        self._adopt(parameters, validate_args)
        if self._validating:
            parameters.require_allowed_values()

    def _adopt(self, parameters: Parameters, validate_args: bool | None) -> None:
        self._parameters, self._known = parameters, None
        self._batch_shape, self._event_shape = parameters.batch_shape, parameters.event_shape
        if validate_args is not None:
            self._validate_args = validate_args  # else torch's default stands on the class

    # What a structure says of itself ---------------------------------------------------------

    @abstractmethod
    def _read(self, value: Tensor) -> Tensor:
        """Paths [*S, *B, T] from a value of any form, checked as far as validation asks."""

    @property
    @abstractmethod
    def relaxed_support(self) -> constraints.Constraint:
        """Where relaxed draws lie."""

    @property
    def noise_shape(self) -> torch.Size:
        """The shape of the Gumbel noise of one draw by `rsample`."""
        return self.event_shape

    @property
    def _choice_sizes(self) -> tuple[int, ...]:
        """How many options each choice has that `rsample` makes at a step, in the noise's order."""
        return (self.noise_shape[-1],)

    def _hard_choices(self, paths: Tensor) -> Tensor:
        """One-hot `[*S, *B, *noise_shape]`: what a draw of paths `[*S, *B, T]` chose, and where."""
        return self._events(paths)

    @abstractmethod
    def _events(self, paths: Tensor) -> Tensor:
        """Events [*S, *B, *event_shape] from integer paths [*S, *B, T], which are right."""

    def event_of(self, paths: Tensor) -> Tensor:
        """Events `[*S, *B, *event_shape]` from integer paths `[*S, *B, T]`."""
        return self._events(paths)

    def __repr__(self) -> str:
        shapes = f"batch_shape={tuple(self.batch_shape)}, event_shape={tuple(self.event_shape)}"
        return f"{type(self).__name__}({shapes})"

    # Making the like of an instance ----------------------------------------------------------

    def _like(self: Self, parameters: Parameters, instance: Self | None = None) -> Self:
        """An object of this one's class, with all it carries but for its parameters."""
        if instance is None:
            instance = type(self).__new__(type(self))
            instance.__dict__.update(self.__getstate__())
        instance._adopt(parameters, self._validate_args)
        return instance

    def __getstate__(self) -> dict[str, Any]:
        """For copies and pickles: all but the forward pass, which is made again."""
        return {name: x for name, x in self.__dict__.items() if name != "_known"}

    def expand(self: Self, batch_shape: Sequence[int], _instance: Self | None = None) -> Self:
        return self._like(self._parameters.expand(torch.Size(batch_shape)), _instance)

    def condition(self: Self, observed: Tensor) -> Self:
        """Given some labels: integers `[*B, T]`, -1 where unknown.

        Their own log probability is `log_evidence(observed)`.
        """
        require_integers("observed", observed)
        observed = self._broadcast("observed", observed, self.event_shape[:1])
        return self.restrict(self._parameters.allowed_by(observed, self._validating))

    def log_evidence(self, observed: Tensor) -> Tensor:
        """`[*B]`: the log probability of some labels: integers `[*B, T]`, -1 where unknown.

        It adds up all paths that have them: 0 if nothing is known, and -inf if there is no such
        path. With all labels known it is `log_prob`.
        """
        return self._log_evidence(self.condition(observed))

    def _log_evidence(self: Self, given: Self) -> Tensor:
        """`[*B]`, of what `given` was conditioned on."""
        given = given._like(given._parameters)
        given._validate_args = False  # to have no path is a probability of 0, not an error
        return given.log_partition - self.log_partition

    def restrict(self: Self, allowed: Tensor) -> Self:
        """Within a bool mask of what is allowed, `[*B, *event_shape]`."""
        require_bool("allowed", allowed)
        allowed = self._broadcast("allowed", allowed, self.event_shape)
        batch_shape = allowed.shape[: allowed.dim() - len(self.event_shape)]
        larger = self if batch_shape == self.batch_shape else self.expand(batch_shape)
        return larger._like(larger._parameters.restrict(allowed))

    def _shifted(self: Self, values: Tensor) -> Self:
        """Over `[*S, *B]`, with values `[*S, *B, *event_shape]` added to the scores.

        The score of an outcome grows by the sum of the values where its event has ones.
        """
        larger = self.expand(values.shape[: values.dim() - len(self.event_shape)])
        return larger._like(larger._parameters.shift(values))

    def relaxed(self, temperature: float | Tensor = 1.0) -> Relaxed:
        """The Gumbel-FFBS relaxation, as a distribution that carries its temperature."""
        return Relaxed(self, temperature)

    def straight_through(self, temperature: float | Tensor = 1.0) -> StraightThrough:
        """The same distribution, with an `rsample` that stays in the support."""
        return StraightThrough(self, temperature)

    # Shapes and validation -------------------------------------------------------------------

    @property
    def lengths(self) -> Tensor:
        """`[*B]`: what stands beyond never matters."""
        lengths: Tensor = self._parameters.lengths
        return lengths

    @property
    def _validating(self) -> bool:
        """Are values to be looked at? (Inside a transform, or on no device, they cannot be.)"""
        if not self._validate_args:
            return False
        return not (self._parameters.is_meta or ops.numbers_are_hidden())

    def _broadcast(self, name: str, x: Tensor, event_shape: torch.Size) -> Tensor:
        """An argument over the batch, after a check of its event shape."""
        lead = max(x.dim() - len(event_shape), 0)
        if x.shape[lead:] != event_shape:
            raise ValueError(f"{name} must end in {tuple(event_shape)}, got {tuple(x.shape)}")
        return x.expand(self._broadcast_batch(name, x.shape[:lead]) + event_shape)

    def _broadcast_batch(self, name: str, shape: torch.Size) -> torch.Size:
        """The batch shape of this distribution and of an argument together."""
        if shape == self.batch_shape:  # as a rule; to broadcast takes torch some time
            return shape
        try:
            return torch.broadcast_shapes(shape, self.batch_shape)
        except RuntimeError:
            raise ValueError(
                f"{name} has sample and batch shape {tuple(shape)}, which does not broadcast with "
                f"the batch shape {tuple(self.batch_shape)}"
            ) from None

    def _per_structure(self, x: Tensor) -> Tensor:
        """[N, ...] as [*B, ...]."""
        return x if len(self.batch_shape) == 1 else x.view(self.batch_shape + x.shape[1:])

    # The forward pass ------------------------------------------------------------------------

    def _problem(self) -> ops.Problem:
        problem: ops.Problem = self._parameters.flatten()
        return problem

    def _forward(self, problem: ops.Problem) -> ops.Forward | None:
        """The forward pass: run once, then shared. None where the reference is to answer."""
        if ops.transforming():
            return None
        compiling = torch.compiler.is_compiling()
        inference = not compiling and torch.is_inference_mode_enabled()
        versions = () if compiling else self._parameters.versions()
        backend, known = ops.backend_for(problem), self._known
        fits = known is not None and known.backend is backend and known.versions == versions
        if known is None or not fits or (known.inference and not inference):
            forward = ops.forward_by(backend, problem)
            if forward is None or forward.has_impossible is not False:
                self._require_possible(problem, forward)
            self._known = known = _Known(forward, versions, backend, inference)
        return known.forward

    def _require_possible(self, problem: ops.Problem, forward: ops.Forward | None) -> None:
        if self._validating:
            with torch.no_grad():
                log_weight = ops.log_partition(problem, forward, exact=True)
            self._require_weight(log_weight)

    def _require_weight(self, log_weight: Tensor) -> None:
        """Raise where the log weight [N] of all paths, or of the best, says that there is none."""
        if self._validating:
            impossible = (log_weight == -torch.inf).view(self.batch_shape)
            if impossible.any():
                index = tuple(impossible.nonzero()[0].tolist())
                raise ValueError(
                    f"the chain at batch index {index} has no allowed path: "
                    f"{self._what_forbids} forbid every one"
                )

    _what_forbids = "its scores"

    # Inference -------------------------------------------------------------------------------

    @property
    def log_partition(self) -> Tensor:
        """`[*B]`: log of the sum of exp(score) over all paths."""
        problem = self._problem()
        return self._per_structure(ops.log_partition(problem, self._forward(problem)))

    @property
    def marginals(self) -> Tensor:
        """`[*B, *event_shape]`: the mean event, the probability of each entry to be one."""
        return self._marginals(self._event_part)

    def _marginals(self, part: int) -> Tensor:
        problem = self._problem()
        return self._per_structure(ops.marginals(problem, self._forward(problem), part))

    @property
    def mean(self) -> Tensor:
        """`[*B, *event_shape]`: the same as `marginals`."""
        return self.marginals

    @property
    def variance(self) -> Tensor:
        """`[*B, *event_shape]`: of each entry of an event."""
        mean = self.marginals
        return mean * (1 - mean)

    @property
    def argmax(self) -> Tensor:
        """`[*B, T]`: the best path (Viterbi). A property, like `mode` and `mean`."""
        best = ops.viterbi(self._problem())
        self._require_weight(best.score)
        return self._per_structure(best.path)

    @property
    def mode(self) -> Tensor:
        """`[*B, *event_shape]`: the best event."""
        return self._events(self.argmax)

    def topk(self, k: int) -> TopK:
        """The `k` best paths, best first."""
        if isinstance(k, bool) or not isinstance(k, int) or k < 0:
            raise ValueError(f"k must be a non-negative integer, got {k!r}")
        problem = self._problem()
        forward = self._forward(problem)
        found = ops.k_best(problem, max(k, 1))
        log_probs = ops.log_prob(problem, forward, found.paths)
        log_probs = torch.where(found.scores == -torch.inf, -torch.inf, log_probs)[:k]
        paths = found.paths[:k].view(k, *self.batch_shape, *found.paths.shape[2:])
        return TopK(paths, log_probs.view(k, *self.batch_shape))

    def log_prob(self, value: Tensor, *, strict: bool = False) -> Tensor:
        """`[*S, *B]`, of events `[*S, *B, *event_shape]` or integer paths `[*S, *B, T]`.

        Values beyond the length do not matter. No gradient flows to the value. What is forbidden
        has log probability -inf or, if `strict`, is an error that names the first such step.
        """
        paths = self._read(value)
        shape = self._broadcast_batch("value", paths.shape[:-1])
        num_samples = len(shape) - len(self.batch_shape)
        if shape[num_samples:] != self.batch_shape:  # dimensions of size 1 broadcast as well
            return self.expand(shape[num_samples:]).log_prob(value, strict=strict)
        log_probs = self._log_prob(paths.expand(*shape, -1))
        if strict and not (self._parameters.is_meta or ops.numbers_are_hidden()):
            self._require_allowed(paths.expand(*shape, -1), log_probs)
        return log_probs

    def _log_prob(self, paths: Tensor) -> Tensor:
        """[*S, *B], of paths [*S, *B, T]."""
        shape, num_steps, batch_size = paths.shape[:-1], paths.shape[-1], self.batch_shape.numel()
        samples = shape[: len(shape) - len(self.batch_shape)].numel()
        problem = self._problem()
        flat = paths.reshape(samples, batch_size, num_steps)
        return ops.log_prob(problem, self._forward(problem), flat).view(shape)

    def _require_allowed(self, paths: Tensor, log_probs: Tensor) -> None:
        forbidden = log_probs == -torch.inf
        if forbidden.any():
            index = tuple(forbidden.nonzero()[0].tolist())
            batch_index = index[len(index) - len(self.batch_shape) :]
            reason = self._parameters.first_forbidden(batch_index, paths[index])
            raise ValueError(f"value has probability 0 at batch index {batch_index}: {reason}")

    def entropy(self) -> Tensor:
        """`[*B]`: in nats, by the entropy semiring."""
        problem = self._problem()
        return self._per_structure(ops.entropy(problem, self._forward(problem)))

    def cross_entropy(self: Self, other: Self) -> Tensor:
        """`[*B]`: -E_self[log other]; inf where `other` forbids what `self` allows."""
        return divergences.cross_entropy(self, other)

    def renyi_entropy(self, order: float) -> Tensor:
        """`[*B]`: 0 is the log number of allowed paths, 1 the entropy, inf that of the mode."""
        return divergences.renyi_entropy(self, order)

    def _expectation(self, values: Sequence[Tensor | None]) -> Tensor:
        """[*B], of values on parts in the form of the problem's scores."""
        problem = self._problem()
        return self._per_structure(ops.expectation(problem, self._forward(problem), values))

    # Draws -----------------------------------------------------------------------------------

    def sample_paths(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator | None = None
    ) -> Tensor:
        """`[*S, *B, T]`: exact, independent draws (forward filtering, backward sampling)."""
        sample_shape = require_sample_shape(sample_shape)
        with torch.no_grad():
            problem = self._problem()
            forward = self._forward(problem)
            size = (sample_shape.numel(), self.batch_shape.numel(), self.event_shape[0])
            uniform = uniform_noise(size, self._parameters.device, generator)
            paths = ops.sample_paths(problem, forward, uniform)
        return paths.view(sample_shape + self.batch_shape + paths.shape[2:])

    def sample(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator | None = None
    ) -> Tensor:
        """`[*S, *B, *event_shape]`: exact, independent draws as events."""
        return self._events(self.sample_paths(sample_shape, generator=generator))

    def sample_with_log_prob(
        self, sample_shape: Sequence[int] = (), *, generator: torch.Generator | None = None
    ) -> PathsWithLogProb:
        """Exact draws `[*S, *B, T]`, and their log probabilities `[*S, *B]`, with gradients."""
        paths = self.sample_paths(sample_shape, generator=generator)
        return PathsWithLogProb(paths, self._log_prob(paths))

    def rsample(
        self,
        sample_shape: Sequence[int] = (),
        *,
        temperature: float | Tensor = 1.0,
        straight_through: bool = False,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """`[*S, *B, *event_shape]`: Gumbel-FFBS, Algorithm 2 of Fu et al. (2020).

        The hard choices are exact draws at every temperature; the temperature only softens the
        relaxation. It may be a tensor that broadcasts to `[*S, *B]`, and gets a gradient. With
        `straight_through` the value is the hard draw, and the gradient is the relaxation's.
        `noise` is the standard Gumbel noise `[*S, *B, *noise_shape]`, if not to be drawn here.
        """
        draw, shape = self._gumbel_ffbs(sample_shape, temperature, generator, noise)
        return self._present(draw, shape, straight_through)

    def rsample_with_paths(
        self,
        sample_shape: Sequence[int] = (),
        *,
        temperature: float | Tensor = 1.0,
        straight_through: bool = False,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> RelaxedWithPaths:
        """What `rsample` gives, and the hard choices `[*S, *B, T]` behind it."""
        draw, shape = self._gumbel_ffbs(sample_shape, temperature, generator, noise)
        paths = draw.path.view(shape + draw.path.shape[2:])
        return RelaxedWithPaths(self._present(draw, shape, straight_through), paths)

    @abstractmethod
    def perturb_and_map(
        self,
        sample_shape: Sequence[int] = (),
        *,
        temperature: float | Tensor = 1.0,
        straight_through: bool = False,
        generator: torch.Generator | None = None,
        noise: Tensor | None = None,
    ) -> Tensor:
        """`[*S, *B, *event_shape]`: best paths under local Gumbel noise, relaxed like `rsample`."""

    def _gumbel_ffbs(
        self,
        sample_shape: Sequence[int],
        temperature: float | Tensor,
        generator: torch.Generator | None,
        noise: Tensor | None,
    ) -> tuple[ops.Draw, torch.Size]:
        """A draw over [S, N], and the shape [*S, *B] that it is to have."""
        sample_shape = require_sample_shape(sample_shape)
        shape = sample_shape + self.batch_shape
        copies = sample_shape.numel(), self.batch_shape.numel()
        temperature = require_temperature(temperature, shape, copies, self._validating)
        noise = given_or_drawn(noise, shape + self.noise_shape, self._parameters, generator)
        problem, noise = self._problem(), noise.reshape(*copies, *self.noise_shape)
        return ops.gumbel_ffbs(problem, self._forward(problem), noise, temperature), shape

    def _present(self, draw: ops.Draw, shape: torch.Size, hard: bool) -> Tensor:
        """A kernel's draw over [S, N] in the shape of samples, `shape` being [*S, *B]."""
        if not hard:
            return self._events_of(draw, None).view(shape + self.event_shape)
        paths = draw.path.view(shape + draw.path.shape[2:])
        return self._events_of(draw, self._events(paths))

    def _events_of(self, draw: ops.Draw, hard: Tensor | None) -> Tensor:
        """[S, N, *event_shape]: the relaxed events of a draw; or hard ones, with their gradient."""
        return draw.soft if hard is None else straight_through(hard, draw.soft)


Outcomes = StructuredDistribution | StraightThrough


@register_kl(StructuredDistribution, StructuredDistribution)
@register_kl(StructuredDistribution, StraightThrough)
@register_kl(StraightThrough, StructuredDistribution)
@register_kl(StraightThrough, StraightThrough)
def _kl(p: Outcomes, q: Outcomes) -> Tensor:
    return divergences.kl(*(d.base if isinstance(d, StraightThrough) else d for d in (p, q)))
