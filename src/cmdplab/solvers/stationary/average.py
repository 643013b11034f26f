"""Optima of average rewards: prices by sweeps, by Howard's iteration, and by it in decimals.

Every signal is shifted and scaled to [0, 1] by its own range, and so are thresholds. Results are in
the user's units. A way of pricing gives the best policy for weights, and an upper bound that holds
for any search. The next way is used if one leaves a doubt: sweeps while they close, policy
iteration on the exact classes, and decimals if the chain is small enough.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np

from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.cmdp.transitions import Dense, Sparse, lists
from cmdplab.errors import OpenCertificateError
from cmdplab.solvers.mixtures import Column
from cmdplab.solvers.stationary import drifts
from cmdplab.solvers.stationary.howard import Howard, Moves, decimal, decimals, in_decimals
from cmdplab.types import Array, Indices

EPS = float(np.finfo(np.float64).eps)
MOST_WORK = 3e9  # products of one search by sweeps
MOST_SWEEPS = 300  # a state, beside 500
DECIMALS = 120  # states up to which decimals are affordable: a policy takes 0.3 s


class Scaled:
    """A problem over the states that can be reached, with signals of range one."""

    def __init__(self, problem: StationaryCMDP) -> None:
        self.whole, self.kernel = problem, _listed(problem.transition)
        found = np.asarray(problem.start) > 0.0
        waiting, count = np.zeros(len(found), np.int64), int(found.sum())
        waiting[:count] = np.flatnonzero(found)
        count = drifts.reach(self.kernel, found, waiting, count)
        self.at = np.flatnonzero(found)
        if count < len(found):
            problem = _restricted(problem, self.at)
            self.kernel = _listed(problem.transition)
        self.problem = problem
        opened, reward = problem.opened, problem.reward
        closed = None if problem.mask is None else ~opened
        self.low, high = np.empty((2, len(reward)))
        for k, each in enumerate(reward):
            kept = each if closed is None else each[opened]
            self.low[k], high[k] = kept.min(), kept.max()
        span = np.where(high > self.low, high - self.low, np.abs(high))
        # A power of two, so that dividing by it does not round.
        self.size = np.exp2(np.ceil(np.log2(np.where(span > 0.0, span, 1.0))))
        self.reward: Array = (reward - self.low[:, None, None]) / self.size[:, None, None]
        if closed is not None:
            self.reward[:, closed] = 0.0
        self.pairs = self.reward.reshape(len(reward), -1)
        self.top = self.reward.max(axis=(1, 2))  # [1 + N], at most 1, and 0 of a constant
        rows = self.kernel.probability.sum(axis=2)
        self.loose = float(np.abs(rows - 1.0).max())  # of the rows' sums
        self.threshold = (problem.threshold - self.low[1:]) / self.size[1:]
        self.limits = [
            (Fraction(b) - Fraction(low)) / Fraction(size)
            for b, low, size in zip(
                problem.threshold.tolist(),
                self.low[1:].tolist(),
                self.size[1:].tolist(),
                strict=True,
            )
        ]

    def weighted(self, weights: Array) -> Array:
        """Return the weighted rewards [X, A], with -inf at closed actions."""
        if len(weights) == 1 and weights[0] == 1.0 and self.problem.mask is None:
            return np.asarray(self.reward[0])
        found: Array = np.tensordot(weights, self.reward, axes=1)
        if self.problem.mask is not None:
            found = np.where(self.problem.mask, found, -np.inf)
        return np.asarray(found)

    def moves(self, exact: bool) -> Moves:
        """Return the pairs for Howard's iteration."""
        problem, X = self.problem, self.problem.states
        successor, given, _ = self.kernel
        probability: Any = np.where(successor == np.arange(X)[:, None, None], 0.0, given)
        reward, start = np.moveaxis(self.reward, 0, 2), np.asarray(problem.start)
        if exact:
            raw = decimals(problem.reward) - decimals(self.low)[:, None, None]
            raw = raw / decimals(self.size)[:, None, None]
            reward = np.moveaxis(raw * decimals(problem.opened.astype(float)), 0, 2)
            exactly, start = decimals(probability), decimals(start)
            total = decimals(given).sum(axis=2, keepdims=True)
            probability, start = exactly / total, start / start.sum()
        loose = 0 if exact else self.loose
        reward = np.ascontiguousarray(reward)
        return Moves(successor, probability, reward, start, problem.opened, loose)

    def full(self, policy: Array) -> Array:
        """Return a policy [X, A] of all states, with the first open action at unvisited states."""
        found = np.eye(self.whole.actions)[np.argmax(self.whole.opened, axis=1)]
        found[self.at] = policy
        return np.asarray(found)

    def full_actions(self, actions: Indices) -> Indices:
        """Return actions [X] of all states, with the first open action at unvisited states."""
        found = np.argmax(self.whole.opened, axis=1).astype(actions.dtype)
        found[self.at] = actions
        return np.asarray(found)


def _listed(kernel: Array | Sparse) -> drifts.Listed:
    """Return the lists of a kernel. A table with few zeros stays a table."""
    if not isinstance(kernel, Sparse):
        found = lists(Dense(kernel[None]))
        if found is None:
            every = np.arange(len(kernel), dtype=np.int32)
            return drifts.Listed(np.broadcast_to(every, kernel.shape), kernel, True)
        kernel = found
    return drifts.Listed(kernel.successor.astype(np.int32), kernel.probability, False)


def _restricted(problem: StationaryCMDP, at: Indices) -> StationaryCMDP:
    """Return the problem over some states, which no action leaves."""
    kernel = problem.transition
    if isinstance(kernel, Sparse):
        place = np.zeros(problem.states, np.int64)
        place[at] = np.arange(len(at))
        cut: Array | Sparse = Sparse(place[kernel.successor[at]], kernel.probability[at])
    else:
        cut = kernel[at][:, :, at]
    mask = None if problem.mask is None else problem.mask[at]
    given = (problem.threshold, problem.criterion, np.asarray(problem.start)[at], problem.name)
    return StationaryCMDP(cut, problem.reward[:, at], *given, mask)


class Sweeps:
    """Prices by relative value iteration, warm from the last policy and its values.

    The returns of a policy are those of its visits. `gains` proves them.
    """

    exact = False

    def __init__(self, scaled: Scaled) -> None:
        self.scaled, places = scaled, scaled.kernel.probability
        X, _, width = places.shape
        self.most = 2 * int(min(500 + MOST_SWEEPS * X, MOST_WORK / places.size) / 2 + 1)
        self.noise = (width + 4) * EPS + scaled.loose
        self.actions = np.argmax(scaled.problem.opened, axis=1)
        self.value, self.here = np.zeros(X), np.full(X, 1.0 / X)
        self.spare, self.right = np.empty((2, X))
        row = np.empty_like(scaled.kernel.successor[:, :1], order="C")
        self.chain = drifts.Listed(row, np.empty(row.shape), scaled.kernel.full)

    def best(self, weights: Array) -> Column:
        """Return the best policy and its returns."""
        worth, top = self.scaled.weighted(weights), float(np.abs(weights) @ self.scaled.top)
        size = float(np.abs(weights).sum()) or 1.0
        given = (self.scaled.kernel, worth, size, (0.25 * self.noise, top), self.most, self.value)
        space = (self.spare, self.chain, self.right, self.actions)
        low, high, enough = drifts.settle(*given, *space)
        if len(weights) == 1:
            if high - low > drifts.ROUGH:
                raise _stalled()
            return self._column(np.array([low]))
        if high - low > enough:
            raise _stalled()
        return self._column(self._earned())

    def followed(self, actions: Indices) -> Column:
        """Return a policy [X] of one action a state with its returns. Pricing continues from it."""
        self.actions[:] = actions
        if len(self.scaled.reward) > 1:
            return self._column(self._earned())
        self._pick()
        low, high = self._bounds(self.chain, self.right[None], self.noise, self.value)
        return self._column(0.5 * (low + high))

    def _pick(self) -> None:
        worth = self.scaled.reward[0]
        drifts.pick(self.scaled.kernel, worth, self.actions, self.chain, self.right)

    def _bounds(
        self, chain: Any, rewards: Array, noise: float, value: Array
    ) -> tuple[Array, Array]:
        """Return bounds [K] on the gains of a policy from every state, for rewards [K, X].

        If the excesses do not agree after the most sweeps, the bounds are apart.
        """
        low, high = np.empty((2, len(rewards)))
        given = (chain, rewards, value, self.spare, drifts.SHARP, noise, self.most)
        drifts.bound_gains(*given, low, high)
        return low, high

    def _earned(self) -> Array:
        self._pick()
        self.here = self._visited(self.chain, self.here)
        pairs = np.arange(len(self.here)) * self.scaled.problem.actions + self.actions
        return np.asarray(self.scaled.pairs[:, pairs] @ self.here)

    def _column(self, returns: Array) -> Column:
        return Column(returns, self.actions.astype(np.min_scalar_type(self.scaled.problem.actions)))

    def bound(self, weights: Array) -> float:
        """Return an upper bound on every policy's weighted gain: the largest excess there is."""
        actions = self.actions.copy()
        given = (self.scaled.kernel, self.scaled.weighted(weights), self.value, 0.0, 1.0, 0.0)
        _, high, _ = drifts.improve(*given, actions, self.spare)
        size = float(np.abs(weights) @ self.scaled.top + np.ptp(self.value))
        return float(high + self.noise * size)

    def visits(self, policy: Array, begun: Array) -> Array:
        """Return the share of time [X] that a policy [X, A] spends in each state."""
        return self._visited(self._chain(policy), begun)

    def _visited(self, chain: Any, begun: Array) -> Array:
        here = begun.copy()
        if not drifts.spend(chain, here, self.spare, self.most):
            raise OpenCertificateError("visits do not converge")
        return np.asarray(here / here.sum())

    def gains(self, policy: Array) -> tuple[Array, Array]:
        """Return lower and upper bounds [1 + N] on the gains of a policy [X, A] everywhere."""
        chain = self._chain(policy)
        width = chain.probability.shape[2]
        noise = self.noise + 2.0 * EPS * width
        rewards = np.einsum("xa,nxa->nx", policy, self.scaled.reward)
        return self._bounds(chain, rewards, noise, np.empty(len(policy)))

    def _chain(self, policy: Array) -> Any:
        """Return the rows of a policy [X, A] as a kernel with a single action."""
        kernel, X = self.scaled.kernel, len(policy)
        if kernel.full:
            return kernel._replace(
                successor=kernel.successor[:, :1],
                probability=np.matmul(policy[:, None], kernel.probability),
            )
        most = int(np.count_nonzero(policy, axis=1).max())
        at, actions = np.arange(X)[:, None], np.argsort(-policy, axis=1)[:, :most]
        probability = policy[at, actions][:, :, None] * kernel.probability[at, actions]
        successor = kernel.successor[at, actions].reshape(X, 1, -1)
        return drifts.Listed(successor, probability.reshape(X, 1, -1), False)


class Classes:
    """Pricing of policies by policy iteration on the exact classes, in doubles or in decimals."""

    def __init__(self, scaled: Scaled, exact: bool) -> None:
        self.exact, first = exact, np.argmax(scaled.problem.opened, axis=1)
        self.actions = len(scaled.problem.opened[0])
        self._howard: Howard = self._run(lambda: Howard(scaled.moves(exact), first))

    def _run(self, work: Callable[[], Any]) -> Any:
        return in_decimals(work) if self.exact else work()

    def best(self, weights: Any) -> Column:
        """Return the best policy and its returns. If exact, weights and returns are fractions."""
        return self._column(lambda: self._howard.improve(self._numbers(weights)))

    def followed(self, actions: Indices) -> Column:
        """Return a policy [X] of one action a state, and its returns. Pricing continues from it."""
        return self._column(lambda: self._howard.followed(actions))

    def _column(self, work: Callable[[], None]) -> Column:
        def priced() -> Array:
            work()
            return np.asarray(self._howard.moves.start @ self._howard.gains)

        returns = self._run(priced)
        if self.exact:
            returns = np.array([fraction(each) for each in returns])
        return Column(returns, self._howard.actions.astype(np.min_scalar_type(self.actions)))

    def bound(self, weights: Any) -> Any:
        """Return an upper bound on the weighted gain of every policy, as a fraction if exact."""
        found = self._run(lambda: self._howard.bound(self._numbers(weights)))
        return fraction(found) if self.exact else float(found)

    def _numbers(self, weights: Any) -> Any:
        if not self.exact:
            return np.asarray(weights, dtype=np.float64)
        return np.array([decimal(Fraction(each)) for each in weights])


def fraction(number: Any) -> Fraction:
    """Return a decimal as a fraction of 400 binary places, which keeps programs short."""
    return Fraction(round(Fraction(number) * GRID), GRID)


GRID = 1 << 400


def _stalled() -> OpenCertificateError:
    return OpenCertificateError("sweeps do not close")
