"""A policy played for many episodes: mean returns, each with an interval."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.checks import checked_episodes, whole_horizon, whole_number
from cmdplab.cmdp.horizons import steps_for
from cmdplab.cmdp.labels import Scale
from cmdplab.cmdp.memory import Memory
from cmdplab.cmdp.policy import Policy, fitted
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.numerics.noise import uniforms
from cmdplab.statistics.intervals import Estimate, estimate
from cmdplab.types import Array, Indices, frozen

AT_ONCE = 4_000_000  # numbers of a batch: 32 MB
LEFT = 1e-3  # the share of the largest discounted sum that a path leaves out
LONG = 1_000  # steps of a path whose rewards are averaged


@display.shown
@frozen
class Simulation(NamedTuple):
    """Mean returns of a policy in so many episodes, with intervals of level 0.95.

    On a stationary problem an episode is a path of `steps` steps. The rest of time adds at most
    `cut` to each return, and the intervals are wider by `cut`.
    """

    earned: tuple[Estimate, ...]  # [1 + N], the objective and every utility
    threshold: Array  # [N]
    names: tuple[str, ...]  # [1 + N]
    episodes: int
    seed: int
    steps: int = 0  # of an episode
    cut: tuple[float, ...] = ()  # [1 + N]; zeros where episodes end by themselves
    units: tuple[Scale, ...] = ()  # [1 + N], of the labels

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [("episodes", f"{self.episodes:,}"), ("seed", str(self.seed))]
        if any(self.cut):
            facts.append(("steps of each", f"{self.steps:,}"))
        for scale, each in zip(self.units or map(Scale, self.names), self.earned, strict=True):
            low, high = sorted((scale.published(each.low), scale.published(each.high)))
            facts.append((scale.of, f"{scale.published(each.mean):.6g} ({low:.6g} to {high:.6g})"))
        return "Simulation", [*facts, ("thresholds", display.numbers(self.threshold))]


def simulate(
    problem: CMDP | StationaryCMDP,
    policy: npt.ArrayLike | Policy,
    episodes: int,
    seed: int = 0,
    steps: int | None = None,
) -> Simulation:
    """Play a policy on a problem, and estimate its returns, with intervals of level 0.95.

    The seed decides every draw: episode k is the same whatever the number of episodes, and two
    policies on one seed share their random numbers. `evaluate` gives the exact numbers.

    steps : T, the length of each path of a problem without an end. The default leaves a thousandth
    of the largest discounted sum, and is 1,000 if rewards are averaged. The rest is bounded by
    gamma^T / (1 - gamma) times the largest reward, or by the span of the policy's biases over T.
    """
    checked_episodes(episodes)
    whole_number("seed", seed)
    rows = fitted(problem, policy)
    counter = policy.counter if isinstance(policy, Policy) else None
    T = _steps(problem, steps)
    weights, cut = np.ones(T), np.zeros(len(problem.reward))
    low, high = np.zeros(len(cut)), np.full(len(cut), float(T))
    if isinstance(problem, StationaryCMDP):
        if counter is not None:
            raise InputError("a policy with a counter is for a problem with a horizon")
        weights, cut = _unending(problem, rows, T)
        low, high = problem.reward.min(axis=(1, 2)), problem.reward.max(axis=(1, 2))
        low, high = weights.sum() * low, weights.sum() * high
    if counter is None:
        rows = rows[..., None, :, :]
    kernel = problem.transition
    length = kernel.probability.shape[-1] if isinstance(kernel, Sparse) else problem.states
    batch = max(AT_ONCE // (T * 2 + length), 1)
    total, squares = np.zeros(len(cut)), np.zeros(len(cut))
    for done in range(0, episodes, batch):
        drawn = uniforms(seed, done + 1, min(batch, episodes - done), T + (rows.ndim == 3))
        earned = _earned(problem, rows, counter, drawn, weights)
        total += earned.sum(axis=1)
        squares += (earned**2).sum(axis=1)
    sums = (each.tolist() for each in (total, squares, low, high, cut))
    found = tuple(
        (each := estimate(episodes, t, s, (a, b)))._replace(low=each.low - c, high=each.high + c)
        for t, s, a, b, c in zip(*sums, strict=True)
    )
    names, left = tuple(each.of for each in problem.units), tuple(cut.tolist())
    return Simulation(found, problem.threshold, names, episodes, seed, T, left, problem.units)


def _steps(problem: CMDP | StationaryCMDP, steps: int | None) -> int:
    if isinstance(problem, CMDP):
        if steps not in (None, problem.horizon):
            raise InputError(
                f"an episode of {problem.name} has {problem.horizon} steps, not {steps}"
            )
        return problem.horizon
    if steps is not None:
        return whole_horizon(steps)
    if isinstance(problem.criterion, Discounted) and problem.criterion.discount > 0.0:
        gamma = problem.criterion.discount
        return steps_for(gamma, LEFT / (1.0 - gamma))
    return 1 if isinstance(problem.criterion, Discounted) else LONG


def _unending(problem: StationaryCMDP, policy: Array, T: int) -> tuple[Array, Array]:
    """Return weights [T] of the steps of a path, and bounds [1 + N] on the error of ending at T."""
    if isinstance(problem.criterion, Discounted):
        gamma = problem.criterion.discount
        largest = np.abs(problem.reward).max(axis=(1, 2))
        return np.asarray(gamma ** np.arange(T)), largest * gamma**T / (1.0 - gamma)
    from cmdplab.cmdp.exact_stationary import gains_and_biases

    # E of the average over T steps is g + (h(x_0) - E h(x_T)) / T.
    _, biases = gains_and_biases(problem, policy)
    return np.full(T, 1.0 / T), (biases.max(axis=0) - biases.min(axis=0)) / T


def _earned(
    problem: CMDP | StationaryCMDP,
    rows: Array,
    counter: Memory | None,
    drawn: Array,
    weights: Array,
) -> Array:
    """Return the earnings of each episode, [1 + N, E]; rows [(H,) K, X, A], uniforms [E, T, 2]."""
    ends = isinstance(problem, CMDP)
    levels = np.full(len(drawn), 0 if counter is None else counter.start)
    states = np.full(len(drawn), problem.start if ends else 0)
    if not ends:  # a path without an end has one pair of uniforms more, for its first state
        first = np.broadcast_to(problem.start, (len(drawn), problem.states))
        states = _inverse(first, drawn[:, -1, 0])
    earned = np.zeros((len(problem.reward), len(drawn)))
    for h, weight in enumerate(weights.tolist()):
        row = rows[h] if ends else rows
        reward = problem.reward[:, h] if ends else problem.reward
        actions = _inverse(row[levels, states], drawn[:, h, 0])
        earned += weight * reward[:, states, actions]
        if counter is not None:
            levels = counter.next_levels(h)[levels, states, actions]
        states = _following(problem, h, states, actions, drawn[:, h, 1])
    return earned


def _inverse(rows: Array, uniform: Array) -> Indices:
    """Return for each row [E, A] the first a with u < F(a), or the last possible one."""
    below = np.cumsum(rows, axis=-1) <= uniform[:, None]
    last = rows.shape[-1] - 1 - np.argmax(rows[:, ::-1] > 0.0, axis=-1)
    return np.asarray(np.minimum(below.sum(axis=-1), last))


def _following(
    problem: CMDP | StationaryCMDP, h: int, x: Indices, a: Indices, uniform: Array
) -> Indices:
    """Draw the next states [E] at step h from states x, actions a and uniform numbers, all [E]."""
    kernel = problem.transition
    if isinstance(kernel, Sparse):
        chosen = _inverse(kernel.at(h)[x, a], uniform)
        return np.asarray(kernel.successor[x, a, chosen])
    table = kernel[h] if isinstance(problem, CMDP) else kernel
    return _inverse(table[x, a], uniform)
