"""The certified optimum of a problem, or the reason why there is none.

The plain dynamic programs of exact.py evaluate the policy and price the multipliers. The
certificate does not depend on the search that found the optimum (certified.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from cmdplab import display
from cmdplab.cmdp.horizons import with_an_end
from cmdplab.cmdp.policy import Policy
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Average, StationaryCMDP
from cmdplab.errors import InputError
from cmdplab.solvers.certified import attempt
from cmdplab.solvers.known import Known
from cmdplab.solvers.rational import Optimum
from cmdplab.solvers.thresholds.conflicts import conflict, never_bind
from cmdplab.solvers.units import Units
from cmdplab.types import Array, frozen, lock

NO_SLACK = "no slack: the thresholds can be met, but with no room to spare (no Slater point)"

_AXES = {2: "X x A", 3: "H x X x A"}  # of a policy


@display.shown
@frozen
@dataclass(frozen=True, eq=False)
class Solution:
    """The optimum of a CMDP, or the reason why there is none.

    `primal` is the value of a feasible policy and `dual` an upper bound on every feasible policy's.
    `duality_gap` is their distance. If `feasible` is false, missing numbers are None and `message`
    gives the reason. If thresholds can only be met with equality, the Slater gap is 0 and `message`
    notes it. Policy and occupancy of a stationary problem are [X, A]. The occupancy sums to 1 / (1
    - gamma) for discounted rewards, and to 1 for average rewards.
    """

    feasible: bool  # some policy meets every threshold, but for rounding
    value: float | None  # V*, the value of `policy`
    policy: Policy | None  # [H, X, A], with the labels of the problem
    multiplier: Array | None  # [N]
    slater_gap: float | None  # max over policies of the smallest slack; None for N = 0
    primal: float | None
    dual: float | None
    message: str = ""
    mixed: tuple[Any, ...] = ()  # the policies [H, X] or [X] of the mixture, for a warm start
    visits: Callable[[], Array] | None = None  # computes the occupancy

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [("Slater gap", display.number(self.slater_gap))]
        if self.feasible:
            facts = [
                ("optimum", display.number(self.value)),
                ("certified to", f"{self.duality_gap:.1e}"),
                ("multiplier", display.numbers(self.multiplier)),
                *facts,
                ("policy", display.shape(np.asarray(self.policy), _AXES[np.ndim(self.policy)])),  # type: ignore[arg-type]
            ]
            facts.append(("try", "cmdplab.evaluate(problem, solution.policy), .policy.save(file)"))
        if self.message:
            facts.append(("message", self.message))
        return f"Solution{'' if self.feasible else ', infeasible'}", facts

    @cached_property
    def occupancy(self) -> Array | None:
        """Return the occupancy [H, X, A] or [X, A] of `policy`, computed at the first access."""
        found = None if self.visits is None else self.visits()
        lock(found)
        return found

    @property
    def duality_gap(self) -> float | None:
        """Return the certificate: |dual - primal|."""
        if self.dual is None or self.primal is None:
            return None
        return abs(self.dual - self.primal)


def solve(problem: CMDP | StationaryCMDP, warm: Solution | None = None) -> Solution:
    """Return the optimum with its certificate.

    A problem that no policy can meet is an answer, not an exception: see `Solution.feasible`. An
    optimum that cannot be certified raises `OpenCertificateError`. `warm` is the solution of a
    similar problem (other thresholds, rewards or a few other rows). The search begins with its
    policies and multipliers. This may save time, and does not change the certificate.
    """
    if warm is not None and not isinstance(warm, Solution):
        raise InputError(f"warm is {type(warm).__name__}, not a Solution")
    if isinstance(problem, StationaryCMDP):
        if isinstance(problem.criterion, Average):
            return _averaged(problem, warm)
        return _stationary(problem, warm)
    if not isinstance(problem, CMDP):
        raise InputError(f"the problem is {type(problem).__name__}, not a CMDP")
    units = Units.of(problem)
    scaled = units.scaled(problem)
    begun, first = _begun(warm, units)
    known = Known(scaled, scaled.threshold, begun)
    best = attempt(known, first, units.unsure, units.even)
    if not best.feasible:
        return _infeasible(problem, units.slack(best.slack or 0.0, problem))
    policy = _policy(problem, best.policy, best.mixed)
    return _solution(problem, units, best, policy, partial(_visits, known, policy))


def solve_feasible(problem: CMDP | StationaryCMDP) -> Solution:
    """Solve as `solve` does, and raise an error if there is no optimum."""
    problem = with_an_end(problem)
    solution = solve(problem)
    if not solution.feasible:
        raise InputError(f"{problem.name} cannot be run: {solution.message}")
    if problem.constraints and problem.threshold.min() < 0.0:
        why = f"{never_bind(problem)}: leave such constraints out"
        raise InputError(f"{problem.name} cannot be run: {why}")
    return solution


def _begun(warm: Solution | None, units: Units) -> tuple[tuple[Any, ...], Array | None]:
    """Return the policies and the multipliers [N] that a search begins with."""
    if warm is None:
        return (), None
    if warm.multiplier is None or len(warm.multiplier) != len(units.factor) - 1:
        return warm.mixed, None
    return warm.mixed, units.scaled_multipliers(warm.multiplier)


def _stationary(problem: StationaryCMDP, warm: Solution | None) -> Solution:
    from cmdplab.solvers.stationary import discounted_optima as stationary  # SciPy: 0.2 s

    units = Units.of(problem)
    best = stationary.optimum(units.scaled(problem), *_begun(warm, units), units.unsure, units.even)
    if not best.feasible:
        return _infeasible(problem, units.slack(best.slack or 0.0, problem))
    policy = _policy(problem, best.policy, best.mixed)
    spent = partial(np.asarray, best.occupancy)
    visits = partial(_spent, problem, policy) if best.occupancy is None else spent
    return _solution(problem, units, best, policy, visits)


def _averaged(problem: StationaryCMDP, warm: Solution | None) -> Solution:
    from cmdplab.solvers.stationary import average_optima

    first = None if warm is None else warm.multiplier
    if first is not None and len(first) != problem.constraints:
        first = None
    best = average_optima.optimum(problem, () if warm is None else warm.mixed, first)
    if not best.feasible:
        return _infeasible(problem, float(best.slack or 0.0))
    policy = _policy(problem, best.policy, best.mixed)
    value = float(best.returns[0])
    given = (best.multiplier, best.slack, value, best.dual, _note(problem, best.slack))
    return Solution(True, value, policy, *given, best.mixed, partial(_spent, problem, policy))


def _policy(problem: CMDP | StationaryCMDP, policy: Array | None, mixed: tuple[Any, ...]) -> Policy:
    """Return the policy of an optimum, or the only policy that is mixed, as actions."""
    name = f"optimum of {problem.name}"
    if policy is None:
        return Policy.deterministic(mixed[0], problem.actions, problem.labels, name)
    return Policy(policy, problem.labels, name)


def _spent(problem: StationaryCMDP, policy: Policy) -> Array:
    from cmdplab.cmdp import exact_stationary

    return exact_stationary.occupancy(problem, policy.array)


def _note(problem: CMDP | StationaryCMDP, slack: float | None) -> str:
    return NO_SLACK if slack == 0.0 else never_bind(problem)


def _infeasible(problem: CMDP | StationaryCMDP, slack: float) -> Solution:
    found = conflict(problem)
    why = f"the best falls short by {-slack:.6g}" if found is None else found.sentence
    why = f"no policy meets the thresholds: {why}"
    return Solution(False, None, None, None, slack, None, None, why)


def _solution(
    problem: CMDP | StationaryCMDP,
    units: Units,
    best: Optimum,
    policy: Policy,
    visits: Callable[[], Array],
) -> Solution:
    value, slack = units.value(float(best.returns[0])), best.slack
    if slack is not None:
        slack = max(units.slack(slack, problem), 0.0)
    multiplier, dual = units.multipliers(best.multiplier), units.bound(best.dual, best.multiplier)
    given = (policy, multiplier, slack, value, dual, _note(problem, slack), best.mixed)
    return Solution(True, value, *given, visits)


def _visits(known: Known, policy: Policy) -> Array:
    return known.returns(policy.array)[0]
