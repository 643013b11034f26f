"""Bounds on an optimum in rational arithmetic: what floats say is taken literally, nothing rounds.

For every lambda >= 0 the best policy for r^0 + sum lambda^n r^n bounds the optimum from above. A
policy that meets every threshold bounds it from below; one that falls short by a rounding is mixed
with one that has slack until it does not.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from cmdplab.problem import CMDP
from cmdplab.solvers import Box, Solution, largest_margin

Array = np.ndarray
exactly = np.frompyfunc(Fraction, 1, 1)


def exact_returns(problem: CMDP, policy: Array) -> Array:
    """[1 + N] of V[r^n] for a policy whose rows are scaled to sum to one exactly."""
    pi = exactly(policy)
    pi = pi / pi.sum(axis=-1, keepdims=True)
    value = exactly(np.zeros((1 + problem.constraints, problem.states)))
    for h in reversed(range(problem.horizon)):
        rows = exactly(problem.table[h])
        ahead = np.stack([(rows * each).sum(axis=-1) for each in value])
        value = (pi[h] * (exactly(problem.reward[:, h]) + ahead)).sum(axis=-1)
    return np.asarray(value[:, problem.start])


def exact_bound(problem: CMDP, multiplier: Array) -> Fraction:
    """max over policies of V[r^0] + sum lambda^n (V[r^n] - b^n)."""
    price = exactly(multiplier)
    value = exactly(np.zeros(problem.states))
    for h in reversed(range(problem.horizon)):
        reward = exactly(problem.reward[0, h])
        for n, each in enumerate(price):
            reward = reward + each * exactly(problem.reward[n + 1, h])
        q = reward + (exactly(problem.table[h]) * value).sum(axis=-1)
        q = np.where(problem.opened[h], q, Fraction(-(10**9)))
        value = q.max(axis=-1)
    owed: Any = sum((p * Fraction(b) for p, b in zip(price, problem.threshold, strict=True)), 0)
    return value[problem.start] - owed


def bracket(problem: CMDP, found: Solution) -> tuple[float, float]:
    """(low, high): the optimum lies between, whatever rounding did.

    Without slack the thresholds are taken to be those that the found policy meets.
    """
    high = float(exact_bound(problem, found.multiplier))
    values = exact_returns(problem, found.policy)
    slack = min((v - Fraction(b) for v, b in zip(values[1:], problem.threshold, strict=True)))
    if slack >= 0:
        return float(values[0]), high
    box = Box.of(problem)
    safe = largest_margin(box, problem.reward, problem.threshold, problem.start).policy
    wide = exact_returns(problem, safe)
    room = min((v - Fraction(b) for v, b in zip(wide[1:], problem.threshold, strict=True)))
    if room <= 0:
        owed = sum(
            Fraction(m) * max(Fraction(b) - v, 0)
            for m, v, b in zip(found.multiplier, values[1:], problem.threshold, strict=True)
        )
        return float(values[0] - owed), high
    share = -slack / (room - slack)
    return float((1 - share) * values[0] + share * wide[0]), high
