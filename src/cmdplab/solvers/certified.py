"""Optima of a known kernel with a certificate that closes, or no answer at all.

Independent code (known.py) judges the result of a search. It evaluates the policy as written, and
prices the multipliers by values that prove their bound. If a doubt is left, the program is solved
again in rational arithmetic, with policies priced without a tolerance for ties. If a doubt is still
left, all arithmetic is in whole numbers. A remaining doubt raises `OpenCertificateError`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.errors import OpenCertificateError
from cmdplab.solvers import box, rational, whole
from cmdplab.solvers.known import Known
from cmdplab.solvers.layout import Box
from cmdplab.solvers.mixtures import Found, Pool, in_doubles, in_fractions
from cmdplab.solvers.rational import Optimum, infeasible
from cmdplab.types import Array

SHARP = 1e-12  # of H times the largest reward: a doubt below it is not looked at again
CLOSED = 1e-9  # of the same: the largest gap of a certificate
ROUNDING = 1e-15  # of H: what doubles leave unsure of a utility; multipliers price it
LOOSEST = 1e-7  # what they may leave unsure of an optimum, where whole numbers take too long
EDGE = 1e-8  # of H: a slack below it is found again in rational arithmetic
WHOLE_EDGE = 1e-5  # of H: a slack below it is found again where nothing need round
SHORT = 1e-10  # of H: thresholds that are missed by less are met but for rounding
SHORT_BY_ROUNDING = 1e-13  # of H: what a policy in doubles may miss a threshold by


class Widest(NamedTuple):
    """The policy with the largest smallest slack."""

    slack: float  # min_n (V[r^n] - b^n)
    value: float  # V[r^0]


class Candidate(NamedTuple):
    """The policy that a search returns as the best."""

    policy: Array  # [H, X, A]
    multiplier: Array  # [N]
    value: float
    mixed: tuple[Any, ...] = ()  # the policies [H, X] of the mixture


def attempt(
    known: Known,
    first: Array | None = None,
    unsure: Array | None = None,
    even: Array | None = None,
) -> Optimum:
    """Return the certified optimum, from multipliers to start with.

    unsure : the uncertainty [N] of the thresholds in doubles. even : the units [N] in which the
    slacks of the safest policy are compared, if the units differ.
    """
    if not len(known.threshold):
        return unconstrained(known)
    H = known.problem.horizon
    safe = _widest(known)
    if known.brief and (safe is None or safe.slack <= WHOLE_EDGE * H):
        return _wholly(known, unsure, even)
    if safe is None or safe.slack <= EDGE * H:
        safe = _widest_exactly(known)
    slack = safe.slack if even is None else known.searching(even).widest().value
    if safe.slack < -SHORT * H:
        return infeasible(slack)
    best = _optimum(known, safe, first)
    if not best.feasible:
        return best
    return best._replace(slack=slack if safe.slack > SHARP * H else 0.0)


def _widest(known: Known) -> Widest | None:
    """Return the largest margin by a search, or None if a doubt is left."""
    found = _safest(known)
    _, returns = known.returns(found.policy)
    slack = float(np.min(returns[1:] - known.threshold))
    multiplier = found.multiplier / (float(found.multiplier.sum()) or 1.0)
    doubt = abs(known.bound(0.0, multiplier) - slack) + abs(slack - found.value)
    sharp = SHARP * known.problem.horizon + known.rounding(0.0, multiplier)
    return Widest(found.value, float(returns[0])) if doubt <= sharp else None


def _safest(known: Known) -> Candidate:
    """Return the policy of the largest margin, by a search."""
    if known.small:
        p = known.problem
        planned = box.largest_margin(Box.of(p), known.problem.reward, known.threshold, p.start)
        return Candidate(planned.policy, planned.multiplier, planned.primal)
    found = known.pool.widest()
    return Candidate(known.played(found), found.multiplier, found.value)


def _best(known: Known, first: Array | None) -> Candidate:
    """Return the optimal policy by a search, from multipliers to start with."""
    if known.small:
        p = known.problem
        planned = box.plan(Box.of(p), known.problem.reward, known.threshold, p.start, first)
        return Candidate(planned.policy, planned.multiplier, planned.primal)
    found = known.pool.best(first)
    used = tuple(each.policy for each in found.columns)
    return Candidate(known.played(found), found.multiplier, found.value, used)


def _widest_exactly(known: Known) -> Widest:
    H = known.problem.horizon
    price, tolerance = in_fractions(known.price), Fraction(H, 1 << 52)
    found = in_doubles(Pool(price, known.thresholds, gain=tolerance).widest())
    _, returns = known.returns(_played(known, found))
    slack = found.value
    doubt = abs(known.bound(0.0, found.multiplier) - slack)
    if not doubt <= CLOSED * H:
        raise _refusal(known, f"its Slater gap is known to {doubt / H:.1e} of its range only")
    return Widest(slack, float(returns[0]))


def _wholly(known: Known, unsure: Array | None = None, even: Array | None = None) -> Optimum:
    """Return the optimum without any rounding."""
    price = whole.WholeEpisodes(known.problem, known.problem.reward)
    best = rational.optimum(price, known.threshold, unsure, even)
    if best.feasible and not best.doubt <= CLOSED * known.size:
        raise _open(known, best.doubt)
    return best._replace(mixed=())  # its policies are tables, which no search begins with


def unconstrained(known: Known) -> Optimum:
    """Return the certified optimum without constraints: one sweep, and a proof of its values."""
    value, actions = known.swept(np.ones(1))
    returns = known.followed(actions).returns
    dual = known.proved(np.ones(1), value)
    none, doubt = np.zeros(0), abs(dual - float(returns[0]))
    return _closed(known, Optimum(None, returns, none, dual, doubt, None, (actions,)))


def _optimum(known: Known, safe: Widest, first: Array | None) -> Optimum:
    """Return the certified optimum of a feasible problem."""
    if safe.slack <= SHARP * known.problem.horizon:
        best = _exactly(known)
    else:
        found = _best(known, first)
        best = _judged(known, found, safe)
        if not best.doubt <= SHARP * known.size + known.rounding(1.0, best.multiplier):
            again = _exactly(known)
            best = min(best, again, key=lambda each: each.doubt)
    return _closed(known, best)


def _closed(known: Known, best: Optimum) -> Optimum:
    """Return an optimum whose certificate is within `CLOSED`, if needed by whole numbers."""
    problem, reward = known.problem, known.problem.reward
    unsure = ROUNDING * problem.horizon * float(best.multiplier.sum())
    if not best.doubt + unsure <= CLOSED * known.size and whole.affordable(problem, reward):
        return _wholly(known)
    if not (best.doubt <= CLOSED * known.size and unsure <= LOOSEST * known.size):
        raise _open(known, best.doubt + unsure)
    return best


def _judged(known: Known, found: Candidate, safe: Widest) -> Optimum:
    """Return a policy with the bounds that it proves, however it was found.

    If the policy falls short by a rounding, the doubt includes a loss. The loss is the value that
    mixing in enough of the safe policy would cost.
    """
    _, returns = known.returns(found.policy)
    dual = known.bound(1.0, found.multiplier)
    short = float(np.max(exact.violation(known.threshold, returns[1:]), initial=0.0))
    loss = 0.0
    if short > 0.0:
        share = short / (short + safe.slack) if safe.slack > 0.0 else np.inf
        loss = share * max(float(returns[0]) - safe.value, CLOSED)
    doubt = abs(dual - float(returns[0])) + loss
    return Optimum(found.policy, returns, found.multiplier, dual, doubt, mixed=found.mixed)


def _exactly(known: Known) -> Optimum:
    """Return the optimum by rational arithmetic, with multipliers as small as they can be.

    The mixture meets the thresholds exactly, and the policy is its rounding. Thresholds that are
    out of reach by a rounding are lowered by it, which counts at the price of the multipliers.
    """
    H = known.problem.horizon
    price, tolerance = in_fractions(known.price), Fraction(H, 1 << 52)
    pool = Pool(price, known.thresholds, gain=tolerance)
    slack = pool.widest().value
    lowered = max(-slack, Fraction(0))
    # Without slack the multipliers are not unique. A hair's breadth makes them the slope.
    hair = Fraction(H, 1 << 120) if slack <= SHARP * H else 0
    mixture = pool.lowered(lowered + hair).best()
    found = in_doubles(mixture)
    policy, multiplier, value = _played(known, found), found.multiplier, found.value
    _, returns = known.returns(policy)
    dual = known.bound(1.0, multiplier)
    priced = float(lowered * sum(mixture.multiplier))
    doubt = abs(dual - value) + abs(value - float(returns[0])) + priced
    short = float(np.max(exact.violation(known.threshold, returns[1:]), initial=0.0)) - float(
        lowered
    )
    met = mixture.shortfall == 0 and short <= SHORT_BY_ROUNDING * H
    return Optimum(policy, returns, multiplier, dual, doubt if met else np.inf)


def _played(known: Known, found: Found) -> Array:
    """Return the policy [H, X, A] of a mixture, with its first column at states without mass."""
    pairs = sum(
        share * exact.occupancy(known.problem, each.policy)
        for each, share in zip(found.columns, found.shares, strict=True)
    )
    return exact.policy_of(np.asarray(pairs), found.columns[0].policy)


def _open(known: Known, doubt: float) -> OpenCertificateError:
    share = doubt / known.size
    return _refusal(known, f"its optimum is known to {share:.1e} of the objective's range only")


def _refusal(known: Known, why: str) -> OpenCertificateError:
    return OpenCertificateError(
        f"{known.problem.name} cannot be solved: {why}, because its constraints nearly depend on "
        "each other or leave hardly any slack"
    )
