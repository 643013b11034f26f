"""When the primal-dual update settles: its linearisation at the regularised saddle point.

With a known kernel, a fixed step eta and a fixed temperature tau, perturb ln pi by delta and lambda
by mu. The regularised value is stationary in the policy at the saddle point, in every state, so
that to first order, up to constants in each state that the softmax ignores,

    delta' = (1 - eta tau) delta + eta sum_n mu^n Q^n
    mu'^n  = (1 - eta tau) mu^n - eta sum_{h,x} w_h(x) Cov_a(Q^n, delta)

over the multipliers above zero; the others stay at zero. With G^mn = sum w Cov_a(Q^m, Q^n), whose
eigenvalues are g >= 0, the update has the eigenvalues 1 - eta tau +- i eta sqrt(g): it is stable
iff (1 - eta tau)^2 + eta^2 max g < 1. The dual function has the curvature D'' = G / tau + tau, so
that this is eta max eig(D'') < 2, the condition of gradient descent on the dual function.
Not in the paper. The update is that of Eqs. 4 and 5 without a cap, a bonus or a look ahead.
"""

from __future__ import annotations

import math

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.theory.saddle import SaddlePoint, dual_curvature
from cmdplab.types import Array


def covariance(problem: CMDP, saddle: SaddlePoint) -> Array:
    """G [M, M]: sum_{h,x} w_h(x) Cov_a(Q^m, Q^n) over the M multipliers above zero.

    It is tau (D'' - tau), D'' the curvature of the dual function.
    """
    tau = saddle.temperature
    moving = saddle.multiplier > 0.0
    curvature = dual_curvature(problem, saddle.policy, tau)[np.ix_(moving, moving)]
    return np.asarray(tau * (curvature - tau * np.eye(len(curvature))))


def coupling(problem: CMDP, saddle: SaddlePoint) -> float:
    """C: the largest eigenvalue of G; 0 where no multiplier is above zero."""
    found = np.linalg.eigvalsh(covariance(problem, saddle))
    return max(float(np.max(found, initial=0.0)), 0.0)


def growth(problem: CMDP, saddle: SaddlePoint, step: float) -> float:
    """sqrt( (1 - eta tau)^2 + eta^2 C ): by what one update multiplies a small perturbation.

    Below 1 the update settles at the saddle point; above 1 it is driven away from it.
    """
    if not 0.0 < step < math.inf:
        raise InputError(f"the step is {step:g}, not a finite number > 0")
    return math.hypot(1.0 - step * saddle.temperature, step * math.sqrt(coupling(problem, saddle)))


def largest_step(problem: CMDP, saddle: SaddlePoint) -> float:
    """2 tau / (C + tau^2): `growth` is below 1 for the steps in (0, this), and for no other."""
    tau = saddle.temperature
    return 2.0 * tau / (coupling(problem, saddle) + tau**2)
