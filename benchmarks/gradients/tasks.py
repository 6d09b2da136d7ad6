"""One gradient to estimate: a structure, a reward and the truth, and estimates of it."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from benchmarks.gradients.problems import Problem, random_problem
from benchmarks.gradients.quality import Quality, quality_of
from benchmarks.gradients.rewards import FUNCTIONS, Reward
from benchmarks.gradients.truth import Truth, estimates, find_truth
from structdist.estimators import AdaptiveStep, Estimator, estimator

EVENT_NUMBERS_AT_A_TIME = 4_000_000  # of all draws together, to bound memory
LESSONS, LESSON_CHAINS = 100, 4  # from which an adaptive step learns before it is assessed


@dataclass(frozen=True)
class Task:
    function: str
    problem: Problem
    reward: Reward
    truth: Truth
    generator: torch.Generator

    @property
    def length(self) -> int:
        return self.problem.event_shape[0]

    def estimator(self, name: str, calls: int, temperature: float | None = None) -> Estimator:
        """One that calls the reward so many times, and has learnt what it learns."""
        chosen = estimator(name, num_samples=calls)
        spare = calls - self.count_calls(chosen)
        changes = {"num_samples": calls + spare} if spare else {}
        if temperature is not None:
            changes["temperature"] = temperature
        if name == "reinforce-c":
            changes["constant"] = self.truth.mean_reward
        chosen = replace(chosen, **changes)
        if isinstance(getattr(chosen, "step", None), AdaptiveStep):
            for _ in range(LESSONS):
                self.estimates(chosen, LESSON_CHAINS)
        return chosen

    def count_calls(self, chosen: Estimator) -> int:
        """How many events of one structure the reward is given for an estimate."""
        counts = []

        def counting(events: Tensor) -> Tensor:
            counts.append(len(events))
            return self.reward(events)

        leaves = self.problem.copies(1, torch.float32, self.generator.device)
        chosen.estimate(self.problem.distribution(leaves), counting, generator=self.generator)
        return sum(counts)

    def estimates(self, chosen: Estimator, runs: int) -> Tensor:
        """[N, D]: gradients of independent runs."""
        return estimates(chosen, self.problem, self.reward, runs, self.generator)[0]

    def assess(self, chosen: Estimator, calls: int, runs: int) -> Quality:
        at_a_time = max(EVENT_NUMBERS_AT_A_TIME // (calls * self.problem.event_shape.numel()), 1)
        parts = [
            self.estimates(chosen, min(at_a_time, runs - done))
            for done in range(0, runs, at_a_time)
        ]
        return quality_of(torch.cat(parts), self.truth)


def make_task(
    structure: str, function: str, length: int, states: int, seed: int, device: torch.device
) -> Task:
    """Random scores, random weights of the reward, and random draws, all of one seed."""
    seeds = torch.Generator().manual_seed(seed)
    problem = random_problem(structure, length, states, seeds)
    reward = FUNCTIONS[function].random(problem.event_shape, seeds)
    generator = torch.Generator(device).manual_seed(seed)
    return Task(function, problem, reward, find_truth(problem, reward, generator), generator)
