"""`bonus_scale="auto"`: a scale chosen by a tournament on what was learned, again and again.

When 16, 32, 64, ... episodes are done, each of `SCALES` plays four times as many episodes, at most
`LONGEST`, from nothing, on `WORLDS` worlds that are drawn from what was counted; the learner goes
on with the scale of the smallest strong regret,

    sum over episodes of [V* - V_k[r^0]]_+ + sum_n [b^n - V_k[r^n]]_+,

V* the certified optimum of the drawn world. Nothing is known of the true one but its counts. A
world has for each pair that was seen a row drawn from the Dirichlet of its counts (the Bayesian
bootstrap) and its mean signals; a pair that was never seen leads to a state that was, and pays
what some pair that was seen pays. Where a world cannot meet the thresholds they are lowered to what
it can. The draws depend on the seed and the number of episodes alone.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.counts import NO_ENDS, all_visits, as_rows
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.engines.families import session
from cmdplab.errors import InputError
from cmdplab.solvers import solve
from cmdplab.types import Array

AUTO = "auto"
SCALES = (1.0, 1e-1, 1e-2, 1e-3, 1e-4)
WORLDS = 3
AHEAD = 4  # times the episodes that were played are played in a tournament
BEGINNING = 1e-3  # the scale before the first tournament
FIRST = 16  # episodes before the first tournament
LONGEST = 1000  # episodes of one player
LARGEST = 1 << 17  # pairs of step, state and action: beyond, a tournament takes minutes
SLACK = 1e-3  # thresholds that a world cannot meet are lowered so far below what it can, over H


class Choice(NamedTuple):
    """The outcome of one tournament."""

    episodes: int  # that were done
    scale: float
    regret: tuple[float, ...]  # of each of `SCALES`, a mean over episodes and worlds

    def words(self) -> str:
        """One line for a person."""
        each = ", ".join(f"{s:g}: {r:.3g}" for s, r in zip(SCALES, self.regret, strict=True))
        return f"bonus_scale {self.scale:g} after {self.episodes:,} episodes (regret {each})"


def due(episodes: int) -> bool:
    """Whether it is time for a tournament: at doublings."""
    return episodes >= FIRST and episodes & (episodes - 1) == 0


class Chooser:
    """The scales of one run: who plays now, and the tournaments that led there."""

    def __init__(
        self, row: Row, task: Callable[[Any], Task], seed: int, trail: Array | None = None
    ) -> None:
        """task : of a setup, which changes as actions turn out to be closed.

        trail : what `arrays` gave, where a run goes on.
        """
        self._row, self._task, self._seed = row, task, seed
        told = () if trail is None else trail.tolist()
        self.choices = [Choice(int(k), scale, tuple(regret)) for k, scale, *regret in told]

    def row(self) -> Row:
        """The row with the scale that was chosen last."""
        scale = self.choices[-1].scale if self.choices else BEGINNING
        return self._row.with_settings(bonus_scale=scale)

    def choose(self, setup: Any, state: Any, episodes: int) -> bool:
        """Hold a tournament if it is time; whether another scale plays from now on."""
        if not due(episodes) or (self.choices and self.choices[-1].episodes >= episodes):
            return False
        told = (state.counts, state.reward_sums, episodes, self._seed, state.ends)
        before = self.row()
        self.choices.append(tournament(self._row, self._task(setup), *told))
        return self.row() != before

    def arrays(self) -> Array:
        """[J, 2 + scales]: episodes, scale and regrets of each tournament."""
        rows = [(each.episodes, each.scale, *each.regret) for each in self.choices]
        return np.array(rows).reshape(-1, 2 + len(SCALES))

    def remarks(self) -> list[str]:
        """What was chosen last, and why; how often it changed."""
        if not self.choices:
            return [f"bonus_scale {BEGINNING:g}: no tournament before {FIRST} episodes."]
        played = [BEGINNING, *(each.scale for each in self.choices)]
        changes = sum(a != b for a, b in pairwise(played))
        return [
            f"{self.choices[-1].words()}; {changes} changes in {len(self.choices)} tournaments."
        ]


def check(row: Row, task: Task) -> None:
    """Refuse what a tournament cannot be held for."""
    if not row.pooled:
        raise InputError(
            f'bonus_scale="auto" needs dynamics="stationary", which {row.name} has not'
        )
    if (pairs := int(np.prod(task.reward.shape[1:]))) > LARGEST:
        raise InputError(
            f'bonus_scale="auto" plays {len(SCALES) * WORLDS} learners on drawn worlds: '
            f"{pairs:,} pairs of step, state and action are more than {LARGEST:,}"
        )


def tournament(
    row: Row,
    task: Task,
    counts: Array,
    sums: Array,
    episodes: int,
    seed: int,
    ends: Array = NO_ENDS,
) -> Choice:
    """The best scale for as many episodes again.

    counts : [1, X, A, X] or rows; sums [1 + N, 1, X, A] of signals; ends [1, X, A], visits without
        a successor.
    """
    total = np.zeros(len(SCALES))
    length = min(AHEAD * episodes, LONGEST)
    for w in range(WORLDS):
        rng = np.random.default_rng((seed, episodes, w))
        world = drawn_world(task, as_rows(counts), sums, rng, ends)
        optimum, world = _solved(world)
        told = task._replace(threshold=world.threshold)
        for i, scale in enumerate(SCALES):
            player = row.with_settings(bonus_scale=scale)
            returns = session("cpu", world, player, told, w).play(length).returns
            total[i] += strong_regret(returns, optimum, world.threshold) / length
    mean = total / WORLDS
    return Choice(episodes, SCALES[int(np.argmin(mean))], tuple(map(float, mean)))


def strong_regret(returns: Array, optimum: float, threshold: Array) -> float:
    """The sum over episodes of what is missing of the optimum and of each threshold."""
    short = np.maximum(np.array([optimum, *threshold]) - returns, 0.0)
    return float(short.sum())


def drawn_world(
    task: Task, rows: Array, sums: Array, rng: np.random.Generator, ends: Array = NO_ENDS
) -> CMDP:
    """A world that what was counted allows: see the module's docstring."""
    _, H, X, A = task.reward.shape
    x, a, y = rows[:, 1:4].astype(np.int64).T
    visits, length = np.zeros((X, A)), np.zeros((X, A), np.int64)
    np.add.at(visits, (x, a), rows[:, 4])
    visits = all_visits(visits[None], ends)[0]
    np.add.at(length, (x, a), 1)
    order = np.argsort(x * A + a, kind="stable")
    begin = np.concatenate([[0], np.cumsum(length.ravel())[:-1]]).reshape(X, A)
    place = np.empty(len(rows), np.int64)
    place[order] = np.arange(len(rows)) - begin[x[order], a[order]]
    successor = np.zeros((X, A, max(int(length.max()), 1)), np.int64)
    probability = np.zeros(successor.shape)
    successor[x, a, place] = y
    probability[x, a, place] = np.maximum(rng.standard_gamma(rows[:, 4]), 1e-12)
    reached, seen = np.unique([*x, *y]), np.argwhere(visits > 0.0)
    reward = sums[:, 0] / np.maximum(visits, 1.0)
    for at in map(tuple, np.argwhere(length == 0)):
        successor[at][0], probability[at][0] = rng.choice(reached), 1.0
    for at in map(tuple, np.argwhere(visits == 0.0)):
        reward[(slice(None), *at)] = reward[(slice(None), *seen[rng.integers(len(seen))])]
    probability /= probability.sum(axis=-1, keepdims=True)
    steps = np.repeat(np.clip(reward, 0.0, 1.0)[:, None], H, axis=1)
    kernel = Sparse(successor, probability)
    return CMDP(kernel, steps, task.threshold, task.start, mask=task.mask, horizon=H)


def _solved(world: CMDP) -> tuple[float, CMDP]:
    """The certified optimum; thresholds are lowered where the world cannot meet them."""
    found = solve(world)
    if found.value is not None:
        return found.value, world
    margin = float(found.slater_gap or 0.0)  # by how much the thresholds are out of reach
    lower = world.threshold + min(margin, 0.0) - SLACK * world.horizon
    world = world.changed(threshold=lower)
    return float(solve(world).value or 0.0), world
