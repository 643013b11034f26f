"""Where optimistic values differ from true ones: the value difference identity, rho^k."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.plain.primal_dual import Evaluation
from cmdplab.theory.soft import regularised_returns
from cmdplab.types import Array


class ValueDifference(NamedTuple):
    """Both sides of the value difference identity: `left` = `policies` + `model`."""

    left: float
    policies: float  # what the two policies do differently
    model: float  # where q is not the reward plus the expected next value


def value_difference(
    problem: CMDP, policy: Array, other: Array, q: Array, reward: Array
) -> ValueDifference:
    """Lemma F.1: the extended value difference, for any q [H, X, A], with V~_h = pi_h q_h.

    V~_1 - V^{pi'}_1[P, g] = sum_h sum_x w'_h(x) sum_a (pi - pi')_h(a | x) q_h(x, a)
                           + sum_h sum_{x,a} w'_h(x, a) ( q_h - g_h - P_h V~_{h+1} )(x, a)

    `policy` is pi, `other` is pi' with the occupancy w', `reward` is g; all [H, X, A]. The print
    has pi' - pi in the first sum, which does not balance, and P' in the second.
    """
    value = np.zeros((problem.horizon + 1, problem.states))
    value[:-1] = np.sum(policy * q, axis=-1)
    pairs = exact.occupancy(problem, other)
    states = pairs.sum(axis=-1)
    ahead = np.stack([problem.kernel.ahead(h, each) for h, each in enumerate(value[1:])])
    left = value[0, problem.start] - np.sum(pairs * reward)
    policies = np.sum(states[..., None] * (policy - other) * q)
    return ValueDifference(
        float(left), float(policies), float(np.sum(pairs * (q - reward - ahead)))
    )


def optimism_errors(
    problem: CMDP, policy: Array, evaluation: Evaluation, temperature: float
) -> Array:
    """[1 + N]: V~^n_1(x_1) - V^pi_1[P, r^n](x_1), the objective with its entropy.

    On the good event all are >= 0 (Lemma H.2), and at most epsilon on all but the number of
    episodes of Lemma H.6 (`log_optimism_order`; `mistake_counts` counts a series of them).
    `evaluation` must have the same temperature.
    """
    optimistic = evaluation.value[:, 0, problem.start]
    return np.asarray(optimistic - regularised_returns(problem, policy, temperature))


def weighted_optimism_error(errors: Array, saddle_multiplier: Array) -> float:
    """Lemma H.8: rho^k = error^0 + sum_n lambda*_tau^n error^n, from the errors [1 + N]."""
    return float(errors[0] + saddle_multiplier @ errors[1:])
