"""Optima of stationary problems with a certificate that closes, or no answer at all.

The program over mixtures of deterministic policies is solved in fractions (rational.py). What it
finds becomes one stationary policy, which is evaluated by the plain code of exact_stationary.py;
the multipliers are priced by a bound that holds for any value function at all. A doubt that remains
is an `OpenCertificateError`.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from cmdplab.cmdp import exact_stationary as exact
from cmdplab.cmdp.stationary import Discounted, StationaryCMDP
from cmdplab.errors import OpenCertificateError
from cmdplab.solvers.rational import Mixture, Program, penalised
from cmdplab.solvers.stationary import average, discounted
from cmdplab.types import Array, Indices

LARGE = 5_000  # states from which linear systems are solved by iteration
CLOSED = (1e-9, 1e-8)  # of the largest value there can be: small problems, large ones
SHORT = 1e-9  # of the largest utility there can be: thresholds missed by less are met
SEARCH = (1e-13, 1e-11)  # of the same: gains that are not looked for


class Optimum(NamedTuple):
    """A policy with bounds, and the largest margin of any policy; no policy where none is met."""

    policy: Array | None  # [X, A]
    occupancy: Array | None  # [X, A]
    returns: Array | None  # [1 + N]
    multiplier: Array | None  # [N]
    dual: float | None
    slack: float | None  # of the safest mixture; None for N = 0
    doubt: float  # how far the value may be from the optimum


class Search:
    """One problem with what pricing remembers."""

    def __init__(self, problem: StationaryCMDP) -> None:
        self.problem = problem
        self.large = problem.states > LARGE
        gamma = problem.criterion.discount if isinstance(problem.criterion, Discounted) else 0.0
        self.steps = 1.0 / (1.0 - gamma)
        self.scale = self.steps * (float(np.abs(problem.reward).max()) or 1.0)
        self.size = self.steps * (float(np.abs(problem.reward[0]).max()) or 1.0)
        self.pricing: discounted.Pricing | average.Pricing
        if isinstance(problem.criterion, Discounted):
            self.pricing = discounted.Pricing(problem, 1e-12 if self.large else 1e-14)
        else:
            self.pricing = average.Pricing(problem)
        self.tolerance = Fraction(SEARCH[self.large] * self.scale)

    @property
    def thresholds(self) -> list[Fraction]:
        """The thresholds, exactly."""
        return [Fraction(b) for b in self.problem.threshold.tolist()]

    def bound(self, weight: float, multiplier: Array) -> float:
        """An upper bound on w J[r^0] + sum_n multiplier[n] (J[r^n] - b^n) of every policy."""
        weights = np.array([weight, *multiplier])
        self.pricing.improve(weights)
        reward = np.tensordot(weights, self.problem.reward, axes=1)
        value = self.pricing.values @ weights
        if isinstance(self.pricing, discounted.Pricing):
            found = exact.bound(self.problem, reward, value)
        else:
            found = exact.gain_bound(self.problem, reward, self.pricing.gains @ weights, value)
        return found - float(multiplier @ self.problem.threshold)

    def played(self, mixture: Mixture) -> Array:
        """[X, A]: one policy with the visits of a mixture; elsewhere that of its first vertex."""
        X, A = self.problem.states, self.problem.actions
        states, pairs = np.arange(X), np.zeros((X, A))
        first = np.zeros((X, A))
        first[states, mixture.vertices[0].policy] = 1.0
        if len(mixture.vertices) == 1:
            return first
        for vertex, share in zip(mixture.vertices, mixture.shares, strict=True):
            policy = np.zeros((X, A))
            policy[states, vertex.policy] = 1.0
            visited = exact.visits(self.problem, policy).states
            pairs[states, vertex.policy] += float(share) * np.maximum(visited, 0.0)
        mass = pairs.sum(axis=1, keepdims=True)
        return np.where(mass > 0.0, pairs / np.where(mass > 0.0, mass, 1.0), first)


def optimum(problem: StationaryCMDP) -> Optimum:
    """The certified optimum."""
    search = Search(problem)
    N = problem.constraints
    if not N:
        vertex = search.pricing.price(Fraction(1), [])
        one = Mixture(
            [vertex], [Fraction(1)], [], vertex.returns[0], vertex.returns[0], Fraction(0)
        )
        return _judged(search, one, None, 0.0, 0.0)
    program = Program(search.thresholds)
    safe = program.best(None, search.pricing.price, search.tolerance)
    slack = float(safe.value)
    most = search.bound(0.0, np.array([float(each) for each in safe.multiplier]))
    if most < -SHORT * search.scale:
        return Optimum(None, None, None, None, None, slack, 0.0)
    if most - slack > CLOSED[search.large] * search.scale:
        raise _refusal(problem, f"the Slater gap is known to {most - slack:.1e} only")
    lowered = max(-safe.value, Fraction(0))
    # Without slack the multipliers are not unique. A hair's breadth makes them the slope.
    hair = Fraction(search.scale) / (1 << 60) if slack <= SHORT * search.scale else Fraction(0)
    program = Program([b - lowered - hair for b in search.thresholds], program.vertices)
    mixture = penalised(program, search.pricing.price, search.tolerance, 0.0)
    if mixture.shortfall > 0:
        raise _refusal(problem, "its thresholds are met by less than rounding")
    value = float(sum(s * v.returns[0] for v, s in zip(safe.vertices, safe.shares, strict=True)))
    return _judged(search, mixture, slack, value, float(lowered + hair))


def _judged(
    search: Search, mixture: Mixture, slack: float | None, safe: float, lowered: float
) -> Optimum:
    """A mixture's policy with the bounds that it proves, however it was found.

    A policy that falls short by a rounding is worth what is left of it after mixing in as much of
    the safest policy as makes up for that.
    """
    problem = search.problem
    policy = search.played(mixture)
    visits = exact.visits(problem, policy)
    pairs = visits.states[:, None] * policy
    returns = exact.earned(problem, pairs)
    multiplier = np.array([float(each) for each in mixture.multiplier])
    dual = search.bound(1.0, multiplier)
    short = float(np.max(problem.threshold - returns[1:], initial=0.0)) - lowered
    error = visits.error * float(np.abs(problem.reward[0]).max())
    doubt = abs(dual - float(returns[0])) + error + lowered * float(multiplier.sum())
    if short > 0.0 and slack is not None:
        room = short / (short + slack) if slack > 0.0 else 1.0
        doubt += min(room * abs(float(returns[0]) - safe), short * float(multiplier.sum()) + error)
    met = short <= SHORT * search.scale
    if not (doubt <= CLOSED[search.large] * search.size and met):
        raise _refusal(problem, _why(search, mixture, policy, doubt))
    return Optimum(policy, pairs, returns, multiplier, dual, slack, doubt)


def _why(search: Search, mixture: Mixture, policy: Array, doubt: float) -> str:
    """The sentence for an optimum that no policy was found to attain."""
    if isinstance(search.pricing, average.Pricing):
        classes = exact.recurrent(exact.chain(search.problem, policy))
        if len(classes) > 1:
            names = " and ".join(_named(search.problem, each) for each in classes[:4])
            return (
                f"its optimum divides the time between the recurrent classes {names}, which one "
                "stationary policy was not found to do"
            )
    return f"the optimum is known to {doubt:.1e} only"


def _named(problem: StationaryCMDP, states: Indices) -> str:
    shown = ", ".join(problem.labels.state(int(x)) for x in states[:4])
    return "{" + shown + (", ..." if len(states) > 4 else "") + "}"


def _refusal(problem: StationaryCMDP, why: str) -> OpenCertificateError:
    return OpenCertificateError(f"{problem.name} cannot be solved: {why}")
