"""The softmax-search family in plain NumPy: the algorithm as one reads it, the oracle of the rest.

A pass is a loop over steps, and over next states and actions where a sum is taken: in that order,
which the compiled loops keep. A small kappa turns one bit of a value into another policy.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.algorithms import equations as eq
from cmdplab.algorithms.counts import NO_ENDS
from cmdplab.algorithms.families import softmax_search as soft
from cmdplab.algorithms.families.planner import asks_for_plan
from cmdplab.algorithms.families.softmax_search import (
    SoftmaxSearch,
    SoftmaxSearchNumbers,
    SoftmaxSearchState,
)
from cmdplab.algorithms.learner import Episode
from cmdplab.numerics.vector_math import exp_plain, log_plain
from cmdplab.types import Array
from oracles.learner import PlainLearner, counted

_width = np.vectorize(soft.ridge_width, otypes=[float])
_weight = np.vectorize(eq.count_weight, otypes=[float])
_clipped = np.vectorize(soft.clipped_value, otypes=[float])
_logit = np.vectorize(soft.composite_logit, otypes=[float])
_term = np.vectorize(eq.policy_term, otypes=[float])
_exp = np.vectorize(exp_plain, otypes=[float])
_log = np.vectorize(log_plain, otypes=[float])


class Pass(NamedTuple):
    """What one backward pass gives."""

    policy: Array  # [H, X, A], pi^lam
    reward: Array  # [H + 1, X], Vr
    compensation: Array  # [H + 1, X], Vd
    utility: Array  # [H + 1, X], Vu


class PlainSoftmaxSearch(PlainLearner[SoftmaxSearch, SoftmaxSearchNumbers]):
    """The learner of one row and one task."""

    def init(self) -> SoftmaxSearchState:
        """Before the first episode: searched on no data, or the safe policy."""
        state = SoftmaxSearchState.initial(self.row, self.task)
        return self._safe(state) if self.numbers.begins_safe else self.search(state)

    def observe(self, state: SoftmaxSearchState, episode: Episode) -> SoftmaxSearchState:
        """Count one episode; search the multiplier of the next, if a visited pair asks for it."""
        counts, _ = counted(state.counts, NO_ENDS, episode, 1.0)
        visits, n = counts.sum(axis=-1), self.numbers
        rule = (n.replan_first, n.replan_factor, n.replan_most)
        due = any(
            asks_for_plan(float(visits[h, x, a]), float(state.planned[h, x, a]), *rule)
            for h, (x, a) in enumerate(zip(episode.states[:-1], episode.actions, strict=True))
        )
        played = state.baseline_episodes + state.on_baseline
        done = state._replace(counts=counts, baseline_episodes=played, episode=state.episode + 1)
        return self.search(done) if due else done

    def search(self, state: SoftmaxSearchState) -> SoftmaxSearchState:
        """The policy of the next episode, from the counts."""
        n, b = self.numbers, self.task.threshold[0]
        state = state._replace(planned=state.counts.sum(axis=-1))
        low, high = 0.0, n.largest
        upper = None  # the pass at `high`
        if n.tested:
            upper = self.evaluate(state.counts, n.largest)
            if self.utility_of(upper) < b:
                return self._failed(state, upper)
            free = self.evaluate(state.counts, 0.0)
            if self.utility_of(free) >= b:
                return self._played(state, free, 0.0)
        last, lam, reach = float(state.multiplier[0]), (low + high) / 2.0, np.inf
        if n.near > 0.0 and low < last < high:
            lam, reach = last, n.near * last
        for _ in range(int(n.bisections)):
            found = self.evaluate(state.counts, lam)
            passed = self.utility_of(found) >= b
            if passed:
                high, upper = lam, found
            else:
                low = lam
            lam = soft.next_multiplier(low, high, reach, passed)
            reach *= soft.GROWTH
        if upper is None:
            upper = self.evaluate(state.counts, high)
            if self.utility_of(upper) < b:
                return self._failed(state, upper)
        return self._played(state, upper, high)

    def evaluate(self, counts: Array, lam: float, policy: Array | None = None) -> Pass:
        """One backward pass: builds pi^lam and evaluates it; a given policy is only evaluated."""
        n, (_, H, X, A) = self.numbers, self.task.reward.shape
        visits = counts.sum(axis=-1)
        beta, weight = _width(visits), _weight(visits, 1.0, 0.0)
        values = np.zeros((3, H + 1, X))
        values[0, H] = n.terminal_value
        played = np.zeros((H, X, A))
        for h in reversed(range(H)):
            ahead = np.zeros((3, X, A))
            for y in range(X):
                ahead += counts[h, :, :, y] * values[:, h + 1, y, None, None]
            ahead *= weight[h]
            q = self._action_values(h, beta[h], ahead)
            logit = _logit(q[1], q[0], q[2], lam, n.sharpness) + self.task.closed[h]
            pi, log_pi = softmax(logit) if policy is None else (policy[h], safe_log(policy[h]))
            played[h] = pi
            for a in range(A):
                for i, entropy in enumerate((n.entropy, 0.0, 0.0)):
                    values[i, h] += _term(pi[:, a], log_pi[:, a], q[i, :, a], entropy, n.weighting)
        return Pass(played, *values)

    def _action_values(self, h: int, beta: Array, ahead: Array) -> Array:
        """[3, X, A]: Qr, Qd and Qu of step h; `ahead` is Phat V of each."""
        n, r = self.numbers, self.task.reward[:, h]
        left = len(self.task.reward[0]) - h
        level = [soft.clip_level(unit, left, n.loose) for unit in (n.reward_unit, 1.0)]
        most = soft.clip_level(n.compensation, left, n.loose)
        return np.stack(
            [
                _clipped(r[0], n.reward_width * beta, ahead[0], level[0], n.inside),
                _clipped(n.compensation * beta, n.compensation_width * beta, ahead[1], most, 0.0),
                _clipped(r[1], n.utility_width * beta, ahead[2], level[1], n.inside),
            ]
        )

    def utility_of(self, found: Pass) -> float:
        """U(lam) = Vu_1(x_1)."""
        return float(found.utility[0, self.task.start])

    def _failed(self, state: SoftmaxSearchState, upper: Pass) -> SoftmaxSearchState:
        """Even the largest multiplier is not enough."""
        if self.numbers.fallback:
            return self._safe(state)
        return self._played(state, upper, self.numbers.largest)

    def _safe(self, state: SoftmaxSearchState) -> SoftmaxSearchState:
        baseline = self.task.baseline
        assert baseline is not None
        multiplier = np.array([self.numbers.largest])
        return state._replace(policy=baseline.policy, multiplier=multiplier, on_baseline=1)

    def _played(self, state: SoftmaxSearchState, found: Pass, lam: float) -> SoftmaxSearchState:
        multiplier = np.array([lam])
        return state._replace(policy=found.policy, multiplier=multiplier, on_baseline=0)


def softmax(logit: Array) -> tuple[Array, Array]:
    """pi and ln pi of logits [X, A]: nothing overflows."""
    below = logit - logit.max(axis=1, keepdims=True)
    weight, mass = _exp(below), np.zeros(len(logit))
    for a in range(logit.shape[1]):
        mass += weight[:, a]
    return weight * (1.0 / mass)[:, None], below - _log(mass)[:, None]


def safe_log(policy: Array) -> Array:
    """ln pi, and 0 where pi is 0: such an action adds nothing to a value."""
    return np.log(policy, where=policy > 0.0, out=np.zeros_like(policy))
