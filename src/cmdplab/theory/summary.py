"""Numbers of the theory for one problem: constants, orders, the saddle point, stability.

`cmdplab theory` prints them. V* and V[r] are the values of an optimum and of a reward r. L_tau,
lambda*_tau and pi*_tau are those of `lagrangian` and `saddle`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import told_gap
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.solvers import solve_feasible
from cmdplab.theory import bounds, constants as proofs
from cmdplab.theory.bounds import EXPERIMENT, Exponents, LogTerms
from cmdplab.theory.saddle import coupling, growth, largest_step, saddle_point

DECIMAL = math.log(10.0)


class Terms(NamedTuple):
    """A bound of Theorem 4.1 as the logarithms to base 10 of its three terms."""

    optimisation: float  # (i)
    bias: float  # (ii)
    burn_in: float  # (iii)
    powers: tuple[float, float]  # of 1 / epsilon or of K in (i) and (ii)


class Saddle(NamedTuple):
    """Saddle point of L_tau beside its bounds, and the stability of a step there."""

    temperature: float  # tau
    multiplier: list[float]  # lambda*_tau [N]
    multiplier_bound: float  # of their sum: Lemma F.4
    gap: float  # V* - V[r^0] of pi*_tau
    gap_bound: float  # tau H_ent: Lemma F.5 without divergence
    violation: list[float]  # [N], b^n - V[r^n] of pi*_tau: tau lambda*_tau where that is > 0
    violation_bound: float  # Lemma F.4
    residual: float  # the distance from the conditions of a saddle point, in units of value
    coupling: float  # C of `theory.saddle`
    largest_step: float  # the step size eta below which Eqs. 4 and 5 with P known settle
    step: float  # eta
    growth: float  # the factor of one update with that step on a small perturbation


class Theory(NamedTuple):
    """Numbers of the theory for a problem, before any run on it."""

    name: str
    states: int
    actions: int
    horizon: int
    constraints: int
    optimum: float  # V*
    multiplier: list[float]  # [N], lambda*
    slater_gap: float | None  # b_gap; None without a constraint
    delta: float
    alpha_eta: float
    alpha_tau: float
    outside: str  # a sentence on why Theorem 4.1 excludes these exponents; empty if it does not
    epsilon: float
    episodes: int
    entropy_horizon: float  # H_ent
    visits_log: float  # ln(4 X A H / delta)
    first: float  # C_1
    second: float  # C_2
    third: float  # C_3
    combined: float  # C as printed
    summed_over_steps: float  # C with the H that Lemma H.7 drops
    first_potential: float  # a bound on Phi^1
    log10_burn_in: float | None  # log10 k*
    mistakes: Terms | None  # at epsilon; None outside the theorem
    regret: Terms | None  # at that many episodes
    saddle: Saddle


def theory_of(
    problem: CMDP,
    exponents: Exponents = EXPERIMENT,
    *,
    epsilon: float = 0.1,
    episodes: int = 100_000,
    temperature: float | None = None,
    step: float | None = None,
    delta: float = 0.1,
) -> Theory:
    """Compute the theory of a feasible problem with slack, for the exponents of its schedules.

    epsilon, episodes : the accuracy of the mistakes, and the number of episodes of the regret.
    temperature, step : tau of the saddle point and the step of its stability. By default they are
    tau and eta of the last episode, (episodes + 3)^-alpha.
    delta : the failure probability.
    """
    for what, value in (("epsilon", epsilon), ("the number of episodes", episodes)):
        if not 0.0 < value < math.inf:
            raise InputError(f"{what} is {value:g}, not a finite number > 0")
    solution = solve_feasible(problem)
    setting = proofs.setting_of(problem, told_gap(solution.slater_gap), delta)
    explicit = proofs.constants(setting)
    outside = bounds.outside_theorem(exponents)
    inside = not outside
    mistakes = bounds.log_mistakes_order(setting, exponents, epsilon) if inside else None
    regret = bounds.log_regret_order(setting, exponents, episodes) if inside else None
    last = episodes + 3.0
    tau = last**-exponents.temperature if temperature is None else temperature
    eta = last**-exponents.step if step is None else step
    assert solution.value is not None
    assert solution.multiplier is not None
    return Theory(
        name=problem.name,
        states=problem.states,
        actions=problem.actions,
        horizon=problem.horizon,
        constraints=problem.constraints,
        optimum=solution.value,
        multiplier=[float(value) for value in solution.multiplier],
        slater_gap=solution.slater_gap,
        delta=delta,
        alpha_eta=exponents.step,
        alpha_tau=exponents.temperature,
        outside=outside,
        epsilon=epsilon,
        episodes=episodes,
        entropy_horizon=proofs.entropy_horizon(setting),
        visits_log=setting.visits_log,
        first=explicit.first,
        second=explicit.second,
        third=explicit.third,
        combined=explicit.combined(),
        summed_over_steps=explicit.summed_over_steps(),
        first_potential=proofs.first_potential_bound(setting),
        log10_burn_in=bounds.log10_burn_in(exponents) if inside else None,
        mistakes=mistakes and _terms(mistakes, bounds.mistake_exponents(exponents)),
        regret=regret and _terms(regret, bounds.regret_exponents(exponents)),
        saddle=_saddle(problem, setting, solution.value, tau, eta),
    )


def _terms(logs: LogTerms, powers: tuple[float, float]) -> Terms:
    first, second, third = (log / DECIMAL for log in logs)
    return Terms(first, second, third, (float(powers[0]), float(powers[1])))


def _saddle(problem: CMDP, setting: Setting, optimum: float, tau: float, eta: float) -> Saddle:
    saddle = saddle_point(problem, tau)
    returns = exact.returns(problem, saddle.policy)
    violation = exact.violation(problem.threshold, returns[1:])
    return Saddle(
        temperature=tau,
        multiplier=saddle.multiplier.tolist(),
        multiplier_bound=proofs.multiplier_bound(setting, tau),
        gap=float(exact.gap(optimum, returns[0])),
        gap_bound=tau * proofs.entropy_horizon(setting),
        violation=np.atleast_1d(violation).tolist(),
        violation_bound=proofs.violation_bound(setting, tau),
        residual=saddle.residual,
        coupling=coupling(problem, saddle),
        largest_step=largest_step(problem, saddle),
        step=eta,
        growth=growth(problem, saddle, eta),
    )
