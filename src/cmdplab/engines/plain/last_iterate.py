"""OPG-PD and OMWU-PD in plain Python: as one reads them, and the oracle of the compiled ones."""

from __future__ import annotations

import math

import numpy as np

from cmdplab.algorithms import equations as eq
from cmdplab.algorithms.last_iterate import (
    LastIterate,
    LastIterateNumbers,
    LastIterateState,
    projected,
    simplex_shift,
)
from cmdplab.algorithms.learner import Episode
from cmdplab.engines.plain.learner import PlainLearner
from cmdplab.types import Array


class PlainLastIterate(PlainLearner[LastIterate, LastIterateNumbers]):
    """The method of one row and one task, which tells it the kernel."""

    def init(self) -> LastIterateState:
        """Before the first iteration."""
        return LastIterateState.first(self.row, self.task)

    def observe(self, state: LastIterateState, episode: Episode) -> LastIterateState:
        """One iteration. What was played is not looked at."""
        n = self.numbers
        q, value = self.evaluate(state)
        total = self.task.closed + q[0] + np.tensordot(state.multiplier, q[1:], 1)
        anchor, guess = np.empty_like(q[0]), np.empty_like(q[0])
        for h, x in np.ndindex(*anchor.shape[:2]):
            anchor[h, x] = self._moved(state.anchor[h, x], total[h, x])
            guess[h, x] = self._moved(anchor[h, x], total[h, x])
        told = list(zip(self.task.threshold, value[1:], strict=True))
        anchored, multiplier = (np.array(state.anchor_multiplier) for _ in range(2))
        for i, (b, v) in enumerate(told):
            anchored[i] = eq.multiplier_step(anchored[i], n.eta, 0.0, b, v, n.cap)
            multiplier[i] = eq.multiplier_step(anchored[i], n.eta, 0.0, b, v, n.cap)
        policy = np.exp(guess) if n.multiplicative else guess
        return LastIterateState(policy, anchor, multiplier, anchored, state.episode + 1)

    def evaluate(self, state: LastIterateState) -> tuple[Array, Array]:
        """Q [1 + N, H, X, A] of every reward, and what it earns from the start [1 + N]."""
        task, kernel = self.task, self.task.kernel
        assert kernel is not None  # `Row.check` has seen to that
        rewards, H, X, _ = task.reward.shape
        q, value = np.empty_like(task.reward), np.zeros((rewards, X))
        for n in range(rewards):
            for h in reversed(range(H)):
                q[n, h] = task.reward[n, h] + kernel.ahead(h, value[n])
                value[n] = np.sum(state.policy[h] * q[n, h], axis=-1)
        return q, value[:, task.start]

    def _moved(self, anchor: Array, total: Array) -> Array:
        """A step from an anchor [A], or from its logarithms, along Q [A]."""
        n = self.numbers
        y = [eq.policy_logit(p, n.eta, 0.0, q) for p, q in zip(anchor, total, strict=True)]
        y = [each - max(y) for each in y]
        if n.multiplicative:
            mass = math.log(sum(math.exp(each) for each in y))
            return np.array([each - mass for each in y])
        return nearest(y)


def nearest(y: list[float]) -> Array:
    """The point of the simplex that is nearest to y [A]."""
    summed, shift = 0.0, -math.inf
    for count, each in enumerate(sorted(y, reverse=True), start=1):
        summed += each
        if each <= simplex_shift(summed, count):
            break
        shift = simplex_shift(summed, count)
    return np.array([projected(each, shift) for each in y])
