"""Bounds on an optimum in rational arithmetic: what floats say is taken literally, nothing rounds.

For every lambda >= 0 the best policy for r^0 + sum lambda^n r^n bounds the optimum from above. A
mixture of policies that meets every threshold bounds it from below. Both are computed here, by the
plainest code there is; who proposed the multipliers and the mixture does not matter.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.solvers import Solution
from cmdplab.solvers.mixtures import Found, Pool
from cmdplab.solvers.whole import BITS, WholeEpisodes

Array = np.ndarray
exactly = np.frompyfunc(Fraction, 1, 1)
TINY = Fraction(1, 1 << (BITS - 40))  # what proposals in whole numbers are off by


def exact_returns(problem: CMDP, policy: Array) -> Array:
    """[1 + N] of V[r^n] for a policy of zeros and ones."""
    value = exactly(np.zeros((1 + problem.constraints, problem.states)))
    for h in reversed(range(problem.horizon)):
        rows = exactly(problem.table[h])
        ahead = np.stack([(rows * each).sum(axis=-1) for each in value])
        value = (exactly(policy[h]) * (exactly(problem.reward[:, h]) + ahead)).sum(axis=-1)
    return np.asarray(value[:, problem.start])


def exact_bound(problem: CMDP, weight: int, price: list[Fraction]) -> Fraction:
    """max over policies of w V[r^0] + sum lambda^n (V[r^n] - b^n)."""
    value = exactly(np.zeros(problem.states))
    for h in reversed(range(problem.horizon)):
        reward = weight * exactly(problem.reward[0, h])
        for n, each in enumerate(price):
            reward = reward + each * exactly(problem.reward[n + 1, h])
        q = reward + (exactly(problem.table[h]) * value).sum(axis=-1)
        q = np.where(problem.opened[h], q, Fraction(-(10**99)))
        value = q.max(axis=-1)
    owed: Any = sum((p * Fraction(b) for p, b in zip(price, problem.threshold, strict=True)), 0)
    return Fraction(value[problem.start] - owed)


def mixed(problem: CMDP, mixture: Found) -> list[Fraction]:
    """[1 + N]: the returns of a mixture, recomputed."""
    assert sum(mixture.shares) == 1
    assert min(mixture.shares) >= 0
    total = [Fraction(0)] * (1 + problem.constraints)
    for each, share in zip(mixture.columns, mixture.shares, strict=True):
        returns = exact_returns(problem, each.policy)
        total = [t + share * r for t, r in zip(total, returns, strict=True)]
    return total


def margin(problem: CMDP) -> tuple[Fraction, Fraction]:
    """(low, high): the largest smallest slack lies between."""
    thresholds = [Fraction(b) for b in problem.threshold.tolist()]
    price = WholeEpisodes(problem, problem.reward)
    mixture = Pool(price, thresholds, gain=TINY).widest()
    returns = mixed(problem, mixture)
    low = min(u - b for u, b in zip(returns[1:], thresholds, strict=True))
    total = sum(mixture.multiplier)
    return low, exact_bound(problem, 0, [each / total for each in mixture.multiplier])


def bracket(problem: CMDP, found: Solution) -> tuple[float, float]:
    """(low, high): the optimum lies between, whatever rounding did.

    Thresholds that are out of reach by a rounding are lowered by it.
    """
    slack, _ = margin(problem)
    short = max(-slack, Fraction(0)) + TINY
    thresholds = [Fraction(b) - short for b in problem.threshold.tolist()]
    mixture = Pool(WholeEpisodes(problem, problem.reward), thresholds, gain=TINY).best()
    returns = mixed(problem, mixture)
    over = [u - b for u, b in zip(returns[1:], thresholds, strict=True)]
    assert min(over, default=Fraction(0)) >= -TINY
    bounds = [exact_bound(problem, 1, [Fraction(m) for m in found.multiplier.tolist()])]
    bounds.append(exact_bound(problem, 1, mixture.multiplier.tolist()))
    return float(returns[0]), float(min(bounds))
