"""Optima of average rewards with a certificate that closes, or no answer at all.

A mixture of deterministic policies is sought in doubles (mixtures.py), and in fractions
(rational.py) where these leave a doubt. It becomes one stationary policy, which is evaluated anew.
Everything here is counted in the ranges of the signals (average.py: Scaled).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from cmdplab.cmdp import exact_stationary as exact
from cmdplab.cmdp.stationary import StationaryCMDP
from cmdplab.errors import OpenCertificateError
from cmdplab.solvers.mixtures import Column, Found, Pool, fits, in_doubles, in_fractions
from cmdplab.solvers.rational import Optimum, infeasible
from cmdplab.solvers.stationary.average import DECIMALS, EPS, Classes, Scaled, Sweeps
from cmdplab.solvers.stationary.linked import linked
from cmdplab.types import Array, Indices

CLOSED = 1e-9  # certificates; thresholds missed by less are met, and slack below it is none
EDGE = 1e-8  # a slack below it is found again in fractions
CONFIRMED = 1e-10  # returns from visits
GAIN = 1e-13  # policies that are better by less are not looked for
SMALL = 60  # states up to which visits are eliminated, not iterated
GRAIN = Fraction(1, 1 << 120)  # what numbers of 150 digits are unsure of, and much more
ULPS = 32.0 * EPS / CLOSED  # of the largest reward or threshold: a range below it is rounding

Pricing = Sweeps | Classes


def optimum(problem: StationaryCMDP, warm: Iterable[Any], first: Array | None) -> Optimum:
    """Return the certified optimum, from policies [X] and multipliers [N] to begin with."""
    scaled = Scaled(problem)
    begun = [each[scaled.at] for each in warm if fits(each, problem.opened)]
    known: list[Pricing] = []
    small = scaled.problem.states <= DECIMALS

    def searched(make: Callable[[], Pricing]) -> Optimum:
        pricing = make()
        known.append(pricing)
        if not problem.constraints:
            return _unconstrained(scaled, pricing, begun)
        return _in_doubles(scaled, pricing, begun, first)

    ways: list[Callable[[], Optimum]] = [
        partial(searched, partial(Sweeps, scaled)),
        partial(searched, partial(Classes, scaled, False)),
        lambda: _in_fractions(scaled, Classes(scaled, True) if small else known[-1]),
    ]
    why = ""
    for way in ways:
        try:
            return way()
        except (OpenCertificateError, np.linalg.LinAlgError) as error:
            why = str(error)
    raise OpenCertificateError(f"{problem.name} cannot be solved: {why}")


class Prices:
    """Best policies and bounds in the user's units, by the first way that closes."""

    def __init__(self, problem: StationaryCMDP) -> None:
        self.scaled = Scaled(problem)
        self.scale = float(np.abs(problem.reward).max()) or 1.0  # the largest return there can be
        ways: list[Callable[[], Pricing]] = [partial(Sweeps, self.scaled)]
        exacts = (False, True) if self.scaled.problem.states <= DECIMALS else (False,)
        self._ways = ways + [partial(Classes, self.scaled, each) for each in exacts]
        self._pricing = self._ways.pop(0)()

    def best(self, weights: Array) -> Column:
        """Return the best policy for weights of any sign, and its returns."""
        scaled = self.scaled
        while True:
            try:
                found = self._pricing.best(self._scaled(weights))
            except OpenCertificateError:
                if not self._ways:
                    raise
                self._pricing = self._ways.pop(0)()
            else:
                returns = scaled.low + scaled.size * found.returns.astype(np.float64)
                return Column(returns, scaled.full_actions(found.policy))

    def bound(self, weight: float, multiplier: Array) -> float:
        """Return a bound on w J[r^0] + sum_n multiplier[n] (J[r^n] - b^n) of every policy."""
        weights = np.append(weight, multiplier)
        self.best(weights)
        size = float(np.abs(weights * self.scaled.size).sum()) or 1.0
        found = float(self._pricing.bound(self._scaled(weights))) * size
        found += float(weights @ self.scaled.low)
        return found - float(multiplier @ self.scaled.whole.threshold)

    def _scaled(self, weights: Array) -> Array:
        """Return the weights of the scaled signals, whose absolute values sum to one."""
        found = weights * self.scaled.size
        return np.asarray(found / (np.abs(found).sum() or 1.0))


def _unconstrained(scaled: Scaled, pricing: Pricing, begun: list[Any]) -> Optimum:
    for each in begun[:1]:
        pricing.followed(each)
    column, one = pricing.best(np.ones(1)), np.ones(1)
    bound = pricing.bound(one)
    value = column.returns[0]  # sweeps give a lower bound
    _check(bound - value, "the optimum")
    policy = np.eye(scaled.problem.actions)[column.policy]
    if len(policy) <= SMALL and not pricing.exact:  # elimination knows it to its last digits
        pairs = exact.visits(scaled.problem, policy).states[:, None] * policy
        value = max(value, float(np.sum(scaled.reward[0] * pairs)))
    return _in_units(scaled, (policy, float(value), np.zeros(0), float(bound)), None, [column])


def _in_doubles(scaled: Scaled, pricing: Pricing, begun: list[Any], first: Array | None) -> Optimum:
    found: dict[bytes, Column] = {}

    def priced(weights: Array) -> Column:
        column = pricing.best(weights)
        return found.setdefault(column.policy.tobytes(), column)

    known = [pricing.followed(each) for each in begun]
    pool = Pool(priced, scaled.threshold, known=known, gain=GAIN)
    safe = pool.widest()
    most = pricing.bound(np.append(0.0, safe.multiplier)) - safe.multiplier @ scaled.threshold
    if most < -CLOSED:
        return infeasible(_slack(scaled, safe.value, pricing, found.values()))
    _check(most - safe.value if safe.value > EDGE else np.inf, "the Slater gap")
    _confirm(scaled, pricing, safe)
    guess = None if first is None else first * scaled.size[1:] / scaled.size[0]
    best = pool.best(guess)
    dual = pricing.bound(np.append(1.0, best.multiplier)) - best.multiplier @ scaled.threshold
    dual += 8.0 * EPS * (1.0 + best.multiplier @ (1.0 + np.abs(scaled.threshold)))
    policy, low = _played(scaled, best, pricing)
    short = float(np.max(scaled.threshold - low[1:], initial=0.0))
    if short > CLOSED:
        raise OpenCertificateError(_why(scaled, policy, float(dual)))
    room = short / (short + safe.value)  # of the safest policy, which would make up for it
    lost = min(room, short * float(best.multiplier.sum()))
    _check(max(dual - low[0], 0.0) + lost, "the optimum")
    slack = _slack(scaled, safe.value, pricing, found.values())
    answer = (policy, float(low[0]), best.multiplier, float(dual))
    return _in_units(scaled, answer, slack, best.columns)


def _confirm(scaled: Scaled, pricing: Pricing, found: Found) -> None:
    """Check the returns of policies whose visits were swept by bounds from every state."""
    if isinstance(pricing, Sweeps):
        for each in found.columns:
            bounds = np.array(pricing.gains(np.eye(scaled.problem.actions)[each.policy]))
            if not np.abs(bounds - each.returns).max() <= CONFIRMED:
                raise OpenCertificateError("visits do not close")


def _slack(scaled: Scaled, slack: float, pricing: Any, known: Iterable[Column]) -> float:
    """Return the largest smallest slack in the user's units, which may differ by signal."""
    size = scaled.size[1:]
    unit = float(size.max())
    if (size == unit).all():
        return slack * unit

    def priced(weights: Array) -> Column:
        column = pricing.best(weights)
        return Column(column.returns.astype(np.float64), column.policy)

    pool = Pool(priced, scaled.threshold, known=known, even=unit / size)
    return float(pool.widest().value) * unit


def _in_fractions(scaled: Scaled, pricing: Pricing) -> Optimum:
    if not scaled.limits and not pricing.exact:
        raise OpenCertificateError("policy iteration does not close")
    if not scaled.limits:
        return _unconstrained(scaled, pricing, [])
    price = pricing.best if pricing.exact else in_fractions(pricing.best)
    tolerance = Fraction(1, 1 << 160) if pricing.exact else Fraction(GAIN)
    pool, zero = Pool(price, scaled.limits, gain=tolerance), Fraction(0)

    def bounded(weight: int, multiplier: Array, limits: Array) -> Any:
        weights: Any = [Fraction(weight), *multiplier]
        if not pricing.exact:
            weights = np.array([float(each) for each in weights])
        most: Any = Fraction(pricing.bound(weights))
        return most - multiplier @ limits

    safe = pool.widest()
    most = bounded(0, safe.multiplier, pool.threshold)
    _check(most - safe.value, "the Slater gap")
    ranges = _ranges(scaled, price)
    # The same margin, each slack in units of what policies can earn.
    gain = tolerance * min(*ranges, Fraction(1))
    room = Pool(price, scaled.limits, known=pool.columns, gain=gain, even=ranges).widest().value
    if most < 0 and room < -CLOSED:
        return infeasible(_slack(scaled, float(safe.value), pricing, ()))
    # Thresholds that are missed by a rounding are lowered by it. Without slack the multipliers are
    # not unique: a hair's breadth makes them the slope.
    edge = room <= CLOSED
    lack = max(-room, zero) * np.array(ranges)
    hair = Fraction(1, 1 << (140 if pricing.exact else 60)) if edge else zero
    mixture = pool.lowered(lack + hair).best()
    _check(mixture.shortfall * 1e9, "the mixture")
    value = mixture.returns[0]
    dual = bounded(1, mixture.multiplier, pool.threshold - lack) + GRAIN
    _check(max(dual - value, zero) + hair * sum(mixture.multiplier), "the optimum")
    kept = [k for k, share in enumerate(mixture.shares) if share > 2 * hair]
    found = in_doubles(mixture)
    shares = found.shares[kept] / found.shares[kept].sum()
    found = found._replace(columns=[found.columns[k] for k in kept], shares=shares)
    policy, low = _played(scaled, found, pricing)
    if not np.abs(low - found.returns).max() <= CLOSED:
        why = _why(scaled, policy, float(value))
        other = linked(scaled, float(value), CLOSED) if len(policy) <= SMALL else None
        if other is None:
            raise OpenCertificateError(why)
        policy, low = other, _gains(scaled, other)
        short = max(float(value) - low[0], float(np.max(scaled.threshold - low[1:])))
        if not short <= CLOSED:
            raise OpenCertificateError(why)
    slack = 0.0
    if not edge:
        slack = _slack(scaled, float(safe.value), pricing, in_doubles(safe).columns)
    best = (policy, min(float(low[0]), float(dual)), found.multiplier, float(dual))
    return _in_units(scaled, best, slack, found.columns)


def _ranges(scaled: Scaled, price: Any) -> list[Fraction]:
    """Return the ranges [N] of policies' returns, plus 1e9 times the rounding of the signals."""
    N, found = len(scaled.limits), []
    problem = scaled.problem
    for n in range(N):
        unit = [Fraction(int(m == n + 1)) for m in range(N + 1)]
        most = price(unit).returns[n + 1]
        least = price([-m for m in unit]).returns[n + 1]
        large = max(float(np.abs(problem.reward[n + 1]).max()), abs(float(problem.threshold[n])))
        found.append(most - least + Fraction(ULPS * large / float(scaled.size[n + 1])))
    return [each or Fraction(1) for each in found]


def _check(doubt: Any, what: str) -> None:
    """Refuse a number that is not known well enough, in ranges of its signal."""
    if not doubt <= CLOSED:
        raise OpenCertificateError(
            f"{what} is known to {float(doubt):.1e} of the range of the rewards only, because "
            "probabilities, prices or slacks are as small as rounding"
        )


def _why(scaled: Scaled, policy: Array, value: float) -> str:
    """Return the reason why a policy earns less than its mixture."""
    classes = exact.recurrent(exact.chain(scaled.problem, policy))
    if len(classes) == 1:
        return "its policy is known to less than 1e-9 of the range of the rewards"

    def named(states: Indices) -> str:
        shown = ", ".join(scaled.whole.labels.state(int(x)) for x in scaled.at[states[:4]])
        return "{" + shown + (", ..." if len(states) > 4 else "") + "}"

    value = float(scaled.low[0] + scaled.size[0] * value)
    return (
        f"its optimum, {value:.6g}, divides the time between the recurrent classes "
        f"{' and '.join(map(named, classes[:4]))}, which one stationary policy was not found to do"
    )


def _played(scaled: Scaled, found: Found, pricing: Pricing) -> tuple[Array, Array]:
    """Return a policy [X, A] with the visits of a mixture, else of its first, and its gains [1 +
    N].

    In states that the mixture only passes, the policy acts as the mixture does when it passes.
    These states decide where it ends up (Kallenberg's rule). Gains from sweeps are lower bounds.
    """
    problem, X, A = scaled.problem, scaled.problem.states, scaled.problem.actions
    states, pairs, passed = np.arange(X), np.zeros((X, A)), np.zeros((X, A))
    policy, spent = np.zeros((X, A)), np.full(X, 1.0 / X)
    policy[states, found.columns[0].policy] = 1.0
    if len(found.columns) > 1:
        for each, share in zip(found.columns, found.shares, strict=True):
            one = np.zeros((X, A))
            one[states, each.policy] = 1.0
            if isinstance(pricing, Sweeps) and X > SMALL:
                spent = pricing.visits(one, spent)
            else:
                spent, _, passing = exact.visits(problem, one)
                assert passing is not None
                passed[states, each.policy] += float(share) * np.maximum(passing, 0.0)
            pairs[states, each.policy] += float(share) * np.maximum(spent, 0.0)
        for counted in (passed, pairs):
            mass = counted.sum(axis=1, keepdims=True)
            np.divide(counted, mass, out=policy, where=mass > 0.0)
    if isinstance(pricing, Sweeps):
        return policy, pricing.gains(policy)[0]
    return policy, _gains(scaled, policy)


def _gains(scaled: Scaled, policy: Array) -> Array:
    """Return the gains [1 + N] of a policy [X, A], with visits by elimination."""
    pairs = exact.visits(scaled.problem, policy).states[:, None] * policy
    return np.asarray(np.einsum("nxa,xa->n", scaled.reward, pairs))


def _in_units(
    scaled: Scaled,
    best: tuple[Array, float, Array, float],
    slack: float | None,
    columns: Iterable[Column],
) -> Optimum:
    """Return (policy, value, multiplier, dual) in the user's units, with the bound rounded up."""
    policy, value, multiplier, dual = best
    low, size = float(scaled.low[0]), float(scaled.size[0])
    value, dual = low + size * value, low + size * dual
    dual += EPS * (abs(low) + abs(dual))
    value, multiplier = min(value, dual), multiplier * size / scaled.size[1:]
    mixed = tuple(scaled.full_actions(each.policy) for each in columns)
    given = (np.array([value]), multiplier, dual, dual - value, slack, mixed)
    return Optimum(scaled.full(policy), *given)
