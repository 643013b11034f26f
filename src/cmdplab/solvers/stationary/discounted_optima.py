"""Optima of discounted problems with a certificate that closes, or no answer at all.

The program over mixtures of deterministic policies is solved in doubles (mixtures.py), and in
fractions (rational.py) if these leave a doubt. The result becomes one stationary policy. The plain
code of exact_stationary.py evaluates it. A bound that holds for any value function prices the
multipliers. A remaining doubt raises `OpenCertificateError`.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cmdplab.cmdp import exact_stationary as exact
from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.errors import OpenCertificateError
from cmdplab.solvers import rational
from cmdplab.solvers.mixtures import Column, Found, Pool, fits, in_doubles, in_fractions
from cmdplab.solvers.rational import Optimum, infeasible
from cmdplab.solvers.stationary import discounted
from cmdplab.solvers.whole import MOST_STATES, WholeDiscounted
from cmdplab.types import Array

LARGE = 5_000  # states from which linear systems are solved by iteration
CLOSED = (1e-9, 1e-8)  # of the largest value there can be: small problems, large ones
SHORT = 1e-9  # of the largest utility there can be: thresholds missed by less are met
EDGE = 1e-8  # of the same: a slack below it is found again in rational arithmetic
WHOLE_EDGE = 1e-5  # of the same: a slack below it is found again where nothing need round
SEARCH = (1e-13, 1e-11)  # of the same: gains that are not looked for
MARGIN = 1e-9  # of the same: gains of the largest margin that are not, in large problems
ROUGH = (1e-7, 1e-6)  # accuracy and gains of a first search, which finds where to look


class Safest(NamedTuple):
    """The mixture with the largest smallest slack."""

    slack: float
    value: float  # of the objective


class Search:
    """One problem with the memory of its pricing, and policies [X] to begin with."""

    def __init__(self, problem: StationaryCMDP, warm: Iterable[Any] = ()) -> None:
        self.problem = problem
        self.large = problem.states > LARGE
        assert isinstance(problem.criterion, Discounted)
        self.steps = problem.criterion.total
        self.pricing = discounted.Pricing(problem, 1e-12 if self.large else 1e-14)
        most = self.pricing.size
        self.scale = self.steps * (float(most.max()) or 1.0)
        self.size = self.steps * (float(most[0]) or 1.0)
        self.brief = problem.states <= MOST_STATES
        self.known: dict[bytes, Column] = {}
        self.warm = [each for each in warm if fits(each, problem.opened)]

    def best(self, weights: Array) -> Column:
        """Return the best policy for weights on the returns, as one column per policy."""
        found = self.pricing.best(weights)
        return self.known.setdefault(found.policy.tobytes(), found)

    def pool(self, gain: float, warm: Iterable[Any], even: Array | float = 1.0) -> Pool:
        """Return a search that begins with policies [X], and compares slacks in units [N]."""
        known = [self.pricing.followed(each) for each in warm]
        return Pool(self.best, self.problem.threshold, (self.size, self.scale), known, gain, even)

    def roughly(self) -> tuple[list[Any], Array]:
        """Return policies and multipliers near the optimum, at a third of its price."""
        accuracy, gain = ROUGH
        accuracy, self.pricing.accuracy = self.pricing.accuracy, accuracy
        pool = self.pool(gain, ())
        safe = pool.widest()
        best = pool.best() if safe.value > 0.0 else safe
        self.pricing.accuracy = accuracy
        self.known.clear()  # their returns are rough
        return [each.policy for each in (*safe.columns, *best.columns)], best.multiplier

    def bound(self, weight: float, multiplier: Array) -> float:
        """Return a bound on w J[r^0] + sum_n multiplier[n] (J[r^n] - b^n) of every policy."""
        weights, owed = np.array([weight, *multiplier]), multiplier * self.problem.threshold
        unsure = 2.0**-50 * len(weights) * float(np.abs(owed).sum())
        return self.pricing.bound(weights) - float(owed.sum()) + unsure

    def played(self, found: Found) -> tuple[Array, Array | None]:
        """Return a policy [X, A] with a mixture's visits, else of its first, and the visits."""
        X, A = self.problem.states, self.problem.actions
        states, pairs = np.arange(X), np.zeros((X, A))
        policy, visited = np.zeros((X, A)), None
        policy[states, found.columns[0].policy] = 1.0
        if len(found.columns) == 1:
            return policy, None
        for each, share in zip(found.columns, found.shares, strict=True):
            one = np.zeros((X, A))
            one[states, each.policy] = 1.0
            visits = exact.visits(self.problem, one, visited)
            visited = visits.states
            pairs[states, each.policy] += float(share) * np.maximum(visited, 0.0)
        mass = pairs.sum(axis=1, keepdims=True)
        np.divide(pairs, mass, out=policy, where=mass > 0.0)
        return policy, visited


def optimum(
    problem: StationaryCMDP,
    warm: Iterable[Any] = (),
    first: Array | None = None,
    unsure: Array | None = None,
    even: Array | None = None,
) -> Optimum:
    """Return the certified optimum, from policies [X] and multipliers [N] to begin with.

    unsure : the uncertainty [N] of the thresholds in doubles. even : the units [N] in which the
    slacks of the safest policy are compared, if the units differ.
    """
    search = Search(problem, warm)
    if not problem.constraints:
        for each in search.warm[:1]:
            search.pricing.followed(each)
        column = search.best(np.ones(1))
        dual, most, least = search.pricing.proved(np.ones(1))
        returns = np.clip(column.returns, least, most)
        given = (returns, np.zeros(0), dual, dual - least, None, (column.policy,))
        best = Optimum(None, *given)
        if search.brief and not best.doubt <= CLOSED[search.large] * search.size:
            return _wholly(search, None, None)
        return _judged(search, best)
    quick = _quickly(search, first, even)
    if quick is not None:
        return quick
    return _wholly(search, unsure, even) if search.brief else _exactly(search, even)


def _quickly(search: Search, first: Array | None, even: Array | None) -> Optimum | None:
    """Return the optimum by a search in doubles, or None if a doubt is left."""
    warm, gain = search.warm, SEARCH[search.large]
    if search.large and not warm:
        warm, first = search.roughly()
    pool = search.pool(MARGIN if search.large else gain, warm)
    safe = pool.widest()
    most = search.bound(0.0, safe.multiplier)
    if most < -SHORT * search.scale:
        slack = safe.value if even is None else _slack(search, pool, even)
        return infeasible(slack)
    edge = WHOLE_EDGE if search.brief else EDGE
    if safe.value <= edge * search.scale or most - safe.value > CLOSED[search.large] * search.scale:
        return None
    pool.gain = gain
    found = pool.best(first)
    if found.shortfall > SHORT * search.scale:
        return None
    best = _bounded(search, found, Safest(safe.value, float(safe.returns[0])), 0.0)
    if not best.doubt <= CLOSED[search.large] * search.size:
        return None
    return best if even is None else best._replace(slack=_slack(search, pool, even))


def _slack(search: Search, pool: Pool, even: Array) -> float:
    """Return the largest smallest slack, compared in units [N]."""
    other = search.pool(float(pool.gain), (each.policy for each in pool.columns), even)
    return float(other.widest().value)


def _exactly(search: Search, even: Array | None) -> Optimum:
    problem, tolerance = search.problem, Fraction(SEARCH[search.large] * search.scale)
    thresholds = [Fraction(b) for b in problem.threshold.tolist()]
    pool = Pool(in_fractions(search.best), thresholds, gain=tolerance)
    safe = pool.widest()
    slack = float(safe.value)
    most = search.bound(0.0, in_doubles(safe).multiplier)
    if most < -SHORT * search.scale:
        return infeasible(slack)
    if most - slack > CLOSED[search.large] * search.scale:
        raise _refusal(
            problem,
            f"its Slater gap is known to {(most - slack) / search.scale:.1e} of its range only",
        )
    lowered = max(-safe.value, Fraction(0))
    # Without slack the multipliers are not unique. A hair's breadth makes them the slope.
    hair = Fraction(search.scale) / (1 << 60) if slack <= SHORT * search.scale else Fraction(0)
    mixture = pool.lowered(lowered + hair).best()
    if mixture.shortfall > 0:
        raise _refusal(problem, "its thresholds are met by less than rounding")
    value = float(in_doubles(safe).returns[0])
    found = _bounded(search, in_doubles(mixture), Safest(slack, value), float(lowered + hair))
    if slack <= CLOSED[search.large] * search.scale:
        found = found._replace(slack=0.0)
    elif even is not None:
        found = found._replace(slack=_slack(search, search.pool(MARGIN, ()), even))
    return _judged(search, found)


def _wholly(search: Search, unsure: Array | None, even: Array | None) -> Optimum:
    assert search.brief
    price = WholeDiscounted(search.problem, lambda weights: search.best(weights).policy)
    best = rational.optimum(price, search.problem.threshold, unsure, even)
    return _judged(search, best) if best.feasible else best


def _bounded(search: Search, found: Found, safe: Safest | None, lowered: float) -> Optimum:
    """Return a mixture's policy with the bounds that it proves, however it was found.

    If the policy falls short by a rounding, the doubt includes a loss. The loss is the value that
    mixing in enough of the safest policy would cost.
    """
    problem, multiplier = search.problem, found.multiplier
    policy, begun = search.played(found)
    visits = exact.visits(problem, policy, begun)
    pairs = visits.states[:, None] * policy
    returns = exact.earned(problem, pairs)
    dual = search.bound(1.0, multiplier)
    short = float(np.max(problem.threshold - returns[1:], initial=0.0)) - lowered
    error = visits.error * float(np.abs(problem.reward[0]).max())
    doubt = abs(dual - float(returns[0])) + error + lowered * float(multiplier.sum())
    if short > 0.0 and safe is not None:
        room = short / (short + safe.slack) if safe.slack > 0.0 else 1.0
        lost = room * abs(float(returns[0]) - safe.value)
        doubt += min(lost, short * float(multiplier.sum()) + error)
    if short > SHORT * search.scale:
        doubt = np.inf
    slack, mixed = None if safe is None else safe.slack, tuple(c.policy for c in found.columns)
    return Optimum(policy, returns, multiplier, dual, doubt, slack, mixed, pairs)


def _judged(search: Search, best: Optimum) -> Optimum:
    if not best.doubt <= CLOSED[search.large] * search.size:
        raise _refusal(search.problem, _open(search.problem, best.doubt / search.size))
    return best


def _open(problem: StationaryCMDP, share: float) -> str:
    cause = "doubles have no more digits at this discount"
    if problem.constraints:
        cause = "its constraints nearly depend on each other or leave hardly any slack"
    return f"its optimum is known to {share:.1e} of the objective's range only, because {cause}"


def _refusal(problem: StationaryCMDP, why: str) -> OpenCertificateError:
    return OpenCertificateError(f"{problem.name} cannot be solved: {why}")
