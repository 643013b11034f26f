"""Optima of average rewards: prices by sweeps, by Howard's iteration, and by it in decimals.

Every signal is shifted and scaled to [0, 1] by its own range, and so are thresholds; what comes out
is in the user's units. A way of pricing gives the best policy for weights, and an upper bound that
holds whatever it found. The next way is asked where one leaves a doubt: sweeps while they close,
policy iteration on the exact classes, and decimals where the chain is small enough.
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
from cmdplab.solvers.rational import Vertex
from cmdplab.solvers.stationary import drifts
from cmdplab.solvers.stationary.howard import Howard, Moves, decimal, decimals, in_decimals
from cmdplab.types import Array, Indices

SPAN = 1e-13  # of the weighted ranges: excesses that agree to it are closed
SHARP = 5e-14  # of the range: gains of a policy that agree to it are known
LOOSE = 0.05  # of the span that is left: how well a policy is followed before the next
TIE = 1e-15
MOST_WORK = 3e9  # products of one search by sweeps
MOST_SWEEPS = 20  # a state, beside a thousand
MOST_POLICIES = 60
DECIMALS = 120  # states up to which decimals are affordable: a policy takes 0.3 s


class Scaled:
    """A problem over the states that can be reached, with signals of range one."""

    def __init__(self, problem: StationaryCMDP) -> None:
        self.whole, kernel = problem, problem.transition
        if not isinstance(kernel, Sparse):
            kernel = lists(Dense(kernel[None])) or kernel
        self.kernel = _laid_out(kernel)
        found = np.asarray(problem.start) > 0.0
        waiting, count = np.zeros(len(found), np.int64), int(found.sum())
        waiting[:count] = np.flatnonzero(found)
        count = drifts.reach(self.kernel, found, waiting, count)
        self.at = np.flatnonzero(found)
        if count < len(found):
            problem = _restricted(problem, self.at)
            self.kernel = _laid_out(problem.transition)
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
        self.top = self.reward.max(axis=(1, 2))  # [1 + N], at most 1, and 0 of a constant
        probability = getattr(self.kernel, "probability", self.kernel)
        self.loose = float(np.abs(probability.sum(axis=2) - 1.0).max())  # of the rows' sums
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
        """[X, A]: the weighted rewards, -inf where an action is closed."""
        if len(weights) == 1 and weights[0] == 1.0 and self.problem.mask is None:
            return np.asarray(self.reward[0])
        found: Array = np.tensordot(weights, self.reward, axes=1)
        if self.problem.mask is not None:
            found = np.where(self.problem.mask, found, -np.inf)
        return np.asarray(found)

    def moves(self, exact: bool) -> Moves:
        """Pairs for Howard's iteration."""
        problem, X = self.problem, self.problem.states
        if isinstance(self.kernel, drifts.Listed):
            successor, probability = self.kernel.successor, self.kernel.probability
        else:
            successor = np.broadcast_to(np.arange(X), self.kernel.shape)
            probability = self.kernel
        given = probability
        probability = np.where(successor == np.arange(X)[:, None, None], 0.0, probability)
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
        """[X, A] of all states: where it never comes, the first open action."""
        found = np.eye(self.whole.actions)[np.argmax(self.whole.opened, axis=1)]
        found[self.at] = policy
        return np.asarray(found)

    def full_actions(self, actions: Indices) -> Indices:
        """[X] of all states: where it never comes, the first open action."""
        found = np.argmax(self.whole.opened, axis=1).astype(actions.dtype)
        found[self.at] = actions
        return np.asarray(found)


def _laid_out(kernel: Array | Sparse) -> Any:
    if isinstance(kernel, Sparse):
        return drifts.Listed(kernel.successor, kernel.probability)
    return kernel


def _restricted(problem: StationaryCMDP, at: Indices) -> StationaryCMDP:
    """The problem over some states, which no action leaves."""
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
    """Prices by relative value iteration, warm from the last policy's values."""

    exact = False

    def __init__(self, scaled: Scaled) -> None:
        self.scaled, X, K = scaled, scaled.problem.states, len(scaled.reward)
        self.values, self.spare = np.zeros((K, X)), np.empty(X)
        self.low, self.high = np.zeros(K), np.zeros(K)
        self.actions = np.argmax(scaled.problem.opened, axis=1)
        kernel = scaled.kernel
        places = kernel.probability if isinstance(kernel, drifts.Listed) else kernel
        self.width = places.shape[2]
        self.most = 2 * int(min(500 + MOST_SWEEPS * X, MOST_WORK / places.size) / 2 + 1)

    def best(self, weights: Array) -> Column:
        """The best policy, and its returns; its gains are between `low` and `high`."""
        if len(weights) == 1:
            given = (self.scaled.kernel, self.scaled.weighted(weights), self.values[0], self.spare)
            limit = max(SPAN, 0.25 * self._rounding(weights, self.values[0]))
            low, high = drifts.close(*given, limit, self.most, self.actions)
            self.low[0], self.high[0] = low, high
            if high - low > limit:
                raise _stalled()
        else:
            self.improve(weights)
        return self._column()

    def followed(self, actions: Indices) -> Column:
        """A policy [X] of one action a state, and its returns; prices go on from there."""
        self.actions = actions.astype(np.int64)
        self._follow(SHARP)
        return self._column()

    def _column(self) -> Column:
        policy = self.actions.astype(np.min_scalar_type(self.scaled.problem.actions))
        return Column(0.5 * (self.low + self.high), policy)

    def improve(self, weights: Array) -> None:
        """Policies that are followed better and better, until none is left to gain."""
        size = float(np.abs(weights).sum()) or 1.0
        reward, left = self.scaled.weighted(weights), np.inf
        for _ in range(MOST_POLICIES):
            before = self.actions.copy()
            low, high = self._improved(reward, weights, TIE * size)
            changed, left = not np.array_equal(before, self.actions), (high - low) / size
            if left <= SPAN and not changed:
                self._follow(SHARP)
                return
            self._follow(max(SHARP, min(LOOSE * left, LOOSE)))
        raise _stalled()

    def _improved(self, reward: Array, weights: Array, tie: float) -> tuple[float, float]:
        value = weights @ self.values
        given = (self.scaled.kernel, reward, value)
        low, high = drifts.improve(*given, 0.0, 1.0, tie, self.actions, self.spare)
        return float(low), float(high)

    def _follow(self, limit: float) -> None:
        """The values of the policy, to excesses that agree to a limit."""
        limits = np.full(len(self.low), limit)
        units = np.eye(len(limits))
        rounding = [self._rounding(*each) for each in zip(units, self.values, strict=True)]
        limits = np.maximum(limits, 0.25 * np.array(rounding))
        given = (self.scaled.kernel, self.scaled.reward, self.actions, self.values, self.spare)
        drifts.evaluate(*given, limits, self.most, self.low, self.high)
        if (self.high - self.low > limits).any():
            raise _stalled()

    def bound(self, weights: Array) -> float:
        """An upper bound on the weighted gain of every policy: the largest excess there is."""
        reward, value = self.scaled.weighted(weights), weights @ self.values
        actions = self.actions.copy()
        given = (self.scaled.kernel, reward, value)
        _, high = drifts.improve(*given, 0.0, 1.0, 0.0, actions, self.spare)
        return float(high) + self._rounding(weights, value)

    def _rounding(self, weights: Array, value: Array) -> float:
        """What rounding may change in an excess."""
        size = float(np.abs(weights) @ self.scaled.top + value.max() - value.min())
        return float((self.width + 4) * np.finfo(np.float64).eps + self.scaled.loose) * size


class Classes:
    """Prices by policy iteration on the exact classes, in doubles or in decimals."""

    def __init__(self, scaled: Scaled, exact: bool) -> None:
        self.exact, first = exact, np.argmax(scaled.problem.opened, axis=1)
        self.actions = len(scaled.problem.opened[0])
        self._howard: Howard = self._run(lambda: Howard(scaled.moves(exact), first))

    def _run(self, work: Callable[[], Any]) -> Any:
        return in_decimals(work) if self.exact else work()

    def best(self, weights: Any) -> Column:
        """The best policy for weights, fractions if exact; its returns are then fractions too."""
        return self._column(lambda: self._howard.improve(self._numbers(weights)))

    def followed(self, actions: Indices) -> Column:
        """A policy [X] of one action a state, and its returns; prices go on from there."""
        return self._column(lambda: self._howard.followed(actions))

    def _column(self, work: Callable[[], None]) -> Column:
        def priced() -> Array:
            work()
            return np.asarray(self._howard.moves.start @ self._howard.gains)

        returns = self._run(priced)
        if self.exact:
            returns = np.array([fraction(each) for each in returns])
        return Column(returns, self._howard.actions.astype(np.min_scalar_type(self.actions)))

    def vertex(self, weight: Fraction, multiplier: list[Fraction]) -> Vertex:
        """The best policy for a program in fractions."""
        found = self.best([weight, *multiplier])
        return Vertex(tuple(map(Fraction, found.returns.tolist())), found.policy)

    def bound(self, weights: Any) -> Any:
        """An upper bound on the weighted gain of every policy; a fraction if exact."""
        found = self._run(lambda: self._howard.bound(self._numbers(weights)))
        return fraction(found) if self.exact else float(found)

    def _numbers(self, weights: Any) -> Any:
        if not self.exact:
            return np.asarray(weights, dtype=np.float64)
        return np.array([decimal(Fraction(each)) for each in weights])


def fraction(number: Any) -> Fraction:
    """A decimal as a fraction of 400 binary places, which keeps programs short."""
    return Fraction(round(Fraction(number) * GRID), GRID)


GRID = 1 << 400


def _stalled() -> OpenCertificateError:
    return OpenCertificateError("sweeps do not close")
