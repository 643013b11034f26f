"""The best policy for given weights of average rewards: Howard's policy iteration, multichain.

A policy may have several recurrent classes, periodic or not, and gains that depend on the start.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse
from scipy.sparse.linalg import splu

from cmdplab.cmdp import exact_stationary as exact
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import OpenCertificateError
from cmdplab.solvers.mixtures import Column
from cmdplab.types import Array

MOST_POLICIES = 1_000


class Pricing:
    """Policies for weights [1 + N], with their returns."""

    def __init__(self, problem: StationaryCMDP) -> None:
        self.problem = problem
        self.reward = np.ascontiguousarray(problem.reward.transpose(1, 2, 0))  # [X, A, 1 + N]
        self.size = np.abs(problem.reward).max(axis=(1, 2))
        self.actions = np.argmax(problem.opened, axis=1)
        self.gains, self.values = self.evaluate()

    def best(self, weights: Array) -> Column:
        """The best policy, and its returns."""
        self.improve(weights)
        return self._column()

    def followed(self, actions: Array) -> Column:
        """A policy [X] of one action a state, and its returns; prices go on from there."""
        self.actions = actions.astype(np.int64)
        self.gains, self.values = self.evaluate()
        return self._column()

    def _column(self) -> Column:
        policy = self.actions.astype(np.min_scalar_type(self.problem.actions))
        return Column(np.asarray(self.problem.start @ self.gains), policy)

    def value(self, weights: Array) -> Array:
        """[X]: the weighted biases of the last policy."""
        return np.asarray(self.values @ weights)

    def improve(self, weights: Array) -> None:
        """Policy iteration from the last policy: more gain first, then more bias."""
        opened, states = self.problem.opened, np.arange(self.problem.states)
        reward = self.reward @ weights
        scale = float(np.abs(weights) @ self.size) or 1.0
        for _ in range(MOST_POLICIES):
            gain, bias = self.gains @ weights, self.values @ weights
            ahead = np.where(opened, exact.ahead(self.problem, gain), -np.inf)
            most = ahead.max(axis=1)
            better = most > ahead[states, self.actions] + 1e-11 * scale
            chosen = np.where(better, ahead.argmax(axis=1), self.actions)
            if not better.any():
                q = reward + exact.ahead(self.problem, bias)
                q = np.where(opened & (ahead >= most[:, None] - 1e-11 * scale), q, -np.inf)
                tie = 1e-12 * (scale + np.abs(bias).max())
                better = q.max(axis=1) > q[states, self.actions] + tie
                chosen = np.where(better, q.argmax(axis=1), self.actions)
            if not better.any():
                return
            self.actions = chosen
            self.gains, self.values = self.evaluate()
        raise OpenCertificateError(f"{self.problem.name}: policy iteration does not end")

    def evaluate(self) -> tuple[Array, Array]:
        """Gains and biases [X, 1 + N] of the policy: g = P g and g + h = r + P h."""
        X = self.problem.states
        states = np.arange(X)
        policy = np.zeros((X, self.problem.actions))
        policy[states, self.actions] = 1.0
        follow = exact.chain(self.problem, policy)
        right = self.reward[states, self.actions]
        gains, values = np.zeros_like(right), np.zeros_like(right)
        closed = []
        for each in exact.recurrent(follow):
            # h of the class's first state is zero, and the gain takes its place.
            matrix = (sparse.eye_array(len(each)) - follow[each][:, each]).tolil()
            matrix[:, [0]] = np.ones((len(each), 1))
            found = _solve(matrix.tocsc(), right[each])
            gains[each] = found[0]
            values[each[1:]] = found[1:]
            closed.append(each)
        passing = np.setdiff1d(states, np.concatenate(closed))
        if len(passing):
            rows = follow[passing]
            matrix = (sparse.eye_array(len(passing)) - rows[:, passing]).tocsc()
            gains[passing] = _solve(matrix, rows @ gains)
            values[passing] = _solve(matrix, right[passing] - gains[passing] + rows @ values)
        return gains, values


def _solve(matrix: sparse.csc_array, right: Array) -> Array:
    if matrix.shape[0] <= exact.SMALL:
        return np.asarray(np.linalg.solve(matrix.toarray(), right))
    return np.asarray(splu(matrix).solve(right))
