"""A known problem with thresholds, for searches and for independent judges of searches.

Searches call `best`, a compiled sweep and a forward pass. Judges call `returns`, which plays a
policy as written, and `bound`, which trusts no sweep: any values prove a bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CLOSED, CMDP
from cmdplab.cmdp.transitions import SPARSE_FROM
from cmdplab.solvers.induction import (
    Rows,
    bound_by,
    follow,
    rows_of,
    sweep,
    write_occupancy,
    write_policy,
)
from cmdplab.solvers.mixtures import Column, Found, Pool, fits
from cmdplab.solvers.whole import products
from cmdplab.types import Array, frozen

QUICK_PRODUCTS = 50_000


@frozen
@dataclass(frozen=True, eq=False)
class Known:
    """A problem with thresholds that need not be its own."""

    problem: CMDP
    threshold: Array  # [N]
    warm: tuple[Any, ...] = ()  # policies [H, X], one action a state, that searches begin with

    @cached_property
    def pool(self) -> Pool:
        """Return a search that begins with the known policies, evaluated for these rewards."""
        return self.searching()

    def searching(self, even: Array | float = 1.0) -> Pool:
        """Return a search that compares slacks in units [N]."""
        utilities = self.problem.horizon * float(self.problem.largest[1:].max(initial=0.0)) or 1.0
        known = [self.followed(each) for each in self.warm if fits(each, self.problem.opened)]
        return Pool(self.best, self.threshold, (self.size, utilities), known, even=even)

    @property
    def brief(self) -> bool:
        """Return True if a sweep in whole numbers takes some 10 ms."""
        return products(self.problem, self.problem.reward) <= QUICK_PRODUCTS

    @cached_property
    def rows(self) -> Rows:
        """Return the kernel, for the compiled loops."""
        return rows_of(self.problem)

    @cached_property
    def _pairs(self) -> Array:
        """Return rewards [1 + N, H, X * A], or [1 + N, 1, X * A] if they are equal at all steps."""
        reward = self.problem.reward
        reward = reward[:, :1] if self.problem.repeated else reward
        return np.ascontiguousarray(reward).reshape(*reward.shape[:2], -1)

    def worth(self, weights: Array) -> Array:
        """Return sum_n weights[n] r^n, [H, X * A] or [1, X * A], with `CLOSED` at closed pairs."""
        pairs, mask = self._pairs, self.problem.mask
        plain = len(weights) == 1 and weights[0] == 1.0
        total = pairs[0] if plain else (weights @ pairs.reshape(len(pairs), -1))
        total = total.reshape(pairs.shape[1:])
        if mask is None:
            return total
        return np.where(mask[: len(total)].reshape(total.shape), total, CLOSED)

    @property
    def small(self) -> bool:
        """Return True if the learners' planner finds optima, in a millisecond and as recorded.

        The search over a pool also finds these optima, to the last digit but not to the last bit.
        """
        return self.problem.states < SPARSE_FROM

    @cached_property
    def size(self) -> float:
        """Return the largest possible value of the objective."""
        return self.problem.horizon * float(self.problem.largest[0]) or 1.0

    @property
    def thresholds(self) -> list[Fraction]:
        """Return the thresholds, exactly."""
        return [Fraction(b) for b in self.threshold.tolist()]

    def swept(self, weights: Array) -> tuple[Array, Any]:
        """Return values [H + 1, X] and actions [H, X] of the best policy for these weights."""
        p = self.problem
        value = np.empty((p.horizon + 1, p.states))
        actions = np.empty((p.horizon, p.states), np.uint8 if p.actions <= 256 else np.int32)
        sweep(self.rows, self.worth(weights), value, actions, np.empty(p.states))
        return value, actions

    def followed(self, actions: Any) -> Column:
        """Return a policy of one action a state with its returns."""
        returns, here = np.empty(len(self.problem.reward)), np.empty((2, self.problem.states))
        follow(self.rows, self._pairs, actions, self.problem.start, here[0], here[1], returns)
        return Column(returns, actions)

    def best(self, weights: Array) -> Column:
        """Return the best policy for these weights, and its returns."""
        return self.followed(self.swept(weights)[1])

    def occupancy(self, policy: Array) -> Array:
        """Return the occupancy [H, X, A] of any policy."""
        p = self.problem
        pairs, here = np.empty((p.horizon, p.states * p.actions)), np.empty((2, p.states))
        flat = policy.reshape(pairs.shape)
        write_occupancy(self.rows, flat, p.start, here[0], here[1], pairs)
        return pairs.reshape(policy.shape)

    def returns(self, policy: Array) -> tuple[Array, Array]:
        """Return the occupancy [H, X, A] of a policy, and its returns [1 + N]."""
        if self.small:
            pairs = exact.occupancy(self.problem, policy)
            return pairs, np.array([float(np.sum(each * pairs)) for each in self.problem.reward])
        pairs = self.occupancy(policy)
        return pairs, self.problem.reward.reshape(len(self.problem.reward), -1) @ pairs.ravel()

    def bound(self, weight: float, multiplier: Array) -> float:
        """Return a bound on w V[r^0] + sum_n multiplier[n] (V[r^n] - b^n) of every policy."""
        weights = np.array([weight, *multiplier])
        value, _ = self.swept(weights)
        owed = multiplier * self.threshold
        unsure = 2.0**-50 * len(weights) * float(np.abs(owed).sum())
        return self.proved(weights, value) - float(owed.sum()) + unsure

    def proved(self, weights: Array, value: Array) -> float:
        """Return the bound on every policy's weighted returns that values [H + 1, X] prove."""
        given = (self.rows, self.worth(weights), value, self.problem.start)
        return bound_by(*given, self._step(weights))

    def rounding(self, weight: float, multiplier: Array) -> float:
        """Return about how far `bound` exceeds the optimum because its sums are rounded."""
        H = self.problem.horizon
        unsure = 2.0**-53 * float(self.rows[-1].shape[-1] + 16)
        return unsure * H * (H + 2) * self._step(np.array([weight, *multiplier]))

    def _step(self, weights: Array) -> float:
        """Return the largest worth of a pair, each of its terms taken absolutely."""
        return float(np.abs(weights) @ self.problem.largest)

    def price(self, weights: Array) -> Column:
        """Return the best policy for these weights, in doubles and without a tolerance for ties."""
        _, policy = exact.greedy(self.problem, np.tensordot(weights, self.problem.reward, axes=1))
        _, returns = self.returns(policy)
        return Column(returns, policy)

    def chosen(self, actions: Any) -> Array:
        """Return the policy [H, X, A] of one action a state."""
        p = self.problem
        policy = np.zeros(p.horizon * p.states * p.actions)
        policy[np.arange(actions.size) * p.actions + actions.ravel()] = 1.0
        return policy.reshape(p.horizon, p.states, p.actions)

    def played(self, found: Found) -> Array:
        """Return a mixture's policy [H, X, A], with its first column at states without mass."""
        pairs = sum(
            share * self.occupancy(self.chosen(each.policy))
            for share, each in zip(found.shares, found.columns, strict=True)
        )
        flat = np.asarray(pairs).reshape(self.problem.horizon, -1)
        policy = np.empty_like(flat)
        write_policy(flat, found.columns[0].policy, policy)
        return policy.reshape(np.shape(pairs))
