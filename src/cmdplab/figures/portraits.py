"""Portraits of one run: how random its policy is on the way, and its states in the end.

Records hold no policies. The run is played again, in pieces, and its policy is read between them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.primal_dual import PrimalDual
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Feedback
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import family
from cmdplab.errors import InputError
from cmdplab.experiments.play import Entry, OnProgress, Playing, check_counts, play_on
from cmdplab.solvers import Solution, solve_feasible
from cmdplab.theory.soft import entropy
from cmdplab.types import Array

POINTS = 120  # episodes at which a run is looked at


class EntropyCurve(NamedTuple):
    """Entropy and temperature at some episodes k of a run, after the update of episode k."""

    row: Row
    seed: int
    episode: Array  # [T], whole numbers, the last one of the run included
    entropy: Array  # [T], in [0, 1]: see `policy_entropy`
    temperature: Array | None  # [T], tau_k; None for a family that has none: see `no_temperature`


class Portrait(NamedTuple):
    """Occupancies w_h(x, a) of a learned policy and of an optimal one, [H, X, A]."""

    learned: Array
    optimal: Array

    @property
    def distance(self) -> float:
        """Return the total-variation distance of the two: see `total_variation`."""
        return total_variation(self.learned, self.optimal)


def policy_entropy(problem: CMDP, policy: Array) -> float:
    """Return the entropy of a policy [H, X, A] where it goes, between 0 and 1.

    E[ sum_h -sum_a pi_h(a | x_h) ln pi_h(a | x_h) ] / (H ln A), with the states x_h that the policy
    itself visits. 1: uniform in them; 0: deterministic in them.
    """
    most = problem.horizon * math.log(problem.actions)
    if most == 0.0:
        raise InputError(f"{problem.name} has one action: every policy has entropy 0 of at most 0")
    visits = exact.occupancy(problem, policy).sum(axis=-1)
    return float(np.sum(visits * entropy(policy)) / most)


def total_variation(first: Array, second: Array) -> float:
    """Return (1 / 2H) sum_{h,x,a} |w_h(x, a) - w'_h(x, a)| of occupancies [H, X, A]: in [0, 1]."""
    return float(np.abs(first - second).sum() / (2 * len(first)))


def no_temperature(row: Row) -> str:
    """Return the reason why a row has no temperature, as one sentence; empty if it has one."""
    if not isinstance(row, PrimalDual):
        return f"{row.name} has no temperature: only primal-dual rows weigh entropy"
    return ""


def entropy_curve(
    problem: CMDP,
    row: Row,
    episodes: int,
    seed: int = 0,
    points: int = POINTS,
    *,
    rewards: Feedback = "known",
    solution: Solution | None = None,
    on_progress: OnProgress | None = None,
) -> EntropyCurve:
    """Play a run, and read its policy at most `points` times, at log-spaced episodes.

    At episode k the curve has the entropy of the policy after k updates, which episode k + 1 plays,
    and tau_k, the temperature of the last update. Reading changes nothing: the run is that of
    `experiments.run.run`.
    """
    stops = looked_at(episodes, points)
    run = _Watched(problem, row, episodes, seed, rewards, solution, on_progress)
    values = [policy_entropy(problem, run.policy_after(k)) for k in stops]
    k = np.array(stops, dtype=np.float64)
    temperature = None
    if isinstance(row, PrimalDual):
        temperature = row.temperature(k, row.setting(run.task))
    return EntropyCurve(row, seed, k, np.array(values), temperature)


def occupancy_portrait(
    problem: CMDP,
    row: Row,
    episodes: int,
    seed: int = 0,
    *,
    rewards: Feedback = "known",
    solution: Solution | None = None,
    on_progress: OnProgress | None = None,
) -> Portrait:
    """Return the occupancies of the policy after the last episode and of `solve`'s policy.

    There may be other optimal policies: a distance above zero does not mean that a policy is bad.
    """
    optimum = solution if solution is not None else solve_feasible(problem)
    run = _Watched(problem, row, episodes, seed, rewards, optimum, on_progress)
    assert optimum.occupancy is not None
    return Portrait(exact.occupancy(problem, run.policy_after(episodes)), optimum.occupancy)


def looked_at(episodes: int, points: int) -> list[int]:
    """Return at most `points` of the episodes 1, ..., log-spaced, with the first and the last."""
    check_counts(episodes, 0)
    if points < 2:
        raise InputError(f"points is {points}: the first and the last episode make two")
    return [int(k) for k in np.unique(np.rint(np.geomspace(1, episodes, points)))]


class _Watched:
    """A run that is played up to the episodes whose policy is read."""

    def __init__(
        self,
        problem: CMDP,
        row: Row,
        episodes: int,
        seed: int,
        rewards: Feedback,
        solution: Solution | None,
        on_progress: OnProgress | None,
    ) -> None:
        check_counts(episodes, seed)
        entry = Entry.of(problem, row, seed, solution, None, rewards)
        self._playing, self.task = Playing(entry), entry.task
        # Every family's plain learner reads a policy from the state; it need not play for that.
        self._learner = family(row).plain(row, self.task)
        self._on_progress = on_progress

    def policy_after(self, episodes: int) -> Array:
        """Return the policy [H, X, A] after an episode, which must not be played past already."""
        playing = self._playing

        def after() -> None:
            if self._on_progress:
                self._on_progress(playing.standing())

        play_on(playing, episodes, lambda: False, after)
        return self._learner.policy(playing.reached().state)
