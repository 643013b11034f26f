"""The regularised saddle point, and the steps at which the primal-dual update settles there.

For given multipliers the best policy is a soft greedy one (`theory.soft`). The dual function

    D(lambda) = max_pi L_tau(pi, lambda)

remains, over lambda >= 0. It is strongly convex with modulus tau, and its derivatives are exact:

    gradient^n    = V[r^n] - b^n + tau lambda^n
    curvature^mn  = (1 / tau) sum_{h,x} w_h(x) Cov_a(Q^m_h, Q^n_h) + tau 1{m = n}

A projected Newton method minimises it. The curvature also decides stability (not in the paper).
With a known kernel, a fixed step eta and a fixed tau, perturb ln pi by delta and lambda by mu. To
first order, and up to constants in each state that the softmax ignores,

    delta' = (1 - eta tau) delta + eta sum_n mu^n Q^n
    mu'^n  = (1 - eta tau) mu^n - eta sum_{h,x} w_h(x) Cov_a(Q^n, delta)

over the multipliers above zero; the others stay at zero. With G^mn = sum w Cov_a(Q^m, Q^n), whose
eigenvalues are g >= 0, the update has the eigenvalues 1 - eta tau +- i eta sqrt(g). It is stable
iff (1 - eta tau)^2 + eta^2 max g < 1. Since D'' = G / tau + tau, this is eta max eig(D'') < 2, the
condition of gradient descent on D. The update is that of Eqs. 4 and 5 without a cap, a bonus or a
look ahead.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.theory.soft import SoftPolicy, regularised_values, soft_greedy
from cmdplab.types import Array

TARGET = 1e-13  # the residual at which the iteration ends; rounding seldom allows less
MOST_STEPS = 500
MOST_HALVINGS = 60
DECREASE = 1e-4  # share of the predicted decrease that a step must deliver
ROUNDING = 1e-12  # relative; values that agree this well are not compared


class SaddlePoint(NamedTuple):
    """Saddle point of L_tau: its policy, multipliers, value and residual (Lemma 3.1)."""

    policy: Array  # [H, X, A], pi*_tau
    log_policy: Array  # [H, X, A]; finite where the policy itself rounds to zero
    multiplier: Array  # [N], lambda*_tau
    value: float  # L_tau(pi*_tau, lambda*_tau)
    residual: float  # see `stationarity`
    temperature: float


class _Dual(NamedTuple):
    multiplier: Array
    value: float
    gradient: Array
    best: SoftPolicy


def saddle_point(
    problem: CMDP, temperature: float, cap: float = math.inf, start: Array | None = None
) -> SaddlePoint:
    """Return the saddle point (pi, lambda) of L_tau, where tau is `temperature` (Lemma 3.1).

    cap : an upper end of every multiplier. The bound of Lemma F.4 cuts nothing off.
    start : multipliers [N] to begin with, for example those of a temperature near by.

    For all multipliers l and policies p, L_tau(pi, l) >= L_tau(pi, lambda) >= L_tau(p, lambda). The
    point is unique. It exists for every tau > 0, also if no policy meets the thresholds.
    """
    if not 0.0 < temperature < math.inf:
        raise InputError(f"the temperature is {temperature:g}, not a finite number > 0")
    if not cap > 0.0:
        raise InputError(f"the cap on the multipliers is {cap:g}, not a number > 0")
    first = np.zeros(problem.constraints) if start is None else np.asarray(start, dtype=np.float64)
    if first.shape != (problem.constraints,):
        raise InputError(f"start has the shape {first.shape}, not ({problem.constraints},)")
    here = _dual(problem, np.clip(first, 0.0, cap), temperature)
    for _ in range(MOST_STEPS):
        if _dual_residual(here, temperature, cap) <= TARGET:
            break
        following = _newton_step(problem, here, temperature, cap)
        if following is None:  # rounding hides any further progress
            break
        here = following
    policy, log_policy = here.best.policy, here.best.log_policy
    residual = stationarity(problem, log_policy, here.multiplier, temperature, cap)
    return SaddlePoint(policy, log_policy, here.multiplier, here.value, residual, temperature)


def stationarity(
    problem: CMDP,
    log_policy: Array,
    multiplier: Array,
    temperature: float,
    cap: float = math.inf,
) -> float:
    """Return the distance of (pi, lambda) from the conditions of the saddle point; 0 exactly there.

    log_policy [H, X, A] is ln pi, and multiplier [N] is lambda. The distance is the larger of two
    residuals, each in units of value. Q_tau and V_tau are the regularised values of pi.

    dual:   max_n | tau lambda^n - clip(b^n - V[r^n], 0, tau cap) |
    primal: max_{h,x,a} | tau ln pi - (Q_tau - V_tau) |
    """
    policy = np.exp(log_policy)
    violation = exact.violation(problem.threshold, exact.returns(problem, policy)[1:])
    target = np.clip(violation, 0.0, temperature * cap)
    dual = np.max(np.abs(temperature * multiplier - target), initial=0.0)
    values = regularised_values(problem, policy, _total_reward(problem, multiplier), temperature)
    advantage = values.q - values.value[:-1, :, None]
    primal = np.max(np.abs(temperature * log_policy - advantage))
    return float(max(dual, primal))


def dual_curvature(problem: CMDP, policy: Array, temperature: float) -> Array:
    """Return the second derivative [N, N] of the dual function at the multipliers of a policy.

    policy [H, X, A] is the soft greedy policy for these multipliers. The module's docstring has the
    formula. The covariance of the utilities' action values measures the reaction of the policy to
    the multipliers.
    """
    states = exact.occupancy(problem, policy).sum(axis=-1)
    shape = (problem.constraints, *policy.shape)
    q = np.empty(shape)
    for n, reward in enumerate(problem.reward[1:]):
        q[n] = exact.action_values(problem, policy, reward)
    q -= np.sum(policy * q, axis=-1, keepdims=True)
    covariance = np.einsum("hx,hxa,mhxa,nhxa->mn", states, policy, q, q)
    return np.asarray(covariance / temperature + temperature * np.eye(problem.constraints))


def _dual(problem: CMDP, multiplier: Array, temperature: float) -> _Dual:
    best = soft_greedy(problem, _total_reward(problem, multiplier), temperature)
    slack = exact.returns(problem, best.policy)[1:] - problem.threshold
    ridge = 0.5 * temperature * float(multiplier @ multiplier)
    value = best.value - float(multiplier @ problem.threshold) + ridge
    return _Dual(multiplier, value, slack + temperature * multiplier, best)


def _dual_residual(point: _Dual, temperature: float, cap: float) -> float:
    """Return tau max |lambda - clip(lambda - gradient / tau, 0, cap)|, a size of the gradient."""
    target = np.clip(point.multiplier - point.gradient / temperature, 0.0, cap)
    return float(temperature * np.max(np.abs(point.multiplier - target), initial=0.0))


def _newton_step(problem: CMDP, here: _Dual, temperature: float, cap: float) -> _Dual | None:
    """Return the next point of Newton's method with backtracking, or None without progress."""
    lam, gradient = here.multiplier, here.gradient
    curvature = dual_curvature(problem, here.best.policy, temperature)
    direction = _box_minimum(curvature, gradient, -lam, cap - lam)
    slope = float(gradient @ direction)
    residual = _dual_residual(here, temperature, cap)
    size = 1.0
    for _ in range(MOST_HALVINGS):
        trial = _dual(problem, np.clip(lam + size * direction, 0.0, cap), temperature)
        if trial.value <= here.value + DECREASE * size * slope and trial.value < here.value:
            return trial
        # Near the end the values agree to the last digits, and only the residual tells.
        close = abs(trial.value - here.value) <= ROUNDING * max(1.0, abs(here.value))
        if close and _dual_residual(trial, temperature, cap) < 0.9 * residual:
            return trial
        size /= 2.0
    return None


def _box_minimum(curvature: Array, gradient: Array, low: Array, high: Array) -> Array:
    """Return the vector d in [low, high] that minimises gradient d + d curvature d / 2."""
    root = np.linalg.cholesky(curvature)
    answer = lsq_linear(root.T, -np.linalg.solve(root, gradient), (low, high), method="bvls")
    return np.asarray(answer.x)


def _total_reward(problem: CMDP, multiplier: Array) -> Array:
    return np.tensordot(np.array([1.0, *multiplier]), problem.reward, axes=1)


def covariance(problem: CMDP, saddle: SaddlePoint) -> Array:
    """Return G [M, M] of the module's docstring, over the saddle point's M multipliers > 0."""
    tau = saddle.temperature
    moving = saddle.multiplier > 0.0
    curvature = dual_curvature(problem, saddle.policy, tau)[np.ix_(moving, moving)]
    return np.asarray(tau * (curvature - tau * np.eye(len(curvature))))


def coupling(problem: CMDP, saddle: SaddlePoint) -> float:
    """Return C, the largest eigenvalue of `covariance`; 0 if no multiplier is above zero."""
    eigenvalues = np.linalg.eigvalsh(covariance(problem, saddle))
    return max(float(np.max(eigenvalues, initial=0.0)), 0.0)


def growth(problem: CMDP, saddle: SaddlePoint, step: float) -> float:
    """Return the factor by which one update with this step multiplies a small perturbation.

    It is sqrt((1 - eta tau)^2 + eta^2 C), where eta is `step` and C is `coupling`. If it is below
    1, the update settles at the saddle point. If it is above 1, it moves away.
    """
    if not 0.0 < step < math.inf:
        raise InputError(f"the step is {step:g}, not a finite number > 0")
    return math.hypot(1.0 - step * saddle.temperature, step * math.sqrt(coupling(problem, saddle)))


def largest_step(problem: CMDP, saddle: SaddlePoint) -> float:
    """Return 2 tau / (C + tau^2), C = `coupling`: `growth` is below 1 for steps below this."""
    tau = saddle.temperature
    return 2.0 * tau / (coupling(problem, saddle) + tau**2)
