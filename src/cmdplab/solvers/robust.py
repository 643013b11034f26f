"""The worst kernel of a box: policies whose guarantees hold for every kernel in the box.

    max over pi of  min_P V^pi[P, r^0]   subject to   min_P V^pi[P, r^n] >= b^n,  n = 1..N

Each return has a worst kernel of its own, entry by entry inside the box and at every step apart
((h, x, a)-rectangular). Without constraints this is one dynamic program, and exact. With
constraints it is no linear program, and policies and multipliers have no strong duality. The result
is a policy with its certain returns (`policy_bounds`), and a bound on the value of any policy,

    D(lambda) = max_pi min_P ( V[r^0] + sum_n lambda_n (V[r^n] - b^n) ),      lambda >= 0.

The bound holds because one kernel for all returns is less adverse than one kernel for each. The
minimum of D is the smallest optimum of a CMDP with one kernel of the box. The result states the
gap.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab import display
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.policy import Policy
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.solvers.box import plan, policy_bounds, poured
from cmdplab.solvers.layout import Box, One, check_kernels
from cmdplab.types import Array, frozen

ROUNDS = 40  # kernels against multipliers; each round lowers the bound, most end after a few
STARTS = 3  # policies from which the ascent begins
STEPS = 60  # of the ascent; each takes N + 1 evaluations and one linear program
ENOUGH = 1e-9  # relative to H: what rounding may leave


@display.shown
@frozen
class RobustSolution(NamedTuple):
    """A policy that meets the thresholds on every kernel of a box, and a bound on the best value.

    `value` and `utility` are worst cases, certified one by one. `upper` bounds the worst-case value
    of every policy that meets the thresholds on every kernel. If `feasible` is false, `message`
    tells if no such policy exists (`upper` is -inf) or if none was found.
    """

    feasible: bool
    value: float | None  # min over kernels of V[r^0], of `policy`
    utility: Array | None  # [N], min over kernels of V[r^n], of `policy`
    policy: Policy | None  # [H, X, A]; the least violating one where none was found
    upper: float
    multiplier: Array  # [N], with which `upper` was found
    message: str = ""

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [("at most", display.number(self.upper))]
        if self.feasible:
            facts = [("at least", display.number(self.value)), *facts]
            facts.append(("utility at least", display.numbers(self.utility)))
        if self.message:
            facts.append(("message", self.message))
        return f"RobustSolution{'' if self.feasible else ', none'}", facts

    @property
    def gap(self) -> float:
        """Return the distance of the bounds, or infinity without a feasible policy."""
        return np.inf if self.value is None or not self.feasible else self.upper - self.value


def solve_robust(problem: CMDP, box: Box) -> RobustSolution:
    """Return a policy for the worst kernel of a box, with bounds from both sides.

    box : [H, X, A, X], or [X, A, X] for every step. Its mask is that of the problem. The problem's
    own kernel is not read. The result is exact for N = 0. See the module for the bounds for N >= 1.
    """
    given = _fitting(problem, box)
    if problem.constraints == 0:
        best = pessimistic(problem, given, problem.reward[0])
        returns = policy_bounds(given, problem.reward, best.policy, problem.start)
        return _answer(problem, best.policy, returns, best.value, np.zeros(0))
    bound = _upper(problem, given)
    if bound.value == -np.inf:
        why = "no policy meets the thresholds on every kernel: one kernel of the box allows none"
        return RobustSolution(False, None, None, None, -np.inf, bound.multiplier, why)
    policy, returns = _ascent(problem, given, bound)
    return _answer(problem, policy, returns, bound.value, bound.multiplier)


def _answer(
    problem: CMDP, policy: Array, returns: Array, upper: float, multiplier: Array
) -> RobustSolution:
    short = float(np.max(problem.threshold - returns[1:], initial=-np.inf))
    made = Policy(policy, problem.labels, f"robust policy of {problem.name}")
    if short > ENOUGH * problem.horizon:
        why = (
            f"no policy was found that meets the thresholds on every kernel: the best falls short "
            f"by {short:.6g}; whether there is one is not known"
        )
        return RobustSolution(False, None, returns[1:], made, upper, multiplier, why)
    value = float(returns[0])
    apart = upper - value > 1e-6 * problem.horizon
    message = f"the bounds are {upper - value:.3g} apart" if apart else ""
    return RobustSolution(True, value, returns[1:], made, upper, multiplier, message)


def _fitting(problem: CMDP, box: Box) -> Box:
    if not isinstance(problem, CMDP):
        what = getattr(problem, "name", repr(problem))
        raise InputError(f"a worst kernel is looked for over episodes: {what} has no horizon")
    if not isinstance(box, Box):
        raise InputError("the box must be a Box, such as that of from_counts, or Box.around(P, w)")
    shape = (problem.horizon, problem.states, problem.actions, problem.states)
    ends = [floats("the box", each) for each in box[:2]]
    for each in ends:
        if each.shape not in (shape, shape[1:]):
            raise InputError(f"the box has the shape {each.shape}, not {shape} or {shape[1:]}")
    lower, upper = (np.broadcast_to(each, shape) for each in ends)
    check_kernels(lower, upper, shape[:3])
    return Box(lower, upper, problem.mask)


def worst_rows(box: Box, h: int, value: Array) -> Array:
    """Return the kernel [X, A, X] of step h that minimises sum_y P(y) value(y)."""
    lower = np.moveaxis(box.lower[h], -1, 0)
    room = np.moveaxis(box.upper[h], -1, 0) - lower
    spare = np.maximum(1.0 - lower.sum(axis=0), 0.0)
    return np.moveaxis(poured(lower, room, spare, np.argsort(value, kind="stable")), 0, -1)


class Backward(NamedTuple):
    """A dynamic program against the worst kernel of one reward."""

    value: float
    policy: Array  # [H, X, A]
    q: Array  # [H, X, A]
    kernel: Array  # [H, X, A, X], the worst


def pessimistic(problem: CMDP, box: Box, reward: Array, policy: Array | None = None) -> Backward:
    """Return max_pi min_P V^pi[P, r] of one reward [H, X, A], or min_P V^pi[P, r] of a policy."""
    chosen, q = np.zeros_like(reward), np.empty_like(reward)
    kernel, value = np.empty((*reward.shape, problem.states)), np.zeros(problem.states)
    for h in reversed(range(problem.horizon)):
        kernel[h] = worst_rows(box, h, value)
        q[h] = reward[h] + kernel[h] @ value
        if policy is None:
            q[h, ~problem.opened[h]] = -np.inf
            chosen[h, np.arange(problem.states), np.argmax(q[h], axis=-1)] = 1.0
            value = q[h].max(axis=-1)
        else:
            value = np.sum(policy[h] * q[h], axis=-1)
    return Backward(float(value[problem.start]), chosen if policy is None else policy, q, kernel)


class _Bound(NamedTuple):
    value: float  # -inf where a kernel was found that no policy suits
    multiplier: Array
    policies: list[Array]  # that were met on the way


def _upper(problem: CMDP, box: Box) -> _Bound:
    """Return the least D(lambda) that alternating kernels and multipliers find.

    For a kernel, take the multipliers of its CMDP. For multipliers, take their worst kernel.
    Neither raises the bound. The bound may end above the minimum, and holds wherever it ends.
    """
    policies, best, multiplier = [], np.inf, np.zeros(problem.constraints)
    kernels = [_middle(box)]
    kernels += [pessimistic(problem, box, each).kernel for each in problem.reward]
    for kernel in kernels:
        before = np.inf
        for _ in range(ROUNDS):
            known = One(kernel, box.mask)
            found = plan(known, problem.reward, problem.threshold, problem.start)
            policies.append(found.policy)
            if not found.feasible and found.margin < -ENOUGH * problem.horizon:
                return _Bound(-np.inf, found.multiplier, policies)
            weighted = np.tensordot(np.append(1.0, found.multiplier), problem.reward, 1)
            value, policy, _, kernel = pessimistic(problem, box, weighted)
            policies.append(policy)
            bound = value - float(found.multiplier @ problem.threshold)
            if bound < best:
                best, multiplier = bound, found.multiplier
            if not bound < before - ENOUGH * problem.horizon:
                break
            before = bound
    return _Bound(best, multiplier, policies)


def _middle(box: Box) -> Array:
    """Return a kernel of the box, where every entry takes an equal share of its width."""
    room = box.upper - box.lower
    spare = 1.0 - box.lower.sum(axis=-1, keepdims=True)
    total = room.sum(axis=-1, keepdims=True)
    return np.asarray(box.lower + room * spare / np.where(total > 0.0, total, 1.0))


def _merit(problem: CMDP, returns: Array) -> tuple[float, float]:
    """Return the sort key of a policy: first the shortfall, then the value."""
    short = max(float(np.max(problem.threshold - returns[1:])), 0.0)
    return (-short if short > ENOUGH * problem.horizon else 0.0, float(returns[0]))


class _Judged(NamedTuple):
    policy: Array  # [H, X, A]
    returns: Array  # [1 + N]
    merit: tuple[float, float]


def _judged(problem: CMDP, box: Box, policy: Array) -> _Judged:
    returns = policy_bounds(box, problem.reward, policy, problem.start)
    return _Judged(policy, returns, _merit(problem, returns))


def _ascent(problem: CMDP, box: Box, bound: _Bound) -> tuple[Array, Array]:
    """Return a good policy [H, X, A] and its certain returns [1 + N].

    The ascent begins at the best of `bound.policies` and at the safest policy for each utility.
    """
    safest = [pessimistic(problem, box, each).policy for each in problem.reward[1:]]
    found = [_judged(problem, box, each) for each in [*bound.policies, *safest]]
    found.sort(key=lambda each: each.merit, reverse=True)
    best, closed = found[0], (0.0, bound.value - ENOUGH * problem.horizon)
    for each in found[:STARTS]:
        if best.merit < closed:
            best = max(best, _climbed(problem, box, each), key=lambda one: one.merit)
    return best.policy, best.returns


def _climbed(problem: CMDP, box: Box, at: _Judged) -> _Judged:
    """Climb by linear programs: each step improves all worst cases to first order.

    The programs raise thresholds by `more`, to make up for the second-order loss. `more` falls if
    no step improves.
    """
    more = 0.05 * problem.horizon
    for _ in range(STEPS):
        slopes = np.stack([_slope(problem, box, at.policy, each) for each in problem.reward])
        toward = _direction(problem, at, slopes, more)
        step = _longest(problem, box, at, toward)
        if step is None:
            more /= 8.0
            if more < ENOUGH * problem.horizon:
                break
        else:
            at = step
    return at


def _longest(problem: CMDP, box: Box, at: _Judged, toward: Array) -> _Judged | None:
    """Return the longest improving step on the way to a policy, by halving, or None."""
    for halved in range(12):
        share = 0.5**halved
        found = _judged(problem, box, (1.0 - share) * at.policy + share * toward)
        short, value = found.merit
        least = 1e-10 * problem.horizon
        if short > at.merit[0] + least or (short >= at.merit[0] and value > at.merit[1] + least):
            return found
    return None


def _slope(problem: CMDP, box: Box, policy: Array, reward: Array) -> Array:
    """Return w_h(x) Q_h(x, a), [H, X, A], of a return under its own worst kernel.

    This is the slope of the worst case if the worst kernel is unique (the envelope theorem).
    """
    _, _, q, kernel = pessimistic(problem, box, reward, policy)
    here = np.zeros(problem.states)
    here[problem.start] = 1.0
    for h in range(problem.horizon):
        q[h] *= here[:, None]
        here = np.einsum("xa,xay->y", here[:, None] * policy[h], kernel[h])
    return q


def _direction(problem: CMDP, at: _Judged, slopes: Array, more: float) -> Array:
    """Return the policy that is best to first order, with thresholds higher by `more` if possible.

    Rows that no worst kernel visits stay as they are.
    """
    from scipy import sparse  # a quarter of a second, which `solve` does without
    from scipy.optimize import linprog

    H, X, A = at.policy.shape
    flat = slopes.reshape(len(slopes), -1)
    now = flat @ at.policy.ravel()
    penalty = 10.0 * (1.0 + np.abs(flat[0]).sum())
    objective = np.append(-flat[0], penalty)
    # V + slope . (pi' - pi) + shortfall >= b + more
    rows = np.hstack([-flat[1:], -np.ones((len(flat) - 1, 1))])
    limits = at.returns[1:] - now[1:] - problem.threshold - more
    sums = sparse.hstack(
        [sparse.kron(sparse.eye_array(H * X), np.ones((1, A))), np.zeros((H * X, 1))]
    )
    ends = [(0.0, 1.0 if each else 0.0) for each in problem.opened.ravel()]
    found = linprog(objective, rows, limits, sums, np.ones(H * X), [*ends, (0.0, None)])
    if found.status != 0:
        return at.policy
    policy = np.clip(found.x[:-1].reshape(H, X, A), 0.0, 1.0)
    policy /= policy.sum(axis=-1, keepdims=True)
    visited = np.abs(slopes).max(axis=(0, -1)) > 0.0
    return np.where(visited[..., None], policy, at.policy)
