"""A learner inside a coin, in plain Python: the oracle of the compiled one.

Bounds are one backward loop over the worst rows of a box, with nothing of the compiled sweeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmdplab.algorithms import equations as eq
from cmdplab.algorithms.counts import NO_ENDS
from cmdplab.algorithms.families.safe import (
    Safe,
    SafeFields,
    behaviour,
    coin_share,
    joined,
    parted,
    utility_width,
    visits_of_width,
)
from cmdplab.algorithms.learner import Episode, Learner
from cmdplab.algorithms.running.boxes import box_ends, box_half
from cmdplab.algorithms.task import Task
from cmdplab.engines.host import HostSession
from cmdplab.numerics.noise import coin_uniforms
from cmdplab.solvers import Box
from cmdplab.solvers.robust import worst_rows
from cmdplab.types import Array
from oracles.learner import counted, summed


@dataclass(frozen=True)
class PlainSafe:
    """The learner of one wrapper and one task; `inside` is the plain learner within."""

    row: Safe
    task: Task
    inside: Learner

    def init(self) -> Any:
        """Before the first episode: the coin of a candidate of which nothing is known."""
        _, _, X, A = self.task.reward.shape
        visited = np.zeros((self.row.layers(self.task), X, A, X))
        return self.prepare(SafeFields.first(self.task, visited), self.inside.init())

    def policy(self, state: Any) -> Array:
        """[H, X, A], the policy of the mixture that is played next."""
        return behaviour(self.task, state)

    def observe(self, state: Any, episode: Episode) -> Any:
        """Count one episode, whoever played it, let the learner learn, and set the next coin."""
        own, inside = parted(self.row, state)
        visited, _ = counted(own.visited, NO_ENDS, episode, 1.0)
        utilities = None if episode.rewards is None else episode.rewards[1:]
        told = episode._replace(rewards=utilities)
        own = own._replace(
            visited=visited,
            utility_sums=summed(self.task, own.utility_sums, told),
            given_to_baseline=own.given_to_baseline + own.on_baseline,
            baseline_episodes=own.baseline_episodes + episode.by_baseline,
            episode=own.episode + 1,
        )
        if not (episode.by_baseline and self.row.own_episodes_only):
            inside = self.inside.observe(inside, episode._replace(by_baseline=False))
        return self.prepare(own, inside)

    def prepare(self, own: SafeFields, inside: Any) -> Any:
        """The candidate, its bounds and its coin."""
        candidate = self.inside.policy(inside)
        bound = self.bounds(own, candidate)
        assert self.task.baseline is not None
        lam, safe = 0.0, self.task.baseline.returns[1:]
        for w, b, b_0 in zip(bound, self.task.threshold, safe, strict=True):
            lam = coin_share(lam, float(w), float(b), float(b_0))
        told = np.array(inside.multiplier)
        own = own._replace(candidate=candidate, bound=bound, multiplier=told, on_baseline=lam)
        return joined(own, inside)

    def bounds(self, own: SafeFields, policy: Array) -> Array:
        """[N]: the least that a policy earns of each utility on a kernel of the box."""
        box, utility = self.box(own.visited), self.utilities(own)
        found = np.zeros(len(utility))
        for n, reward in enumerate(utility):
            value = np.zeros(policy.shape[1])
            for h in reversed(range(len(policy))):
                q = reward[h] + worst_rows(box, h, value) @ value
                value = np.sum(policy[h] * q, axis=-1)
            found[n] = value[self.task.start]
        return found

    def box(self, visited: Array) -> Box:
        """The kernels that the visits [L, X, A, X] leave possible, as [H, X, A, X]."""
        n, (_, H, X, A) = self.row.numbers(self.task), self.task.reward.shape
        lower, upper = np.zeros((H, X, A, X)), np.zeros((H, X, A, X))
        for h, x, a in np.ndindex(H, X, A):
            row = visited[min(h, len(visited) - 1), x, a]
            visits = float(row.sum())
            phi = eq.confidence_radius(visits_of_width(visits), 0.0, n.log, np.inf)
            for y in range(X):
                p = float(row[y]) / visits if visits else 1.0 / X
                width = eq.interval_width(p, phi, n.flat, n.dev, n.tail)
                half = box_half(1.0, eq.scaled_width(width, n.margin_scale, n.cap), visits)
                lower[h, x, a, y], upper[h, x, a, y] = box_ends(p, half, 1.0)
        return Box(lower, upper, self.task.mask)

    def utilities(self, own: SafeFields) -> Array:
        """[N, H, X, A]: what is known, or the lower ends of what was observed."""
        n, utility = self.row.numbers(self.task), self.task.reward[1:].copy()
        visits = own.visited.sum(axis=-1)
        for i, h, x, a in np.ndindex(*utility.shape if len(own.utility_sums) else (0,) * 4):
            layer = min(h, len(visits) - 1)
            seen = float(visits[layer, x, a])
            width = utility_width(seen, n.log, n.margin_scale)
            total = float(own.utility_sums[i, layer, x, a])
            utility[i, h, x, a] = eq.reward_estimate(total, seen, -width)
        return utility


class SafeHostSession(HostSession):
    """A run on the host engine whose episodes are played by one of two policies, by a coin."""

    def _tossed(self, policy: Array) -> tuple[Array, bool]:
        state, baseline = self._state, self._task.baseline
        assert baseline is not None
        coin = coin_uniforms(self._seed, state.episode + 1, 1)[0]
        safe = bool(coin < state.on_baseline)  # type: ignore[attr-defined]
        return (baseline.policy if safe else state.candidate), safe  # type: ignore[attr-defined]
