"""UCBVI and UCRL2 in plain Python: as one reads them, and the oracle of the compiled ones."""

from __future__ import annotations

import math

import numpy as np

from cmdplab.algorithms.counts import NO_ENDS
from cmdplab.algorithms.families import unconstrained as formulas
from cmdplab.algorithms.families.planner import asks_for_plan
from cmdplab.algorithms.families.unconstrained import Optimist, OptimistNumbers, OptimistState
from cmdplab.algorithms.learner import Episode
from cmdplab.types import Array, Indices
from oracles.learner import PlainLearner, counted


class PlainOptimist(PlainLearner[Optimist, OptimistNumbers]):
    """The learner of one row and one task."""

    def init(self) -> OptimistState:
        """Before the first episode."""
        return self.plan(OptimistState.initial(self.row, self.task))

    def observe(self, state: OptimistState, episode: Episode) -> OptimistState:
        """Count one episode, and plan anew if it is time."""
        counts, _ = counted(state.counts, NO_ENDS, episode, 1.0)
        state = state._replace(counts=counts, episode=state.episode + 1)
        return self.plan(state) if self._due(state, episode) else state

    def _due(self, state: OptimistState, episode: Episode) -> bool:
        if not self.numbers.replan_factor:
            return True
        for h, (x, a) in enumerate(zip(episode.states, episode.actions, strict=False)):
            visits = float(state.counts[h, x, a].sum())
            if asks_for_plan(visits, float(state.planned[h, x, a]), 1.0, 1.0, math.inf):
                return True
        return False

    def plan(self, state: OptimistState) -> OptimistState:
        """One backward pass: optimistic values, and the greedy policy."""
        H, X, A = state.q.shape
        q, policy, value = state.q.copy(), np.zeros((H, X, A)), np.zeros(X)
        for h in reversed(range(H)):
            order = np.argsort(-value, kind="stable")
            arrived = state.counts[h + 1].sum(axis=(1, 2)) if h + 1 < H else np.zeros(X)
            following = np.zeros(X)
            for x in range(X):
                for a in range(A):
                    q[h, x, a] = self.value(state, h, x, a, value, order, arrived)
                total = [q[h, x, a] + self.task.closed[h, x, a] for a in range(A)]
                best = total.index(max(total))
                policy[h, x, best], following[x] = 1.0, q[h, x, best]
            value = following
        return state._replace(q=q, policy=policy, planned=state.counts.sum(axis=-1))

    def value(
        self,
        state: OptimistState,
        h: int,
        x: int,
        a: int,
        value: Array,
        order: Indices,
        arrived: Array,
    ) -> float:
        """Q_h(x, a) from the values of step h + 1, whose order is given."""
        n, (H, X, _) = self.numbers, state.q.shape
        row = state.counts[h, x, a]
        visits, cap = float(row.sum()), float(H - h)
        if visits == 0.0:
            return cap
        mean, square, corners = 0.0, 0.0, 0.0
        for y in range(X):
            p = float(row[y]) / visits
            mean += p * float(value[y])
            square += p * float(value[y]) * float(value[y])
            corners += formulas.corner(p, float(arrived[y]), n.corner_most, n.corner_cap)
        spread = max(square - mean * mean, 0.0)
        more = 0.0
        if n.ball > 0.0:
            log = math.log(n.ball_log * max(H * state.episode, 1))
            radius = formulas.ball_radius(visits, n.ball, log, n.ball_scale)
            more = moved(row / visits, value, order, 0.5 * radius)
        bonus = formulas.value_bonus(visits, spread, corners, n.flat, n.deviation, n.tail, n.edge)
        before = float(state.q[h, x, a]) if n.monotone else cap
        r = float(self.task.reward[0, h, x, a])
        return formulas.optimistic_value(r, mean + more, bonus, before, cap)


def moved(row: Array, value: Array, order: Indices, half: float) -> float:
    """What a row gains by moving up to `half` of its mass from the worst states to the best."""
    best = order[0]
    left = min(half, 1.0 - float(row[best]))
    gain = left * float(value[best])
    for y in order[::-1]:
        taken = min(float(row[y]), left)
        gain -= taken * float(value[y])
        left -= taken
        if left <= 0.0:
            break
    return gain
