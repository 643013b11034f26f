"""The best policy for given weights of discounted rewards: policy iteration with memory.

The values of all 1 + N rewards of the last policy are kept. For other weights they give its exact
values at once. A price near the last one then takes one or two policies.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg.lapack import dgetrf, dgetrs

from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.cmdp.transitions import Sparse, lists
from cmdplab.solvers.mixtures import Column
from cmdplab.solvers.stationary import sweeps
from cmdplab.solvers.stationary.sweeps import System, solved
from cmdplab.types import Array, Indices

MOST_POLICIES = 1_000  # of one policy iteration; some ten are needed
ROUNDING = 4e-15
TABLES = 300  # states up to which a table is factorised: faster than iterating over lists
FIRST_SWEEPS = 3  # over all actions, before a table is factorised for the first time
INNER = 0.2  # of what a policy can still gain: what its values may be off by
LOOSEST = 0.2  # of rewards: and at most this


class Pricing:
    """Policies for weights [1 + N], with their returns.

    Rewards and values have a first axis of blocks of sweeps.WIDTH rewards, filled up with zeros:
    one block of all of them where tables are factorised.
    """

    def __init__(self, problem: StationaryCMDP, accuracy: float) -> None:
        assert isinstance(problem.criterion, Discounted)
        self.problem, self.discount = problem, problem.criterion.discount
        # Of residuals, relative to rewards. Values are of size 1 / (1 - gamma): what is less than
        # their rounding cannot be distinguished from it, and would turn policies in circles.
        self.accuracy = max(accuracy, ROUNDING / (1.0 - self.discount))
        kernel, listed = problem.transition, None
        if problem.states > TABLES:
            listed = lists(problem.kernel)
        self.table: Array | None = None  # factorised if there are few states, or long rows
        if listed is None:
            self.table = kernel.dense() if isinstance(kernel, Sparse) else kernel
        X, A, K = problem.states, problem.actions, len(problem.reward)
        width = K if self.table is not None or K == 1 else sweeps.WIDTH
        blocks = -(-K // width)
        self.reward = problem.reward[..., None]
        if K > 1 or self.table is None:  # compiled loops are compiled for arrays that may change
            self.reward = np.zeros((blocks, X, A, width))
            for k, each in enumerate(problem.reward):
                self.reward[k // width, :, :, k % width] = each
        self.size = np.zeros(blocks * width)  # the largest of each reward
        self.size[:K] = problem.largest
        self.values = np.zeros((blocks, X, width))
        self.every = np.arange(X)
        self.left = np.inf  # what the residuals of the values are below, relative to rewards
        self.actions = np.zeros(X, np.int64)
        if problem.mask is not None:
            self.actions = np.argmax(problem.mask, axis=1)
        self.settled: Array | None = None  # the weights for which the policy is the best
        self.seen: tuple[Array, Array] | None = None  # centred values, r + gamma P v, by tables
        if listed is not None:  # in 32 bits, and arrays for the rows of one policy
            self.successor = listed.successor.astype(np.int32)
            self.probability = listed.probability
            self.where = np.empty((X, self.successor.shape[2]), np.int32)
            self.share = np.empty(self.where.shape)
            self.right, self.spare = np.empty((X, width)), np.empty((X, width))

    def best(self, weights: Array) -> Column:
        """Return the best policy, and its returns."""
        self.improve(weights)
        return self._column()

    def followed(self, actions: Array) -> Column:
        """Return a policy [X] of one action a state, and its returns. Pricing continues from it."""
        self.actions, self.settled = actions.astype(np.int64), None
        self.evaluate(self.accuracy)
        return self._column()

    def _column(self) -> Column:
        returns = (np.asarray(self.problem.start) @ self.values).ravel()
        policy = self.actions.astype(np.min_scalar_type(self.problem.actions))
        return Column(returns[: len(self.problem.reward)], policy)

    def value(self, weights: Array) -> Array:
        """Return the weighted values [X] of the last policy."""
        return self._weighed(self.values, weights)

    def bound(self, weights: Array) -> float:
        """Return an upper bound on the weighted returns of every policy."""
        return self.proved(weights)[0]

    def proved(self, weights: Array) -> tuple[float, float, float]:
        """Return bounds that the values v of the best policy a prove, whatever found them.

        The first is an upper bound on the weighted returns of every policy. The others are an upper
        and a lower bound on the weighted returns of the policy a:

            start v + max (T v - v) / (1 - gamma)
            start v + max (T_a v - v) / (1 - gamma),    start v + min (T_a v - v) / (1 - gamma)

        These are bounds for any v: T v <= v + e makes v + e / (1 - gamma) an upper solution. A
        constant added to v changes nothing, so that only the differences of values lose digits. The
        bounds add the largest rounding error of the sums, and of rows that do not quite sum to one.
        """
        self.improve(weights)
        problem, left = self.problem, 1.0 - self.discount
        if self.seen is None:
            value = _centred(self.value(weights))
            q = self._ahead(self._rewards(weights), value)
        else:
            value, q = self.seen
        own = q[self.every, self.actions] - value
        excesses = (self._largest(q)[1] - value).max(), own.max(), own.min()
        spread = max(float(value.max()), -float(value.min()))
        step = float(np.abs(weights) @ self.size[: len(weights)])
        kernel = problem.transition
        S = (kernel.probability if isinstance(kernel, Sparse) else kernel).shape[2]
        terms = (S + len(weights) + 8) * 2.0**-53
        rounding = terms * (step + 2.0 * spread) + problem.loose * spread
        begun = float(problem.start @ value)

        def bound(excess: float, sign: float) -> float:
            unsure = rounding + abs(excess) * (problem.loose / left + 2.0**-50)
            total = begun + (excess + sign * unsure) / left
            return float(total + sign * (2.0**-53 * len(value) * spread + 2.0**-50 * abs(total)))

        every, most, least = map(float, excesses)
        return bound(every, 1.0), bound(most, 1.0), bound(least, -1.0)

    def _rewards(self, weights: Array) -> Array:
        reward = self._weighed(self.reward, weights)
        mask = self.problem.mask
        return reward if mask is None else np.where(mask, reward, -np.inf)

    def _weighed(self, given: Array, weights: Array) -> Array:
        """Return sum_n weights[n] given[..., n] over the blocks."""
        blocks, width = len(given), given.shape[-1]
        if width == len(weights):
            return np.asarray(given[0, ..., 0] if _plain(weights) else given[0] @ weights)
        full = np.zeros(blocks * width)
        full[: len(weights)] = weights
        parts = full.reshape(blocks, width)
        return np.asarray(sum(each @ w for each, w in zip(given, parts, strict=True)))

    def improve(self, weights: Array) -> None:
        """Iterate policies from the last policy."""
        if self.settled is not None and np.array_equal(self.settled, weights):
            return
        self.settled, reward = weights, self._rewards(weights)
        scale = float(np.abs(weights) @ self.size[: len(weights)]) or 1.0
        fine = self.accuracy * scale
        value = self.value(weights) if self.left < np.inf else self._first(reward)
        for _ in range(MOST_POLICIES):
            changed, excess = self._better(reward, value, 0.1 * fine)
            sharp = self.left <= self.accuracy
            if sharp and (not changed or excess <= 2.0 * fine):
                if changed:  # by less than the values are sure of: theirs are wanted all the same
                    self.evaluate(self.accuracy)
                return
            wanted = self.accuracy
            if changed:
                wanted = max(wanted, min(INNER * excess / scale, LOOSEST))
            self.evaluate(wanted)
            value = self.value(weights)

    def _first(self, reward: Array) -> Array:
        """Return values [X] to begin with: of a few steps for tables, else zeros."""
        if self.table is None:
            return np.zeros(len(reward))
        _, value = self._largest(reward)
        for _ in range(FIRST_SWEEPS - 1):
            _, value = self._largest(self._ahead(reward, value))
        return value

    def _ahead(self, reward: Array, value: Array) -> Array:
        if self.table is None:
            found = self.problem.kernel.ahead(0, value)
        else:
            found = (self.table.reshape(reward.size, -1) @ value).reshape(reward.shape)
        found *= self.discount
        found += reward
        return np.asarray(found)

    def _largest(self, q: Array) -> tuple[Indices, Array]:
        """Return the best actions [X] of values [X, A], and their values: as `max`, but faster."""
        best = q.argmax(axis=1)
        return best, q[self.every, best]

    def _better(self, reward: Array, value: Array, tie: float) -> tuple[int, float]:
        if self.table is None:
            found = sweeps.improve(
                self.successor, self.probability, reward, self.discount, value, tie, self.actions
            )
            return int(found[0]), float(found[1])
        value = _centred(value)
        q = self._ahead(reward, value)
        self.seen = value, q
        best, most = self._largest(q)
        gains = most - q[self.every, self.actions]
        better = gains > tie
        changed = int(np.count_nonzero(better))
        if changed:
            self.actions = np.where(better, best, self.actions)
        return changed, float(gains.max())

    def evaluate(self, tolerance: float) -> None:
        """Compute the values of the policy, with residuals below tolerance times rewards."""
        self.seen = None
        if self.table is not None:
            matrix = self.table[self.every, self.actions]
            matrix *= -self.discount
            matrix.ravel()[:: len(matrix) + 1] += 1.0
            factors, pivots, _ = dgetrf(matrix.T, overwrite_a=True)
            right = self.reward[0, self.every, self.actions]
            self.values = dgetrs(factors, pivots, right, trans=1)[0][None]
            self.left = 0.0
            return
        limit = tolerance * np.where(self.size > 0.0, self.size, 1.0).reshape(len(self.values), -1)
        given = (self.successor, self.probability)
        for reward, value, each in zip(self.reward, self.values, limit, strict=True):
            sweeps.pick(*given, reward, self.actions, self.where, self.share, self.right)
            system = System(self.where, self.share, self.discount, self.right)
            solved(system, value, self.spare, each)
        self.left = tolerance


def _plain(weights: Array) -> bool:
    return len(weights) == 1 and weights[0] == 1.0


def _centred(value: Array) -> Array:
    """Return values with a constant added, so that the largest is minus the least."""
    middle = 0.5 * float(value.max() + value.min())
    return value - middle
