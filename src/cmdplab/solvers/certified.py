"""Optima of a known kernel with a certificate that closes, or no answer at all.

What the compiled planner finds is judged by the plain dynamic programs of exact.py: its policy is
evaluated and its multipliers are priced. Where that leaves a doubt, the program is solved again in
rational arithmetic, with policies that are priced without a tolerance for ties; where it still
does, in whole numbers throughout. A doubt that remains is an `OpenCertificateError`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import OpenCertificateError
from cmdplab.solvers import box, fixed_point
from cmdplab.solvers.layout import Box
from cmdplab.solvers.rational import Mixture, Pricing, Program, Vertex
from cmdplab.types import Array

SHARP = 1e-12  # of H times the largest reward: a doubt below it is not looked at again
CLOSED = 1e-9  # of the same: the certificate that is promised
ROUNDING = 1e-15  # of H: what doubles leave unsure of a utility; multipliers price it
LOOSEST = 1e-7  # what they may leave unsure of an optimum, where whole numbers take too long
EDGE = 1e-8  # of H: a slack below it is found again in rational arithmetic
SHORT = 1e-10  # of H: thresholds that are missed by less are met but for rounding
SHORT_BY_ROUNDING = 1e-13  # of H: what a policy in doubles may miss a threshold by
LARGEST_PENALTY = 2**80


class Widest(NamedTuple):
    """The policy with the largest smallest slack."""

    slack: float  # min_n (V[r^n] - b^n)
    value: float  # V[r^0]


class Optimum(NamedTuple):
    """A policy with bounds: the optimum lies between dual and dual - doubt."""

    policy: Array  # [H, X, A]
    occupancy: Array  # [H, X, A]
    returns: Array  # [1 + N]
    multiplier: Array  # [N]
    dual: float
    doubt: float


class Known(NamedTuple):
    """A problem's kernel with rewards and thresholds that need not be its own."""

    problem: CMDP
    reward: Array  # [1 + N, H, X, A]
    threshold: Array  # [N]

    @property
    def size(self) -> float:
        """The largest value of the objective there can be."""
        return self.problem.horizon * float(np.abs(self.reward[0]).max()) or 1.0

    @property
    def thresholds(self) -> list[Fraction]:
        """The thresholds, exactly."""
        return [Fraction(b) for b in self.threshold.tolist()]

    def returns(self, policy: Array) -> tuple[Array, Array]:
        """The occupancy [H, X, A] of a policy, and its returns [1 + N]."""
        pairs = exact.occupancy(self.problem, policy)
        return pairs, np.array([float(np.sum(each * pairs)) for each in self.reward])

    def bound(self, weight: float, multiplier: Array) -> float:
        """max over policies of w V[r^0] + sum_n multiplier[n] (V[r^n] - b^n)."""
        weighted = np.tensordot(np.array([weight, *multiplier]), self.reward, axes=1)
        return exact.greedy(self.problem, weighted)[0] - float(multiplier @ self.threshold)

    def price(self, weight: Fraction, multiplier: list[Fraction]) -> Vertex:
        """The best policy for these weights, in doubles and without a tolerance for ties."""
        weights = np.array([float(weight), *map(float, multiplier)])
        _, policy = exact.greedy(self.problem, np.tensordot(weights, self.reward, axes=1))
        _, returns = self.returns(policy)
        return Vertex(tuple(map(Fraction, returns.tolist())), policy)


def widest(known: Known) -> Widest:
    """The largest margin, certified; N >= 1."""
    problem, reward, threshold = known
    found = box.largest_margin(Box.of(problem), reward, threshold, problem.start)
    _, returns = known.returns(found.policy)
    slack = float(np.min(returns[1:] - threshold))
    total = float(found.multiplier.sum()) or 1.0
    doubt = abs(known.bound(0.0, found.multiplier / total) - slack) + abs(slack - found.primal)
    if doubt <= SHARP * problem.horizon and slack > EDGE * problem.horizon:
        return Widest(found.primal, float(returns[0]))
    return _widest_exactly(known)


def _widest_exactly(known: Known) -> Widest:
    H = known.problem.horizon
    mixture = Program(known.thresholds).best(None, known.price, Fraction(H, 1 << 52))
    _, returns = known.returns(_played(known, mixture))
    multiplier = np.array([float(each) for each in mixture.multiplier])
    slack = float(mixture.value)
    doubt = abs(known.bound(0.0, multiplier) - slack)
    if not doubt <= CLOSED * H:
        raise _refusal(known, f"the Slater gap is known to {doubt:.1e} only")
    return Widest(slack, float(returns[0]))


def attempt(known: Known, first: Array | None = None) -> Optimum | None:
    """The certified optimum, from multipliers to start with; None where nothing is feasible."""
    if not len(known.threshold):
        return optimum(known, None)
    safe = widest(known)
    if safe.slack < -SHORT * known.problem.horizon:
        return None
    return optimum(known, safe, first)


def optimum(known: Known, safe: Widest | None, first: Array | None = None) -> Optimum:
    """The certified optimum of what `widest` found to be feasible; None for N = 0."""
    problem, reward, threshold = known
    if safe is not None and safe.slack <= SHARP * problem.horizon:
        best = _exactly(known, known.price, np.zeros(len(threshold)))
    else:
        found = box.plan(Box.of(problem), reward, threshold, problem.start, first)
        best = _judged(known, found, safe)
        if not best.doubt <= SHARP * known.size:
            again = _exactly(known, known.price, found.multiplier)
            best = min(best, again, key=lambda each: each.doubt)
    unsure = ROUNDING * problem.horizon * float(best.multiplier.sum())
    if not best.doubt + unsure <= CLOSED * known.size and fixed_point.affordable(problem, reward):
        best = _exactly(known, fixed_point.WholePricing(problem, reward), best.multiplier)
        unsure = 0.0
    if not (best.doubt <= CLOSED * known.size and unsure <= LOOSEST * known.size):
        raise _refusal(known, f"the optimum is known to {best.doubt + unsure:.1e} only")
    return best


def _judged(known: Known, found: box.Plan, safe: Widest | None) -> Optimum:
    """A plan with the bounds that it proves, however it was found.

    A policy that falls short by a rounding is worth what is left of it after mixing in as much of
    the safe policy as makes up for that.
    """
    pairs, returns = known.returns(found.policy)
    dual = known.bound(1.0, found.multiplier)
    short = float(np.max(exact.violation(known.threshold, returns[1:]), initial=0.0))
    loss = np.inf if not found.feasible else 0.0
    if short > 0.0 and safe is not None:
        share = short / (short + safe.slack) if safe.slack > 0.0 else np.inf
        loss += share * max(float(returns[0]) - safe.value, CLOSED)
    doubt = abs(dual - float(returns[0])) + loss
    return Optimum(found.policy, pairs, returns, found.multiplier, dual, doubt)


def _exactly(known: Known, price: Pricing, begun: Array) -> Optimum:
    """The optimum by rational arithmetic, with multipliers as small as they can be.

    The mixture meets the thresholds exactly, and the policy is its rounding. Thresholds that are
    out of reach by a rounding are lowered by it, which counts at the price of the multipliers.
    """
    H, whole = known.problem.horizon, isinstance(price, fixed_point.WholePricing)
    tolerance = Fraction(H, 1 << (fixed_point.BITS - 40 if whole else 52))
    program, lowered = Program(known.thresholds), Fraction(0)
    if len(known.threshold):
        slack = program.best(None, price, tolerance).value
        lowered = max(-slack, Fraction(0))
        # Without slack the multipliers are not unique. A hair's breadth makes them the slope.
        hair = Fraction(H, 1 << 120) if slack <= SHARP * H else 0
        program = Program([b - lowered - hair for b in known.thresholds], program.vertices)
    mixture = _penalised(program, price, tolerance, float(begun.sum()))
    multiplier = np.array([float(each) for each in mixture.multiplier])
    policy = _played(known, mixture)
    pairs, returns = known.returns(policy)
    dual = float(mixture.bound) if whole else known.bound(1.0, multiplier)
    value, priced = float(mixture.value), float(lowered * sum(mixture.multiplier))
    doubt = abs(dual - value) + abs(value - float(returns[0])) + priced
    short = float(np.max(exact.violation(known.threshold, returns[1:]), initial=0.0)) - float(
        lowered
    )
    met = mixture.shortfall == 0 and short <= SHORT_BY_ROUNDING * H
    return Optimum(policy, pairs, returns, multiplier, dual, doubt if met else np.inf)


def _penalised(program: Program, price: Pricing, tolerance: Fraction, size: float) -> Mixture:
    """The best mixture that does not fall short, from a guess of how large multipliers are."""
    penalty = Fraction(4 + int(4.0 * size))
    mixture = program.best(penalty, price, tolerance)
    while mixture.shortfall > 0 and penalty < LARGEST_PENALTY:
        penalty *= 8
        mixture = program.best(penalty, price, tolerance)
    return mixture


def _played(known: Known, mixture: Mixture) -> Array:
    """[H, X, A]: the policy of a mixture; where it never comes, that of its first vertex."""
    pairs = sum(
        float(share) * exact.occupancy(known.problem, vertex.policy)
        for vertex, share in zip(mixture.vertices, mixture.shares, strict=True)
    )
    return exact.policy_of(np.asarray(pairs), mixture.vertices[0].policy)


def _refusal(known: Known, why: str) -> OpenCertificateError:
    return OpenCertificateError(
        f"{known.problem.name} cannot be solved: {why}, because its constraints nearly depend on "
        "each other or leave hardly any slack"
    )
