"""One stationary policy with optimal visits, if the classes of an optimal mixture can be linked.

A mixture of deterministic policies may divide its time between recurrent classes. If actions that
lead from one class to another are optimal, too, there is a policy of one class with the same
value. A linear program over visits finds the optimal visits of the largest support.
"""

from __future__ import annotations

import numpy as np

from cmdplab.cmdp import exact_stationary as exact
from cmdplab.solvers.stationary.average import Scaled
from cmdplab.types import Array


def linked(scaled: Scaled, value: float, smallest: float) -> Array | None:
    """Return a policy [X, A] that may have this value, or None; the caller evaluates it.

    The policy is uniform in states without visits. smallest : visits below it are rounding.
    """
    from scipy.optimize import linprog  # a quarter of a second, which other solves do without

    problem, X, A = scaled.problem, scaled.problem.states, scaled.problem.actions
    pairs = X * A
    rows = [np.repeat(row[None], X, axis=0) for row in np.eye(A)]
    moves = np.stack([exact.chain(problem, row).toarray() for row in rows], axis=1)
    flow = np.repeat(np.eye(X), A, axis=1) - moves.reshape(pairs, X).T
    rewards = scaled.reward.reshape(-1, pairs)
    found = linprog(
        np.repeat([0.0, -1.0], pairs),  # visits, and the smaller of each and a small share
        A_eq=np.hstack([np.vstack([flow, np.ones(pairs)]), np.zeros((X + 1, pairs))]),
        b_eq=np.append(np.zeros(X), 1.0),
        A_ub=np.block([[-rewards, 0.0 * rewards], [-np.eye(pairs), np.eye(pairs)]]),
        b_ub=np.concatenate([-np.append(value, scaled.threshold), np.zeros(pairs)]),
        bounds=[(0.0, float(each)) for each in problem.opened.ravel()]
        + [(0.0, 0.1 / pairs)] * pairs,
    )
    if found.x is None:
        return None
    visits = np.where(found.x[:pairs] > smallest, found.x[:pairs], 0.0).reshape(X, A)
    mass = visits.sum(axis=1, keepdims=True)
    uniform = problem.opened / problem.opened.sum(axis=1, keepdims=True)
    return np.asarray(np.divide(visits, mass, out=uniform, where=mass > 0.0))
