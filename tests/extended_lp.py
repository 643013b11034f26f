"""The extended LP: a constrained MDP whose kernel may be chosen inside an entrywise box, by HiGHS.

In z_h(x, a, y) >= 0 and q_h(x, a) = sum_y z_h(x, a, y):

    max  sum_{h,x,a} q_h(x, a) reward[0, h, x, a]
    s.t. sum_{h,x,a} q_h(x, a) reward[n, h, x, a] >= threshold[n - 1]               n = 1..N
         sum_a q_1(x, a) = 1{x = start}
         sum_a q_h(x, a) = sum_{x',a'} z_{h-1}(x', a', x)                           h >= 2
         lower_h(y | x, a) q_h(x, a) <= z_h(x, a, y) <= upper_h(y | x, a) q_h(x, a)

The q are variables of their own, so that a row of the box has two entries instead of X.
"""

from __future__ import annotations

import highspy
import numpy as np
from scipy import sparse

Array = np.ndarray


def extended_value(
    lower: Array, upper: Array, reward: Array, threshold: Array, start: int
) -> float | None:
    """max sum q reward[0] subject to sum q reward[n] >= threshold[n - 1]; None if infeasible.

    lower, upper [H, X, A, X], reward [1 + N, H, X, A], threshold [N].
    """
    return _optimum(lower, upper, reward, threshold, start, margin=False)


def extended_margin(
    lower: Array, upper: Array, reward: Array, threshold: Array, start: int
) -> float:
    """max t subject to sum q reward[n] - t >= threshold[n - 1], t free; infinite for N = 0."""
    if len(threshold) == 0:
        return np.inf
    t = _optimum(lower, upper, reward, threshold, start, margin=True)
    if t is None:
        raise ValueError("the box holds no kernel")
    return t


def _optimum(
    lower: Array, upper: Array, reward: Array, threshold: Array, start: int, margin: bool
) -> float | None:
    """The LP over (q, z, t): max t with `margin`, else max sum q reward[0] at t = 0.

    Vacuous rows of the box (lower = 0, upper = 1) are left out; lower = upper makes one equation.
    """
    H, X, A, _ = lower.shape
    Q, Z, N = H * X * A, H * X * A * X, len(threshold)
    low, up = lower.ravel(), upper.ravel()
    fixed = low == up
    above = np.flatnonzero((low > 0.0) | fixed)  # z - low q >= 0, or = 0
    below = np.flatnonzero((up < 1.0) & ~fixed)  # z - up q <= 0

    def box(bound: Array, rows: Array) -> list[sparse.coo_array | None]:
        i = np.arange(len(rows))
        q = sparse.coo_array((-bound[rows], (i, rows // X)), (len(rows), Q))
        return [q, sparse.coo_array((np.ones(len(rows)), (i, rows)), (len(rows), Z)), None]

    # z_{h-1}(x', a', y) flows into the row (h, y); those of the last step flow nowhere.
    inner = np.arange(Z - X * A * X)
    into = (inner // (X * A * X) + 1) * X + inner % X
    inflow = sparse.coo_array((-np.ones(len(inner)), (into, inner)), (H * X, Z))
    outflow = sparse.kron(sparse.eye_array(H * X), np.ones((1, A)))
    # q = sum_y z repeats z = low q where that fixes a whole distribution.
    given = fixed.reshape(Q, X).all(axis=1) & (abs(low.reshape(Q, X).sum(axis=1) - 1.0) < 1e-12)
    total = sparse.eye_array(Q, format="csr")[~given]
    blocks = [
        [outflow, inflow, None],
        [-total, sparse.kron(total, np.ones((1, X))), None],
        box(low, above),
        box(up, below),
        [sparse.coo_array(reward[1:].reshape(N, Q)), None, sparse.coo_array(-np.ones((N, 1)))],
    ]
    matrix = sparse.block_array(blocks, format="csc")
    source = np.zeros(H * X + total.shape[0])  # the flow equations, then q = sum_y z
    source[start] = 1.0
    free = np.full(len(below), -np.inf)
    equal = np.where(fixed[above], 0.0, np.inf)
    gain = np.zeros(Q) if margin else reward[0].ravel()
    t = np.inf if margin else 0.0

    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = matrix.shape
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = np.concatenate([gain, np.zeros(Z), [1.0]])
    lp.col_lower_ = np.concatenate([np.zeros(Q + Z), [-t]])
    lp.col_upper_ = np.concatenate([np.full(Q + Z, np.inf), [t]])
    lp.row_lower_ = np.concatenate([source, np.zeros(len(above)), free, threshold])
    lp.row_upper_ = np.concatenate([source, equal, np.zeros(len(below)), np.full(N, np.inf)])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.num_row_, lp.a_matrix_.num_col_ = matrix.shape
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data

    return _run(lp)


def _run(lp: highspy.HighsLp) -> float | None:
    """The optimum; a run without an answer (tolerances of 1e-10 are strict) is made again."""
    known = highspy.HighsModelStatus
    for solver, presolve, smallest in (
        ("choose", "choose", 1e-12),
        ("choose", "off", 1e-12),
        ("ipm", "choose", 1e-12),
        ("ipm", "off", 1e-9),
    ):
        model = highspy.Highs()
        model.setOptionValue("output_flag", False)
        model.setOptionValue("solver", solver)
        model.setOptionValue("presolve", presolve)
        model.setOptionValue(
            "small_matrix_value", smallest
        )  # by default, 1e-9 and less are dropped
        model.setOptionValue("primal_feasibility_tolerance", 1e-10)
        model.setOptionValue("dual_feasibility_tolerance", 1e-10)
        model.passModel(lp)
        model.run()
        status = model.getModelStatus()
        if status in (known.kInfeasible, known.kUnboundedOrInfeasible):  # never unbounded
            return None
        if status == known.kOptimal:
            return model.getObjectiveValue()
    raise RuntimeError(f"HiGHS: {model.modelStatusToString(status)}")
