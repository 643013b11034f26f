"""The best policy for given weights of discounted rewards: policy iteration that remembers.

The values of all 1 + N rewards of the last policy are kept. For other weights they are its exact
values at once, so that a price asked for next to the last one takes a policy or two.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.cmdp.transitions import Dense, Sparse, lists
from cmdplab.solvers.rational import Vertex
from cmdplab.solvers.stationary import sweeps
from cmdplab.types import Array

MOST_POLICIES = 1_000  # of one policy iteration; some ten are needed
ROUNDING = 4e-15
RESTARTS = 20  # of one linear solve
PATIENCE = 40  # steps without a gain of a tenth
TINY = 1e-300
TABLES = 300  # states up to which a table is factorised: faster than iterating over lists


class Pricing:
    """Policies for weights (w, multipliers), with their returns; see `rational.Program`."""

    def __init__(self, problem: StationaryCMDP, accuracy: float) -> None:
        assert isinstance(problem.criterion, Discounted)
        self.problem, self.discount = problem, problem.criterion.discount
        self.reward = np.ascontiguousarray(problem.reward.transpose(1, 2, 0))  # [X, A, 1 + N]
        self.size = np.abs(problem.reward).max(axis=(1, 2))  # [1 + N]
        # Of residuals, relative to rewards. Values are of size 1 / (1 - gamma): what is less than
        # their rounding cannot be told from it, and would turn policies in circles.
        self.accuracy = max(accuracy, ROUNDING / (1.0 - self.discount))
        self.actions = np.argmax(problem.opened, axis=1)
        self.values = np.zeros((problem.states, len(problem.reward)))
        self.known: dict[bytes, Vertex] = {}
        kernel = problem.transition
        if problem.states <= TABLES:
            table = kernel.dense() if isinstance(kernel, Sparse) else kernel
            self.table: Array | None = table
            return
        self.table = None
        listed = kernel if isinstance(kernel, Sparse) else lists(Dense(kernel[None]))
        if listed is None:
            self.table = np.asarray(kernel)
            return
        self.successor = listed.successor.astype(np.int32)
        self.probability = listed.probability

    def price(self, weight: Fraction, multiplier: list[Fraction]) -> Vertex:
        """The best policy and its returns."""
        weights = np.array([float(weight), *map(float, multiplier)])
        self.improve(weights)
        key = self.actions.astype(np.int32).tobytes()
        if key not in self.known:
            found = tuple(map(Fraction, (self.problem.start @ self.values).tolist()))
            self.known[key] = Vertex(found, self.actions.astype(np.int32))
        return self.known[key]

    def improve(self, weights: Array) -> None:
        """Policy iteration from the last policy."""
        reward = np.where(self.problem.opened, self.reward @ weights, -np.inf)
        scale = float(np.abs(weights) @ self.size) or 1.0
        fine = self.accuracy * scale
        if not self.values.any():
            self.evaluate(1e-3)
        tolerance = 1.0 if self.table is None else 0.0
        for _ in range(MOST_POLICIES):
            changed, excess = self._better(reward, self.values @ weights, 0.1 * fine)
            if not changed and tolerance <= self.accuracy:
                return
            tolerance = self.accuracy
            if changed and self.table is None:
                tolerance = max(tolerance, min(1e-2 * excess / scale, 1e-3))
            self.evaluate(tolerance)

    def _better(self, reward: Array, value: Array, tie: float) -> tuple[int, float]:
        if self.table is None:
            found = sweeps.improve(
                self.successor, self.probability, reward, self.discount, value, tie, self.actions
            )
            return int(found[0]), float(found[1])
        X, A = reward.shape
        q = reward + self.discount * (self.table.reshape(X * A, X) @ value).reshape(X, A)
        states = np.arange(X)
        best = q.argmax(axis=1)
        most = q[states, best]
        better = most > q[states, self.actions] + tie
        self.actions = np.where(better, best, self.actions)
        return int(better.sum()), float(np.max(most - value))

    def evaluate(self, tolerance: float) -> None:
        """The values [X, 1 + N] of the policy, with residuals below tolerance times rewards."""
        states = np.arange(len(self.actions))
        right = self.reward[states, self.actions]
        if self.table is not None:
            matrix = self.table[states, self.actions] * -self.discount
            matrix[states, states] += 1.0
            self.values = np.linalg.solve(matrix, right)
            return
        where = self.successor[states, self.actions]
        share = self.probability[states, self.actions]
        limit = tolerance * np.where(self.size > 0.0, self.size, 1.0)
        solved(where, share, self.discount, right, self.values, limit)


def solved(
    where: Array, share: Array, discount: float, right: Array, value: Array, limit: Array
) -> None:
    """value - gamma P value = right for K right sides [X, K], in place, to residuals of limit [K].

    BiCGSTAB for all columns side by side, begun again where it does not get on. Sweeps go on
    where it never does: they contract by gamma, whatever the chain.
    """
    for _ in range(RESTARTS):
        if _closer(where, share, discount, right, value, limit):
            return
    _contract(where, share, discount, right, value, limit)


def _residual(where: Array, share: Array, discount: float, right: Array, value: Array) -> Array:
    left = np.empty_like(right)
    sweeps.operate(where, share, discount, value, right, left, np.zeros((2, right.shape[1])))
    return right - left


def _closer(
    where: Array, share: Array, discount: float, right: Array, value: Array, limit: Array
) -> bool:
    """BiCGSTAB from where it is, until it is done (true) or goes in circles (false)."""
    left = _residual(where, share, discount, right, value)
    image, other, dots = np.empty_like(right), np.empty_like(right), np.zeros((2, len(limit)))
    first, direction = left.copy(), left.copy()
    rho, most = np.sum(first * left, axis=0), np.abs(left).max(axis=0)
    best, since = np.inf, 0
    while not (most <= limit).all():
        worst = float(np.max(most / limit))
        since = 0 if worst < 0.9 * best else since + 1
        best = min(best, worst)
        if since > PATIENCE or not worst < np.inf:
            return False
        done = (most <= limit) | (rho == 0.0)
        sweeps.operate(where, share, discount, direction, first, image, dots)
        alpha = np.where(done, 0.0, rho / (dots[0] + TINY))
        sweeps.half_step(left, image, alpha)
        sweeps.operate(where, share, discount, left, left, other, dots)
        omega = np.where(done, 0.0, dots[0] / (dots[1] + TINY))
        sweeps.whole_step(value, left, first, direction, other, alpha, omega, dots)
        beta = np.where(done, 0.0, dots[0] / (rho + TINY) * alpha / (omega + TINY))
        rho, most = dots[0].copy(), np.where(done, most, dots[1])
        sweeps.turn(direction, left, image, beta, omega)
    return bool(
        (np.abs(_residual(where, share, discount, right, value)).max(axis=0) <= 2.0 * limit).all()
    )


def _contract(
    where: Array, share: Array, discount: float, right: Array, value: Array, limit: Array
) -> None:
    if not np.isfinite(value).all():
        value[:] = 0.0
    best, since = np.inf, 0
    while since < 10 * PATIENCE:  # rounding alone keeps it from ending
        left = _residual(where, share, discount, right, value)
        value += left
        worst = float(np.max(np.abs(left).max(axis=0) / limit))
        since = 0 if worst < best else since + 1
        best = min(best, worst)
        if worst <= 1.0:
            return
