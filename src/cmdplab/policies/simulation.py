"""A policy played for many episodes: means of what it earns, each with an interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.checks import checked_episodes, whole_number
from cmdplab.cmdp.memory import Memory
from cmdplab.cmdp.policy import Policy, fitted
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.numerics.noise import uniforms
from cmdplab.statistics.means import Estimate, estimate
from cmdplab.types import Array, Indices

AT_ONCE = 4_000_000  # numbers of a batch: 32 MB


@display.shown
class Simulation(NamedTuple):
    """What a policy earned in so many episodes; intervals are of level 0.95."""

    earned: tuple[Estimate, ...]  # [1 + N], the objective and every utility
    threshold: Array  # [N]
    names: tuple[str, ...]  # [1 + N]
    episodes: int
    seed: int

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [("episodes", f"{self.episodes:,}"), ("seed", str(self.seed))]
        for name, each in zip(self.names, self.earned, strict=True):
            facts.append((name, f"{each.mean:.6g} ({each.low:.6g} to {each.high:.6g})"))
        return "Simulation", [*facts, ("thresholds", display.numbers(self.threshold))]


def simulate(
    problem: CMDP, policy: npt.ArrayLike | Policy, episodes: int, seed: int = 0
) -> Simulation:
    """Play a policy on a problem, and estimate what it earns, with intervals of level 0.95.

    The seed decides every draw: episode k is the same whatever the number of episodes, and two
    policies on one seed share their random numbers. `evaluate` gives the exact numbers.
    """
    checked_episodes(episodes)
    whole_number("seed", seed)
    rows = fitted(problem, policy)
    counter = policy.counter if isinstance(policy, Policy) else None
    if counter is None:
        rows = rows[:, None]
    batch = max(AT_ONCE // (problem.horizon * 2 + _row_length(problem)), 1)
    total, squares = np.zeros(len(problem.reward)), np.zeros(len(problem.reward))
    for done in range(0, episodes, batch):
        drawn = uniforms(seed, done + 1, min(batch, episodes - done), problem.horizon)
        earned = _earned(problem, rows, counter, drawn)
        total += earned.sum(axis=1)
        squares += (earned**2).sum(axis=1)
    bounds = (0.0, float(problem.horizon))
    found = tuple(
        estimate(episodes, float(t), float(s), bounds) for t, s in zip(total, squares, strict=True)
    )
    names = tuple(problem.labels.signal(n).of for n in range(len(problem.reward)))
    return Simulation(found, problem.threshold, names, episodes, seed)


def _earned(problem: CMDP, rows: Array, counter: Memory | None, drawn: Array) -> Array:
    """[1 + N, E]: what each episode earns; rows [H, K, X, A], uniforms [E, H, 2]."""
    levels = np.full(len(drawn), 0 if counter is None else counter.start)
    states = np.full(len(drawn), problem.start)
    earned = np.zeros((len(problem.reward), len(drawn)))
    for h in range(problem.horizon):
        actions = _inverse(rows[h, levels, states], drawn[:, h, 0])
        earned += problem.reward[:, h, states, actions]
        if counter is not None:
            levels = counter.next_levels(h)[levels, states, actions]
        states = _following(problem, h, states, actions, drawn[:, h, 1])
    return earned


def _row_length(problem: CMDP) -> int:
    kernel = problem.transition
    return int(kernel.probability.shape[-1] if isinstance(kernel, Sparse) else problem.states)


def _inverse(rows: Array, uniform: Array) -> Indices:
    """[E]: for each row [E, A] the first a with u < F(a); the last possible one for rounding."""
    below = np.cumsum(rows, axis=-1) <= uniform[:, None]
    last = rows.shape[-1] - 1 - np.argmax(rows[:, ::-1] > 0.0, axis=-1)
    return np.asarray(np.minimum(below.sum(axis=-1), last))


def _following(problem: CMDP, h: int, x: Indices, a: Indices, uniform: Array) -> Indices:
    """[E]: the next states."""
    kernel = problem.transition
    if isinstance(kernel, Sparse):
        chosen = _inverse(kernel.at(h)[x, a], uniform)
        return np.asarray(kernel.successor[x, a, chosen])
    return _inverse(kernel[h, x, a], uniform)
