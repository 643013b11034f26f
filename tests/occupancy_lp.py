"""The occupancy program of a known kernel, by HiGHS, with a check of its optimality conditions.

max sum q r^0  s.t.  sum q r^n >= b^n,  sum_a q_1(x, a) = 1{x = start},
                     sum_a q_h(y, a) = sum_{x, a} q_{h-1}(x, a) P_{h-1}(y | x, a),  q >= 0
"""

from __future__ import annotations

from typing import NamedTuple

import highspy
import numpy as np

from cmdplab.cmdp.problem import CMDP

Array = np.ndarray


class Optimum(NamedTuple):
    """What HiGHS answered, and how far its answer is from satisfying the optimality conditions."""

    value: float
    shortfall: float  # of the thresholds
    residual: float  # of flow, signs, prices and complementary slackness, the largest


def program(problem: CMDP) -> tuple[Array, Array, Array]:
    """(cost [Q], flow [H X, Q], source [H X]), dense: the problems are tiny."""
    H, X, A = problem.horizon, problem.states, problem.actions
    flow = np.zeros((H, X, H, X, A))
    for h in range(H):
        for x in range(X):
            flow[h, x, h, x, :] = 1.0
        if h:
            flow[h, :, h - 1] = -np.moveaxis(problem.transition[h - 1], -1, 0)
    source = np.zeros(H * X)
    source[problem.start] = 1.0
    return problem.reward[0].ravel(), flow.reshape(H * X, H * X * A), source


def occupancy_optimum(problem: CMDP) -> Optimum | None:
    """HiGHS's optimum with tight tolerances; None if it says that there is none."""
    cost, flow, source = program(problem)
    utility, b = problem.reward[1:].reshape(problem.constraints, -1), problem.threshold
    matrix = np.concatenate([flow, utility])
    rows, columns = matrix.shape
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = rows, columns
    lp.sense_ = highspy.ObjSense.kMaximize
    lp.col_cost_ = cost
    lp.col_lower_, lp.col_upper_ = np.zeros(columns), np.full(columns, np.inf)
    lp.row_lower_ = np.concatenate([source, b])
    lp.row_upper_ = np.concatenate([source, np.full(len(b), np.inf)])
    at, index = np.nonzero(matrix)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.num_row_, lp.a_matrix_.num_col_ = matrix.shape
    lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(np.bincount(at, minlength=rows))])
    lp.a_matrix_.index_, lp.a_matrix_.value_ = index, matrix[at, index]
    model = highspy.Highs()
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("presolve", "off"),
        ("small_matrix_value", 1e-12),
        ("primal_feasibility_tolerance", 1e-10),
        ("dual_feasibility_tolerance", 1e-10),
    ):
        model.setOptionValue(option, value)
    model.passModel(lp)
    model.run()
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    answer = model.getSolution()
    return judged(cost, flow, source, utility, b, np.array(answer.col_value), answer.row_dual)


def judged(
    cost: Array, flow: Array, source: Array, utility: Array, b: Array, q: Array, row_dual: list
) -> Optimum:
    """An answer with its residuals, computed here."""
    dual = np.array(row_dual)
    price, multiplier = dual[: len(source)], -dual[len(source) :]  # HiGHS: cost - A' dual
    if np.any(multiplier < -1e-9 * (1.0 + np.abs(multiplier).max(initial=0.0))):
        multiplier = -multiplier
    multiplier = np.maximum(multiplier, 0.0)
    over = cost + multiplier @ utility - price @ flow  # <= 0, and 0 where q > 0
    bound = price @ source - multiplier @ b
    slack = utility @ q - b
    value = float(cost @ q)
    residual = max(
        float(np.abs(flow @ q - source).max()),
        float(-q.min()),
        float(np.maximum(over, 0.0).max()) * (1.0 + len(source)),
        abs(float(bound) - value),
        float(multiplier @ np.maximum(-slack, 0.0)),
    )
    return Optimum(value, float(np.maximum(-slack, 0.0).max(initial=0.0)), residual)
