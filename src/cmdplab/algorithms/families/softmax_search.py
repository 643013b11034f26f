"""The softmax-search family: one scalar multiplier, found by bisection, for a softmax policy.

Counts n give a ridge estimate with sub-stochastic rows and a width without a logarithm,

    Phat_h(y | x, a) = n_h(x, a, y) / (n_h(x, a) + 1),    beta_h(x, a) = 1 / sqrt(n_h(x, a) + 1)

and one backward pass evaluates a policy while it builds it, h = H, ..., 1, with V_{H+1} = 0:

    Qr = r        + clip( Cr beta      + Phat Vr, 0, (1 + kappa ln A) l_h )    optimistic reward
    Qd = B beta   + clip( Cd beta      + Phat Vd, 0, B l_h )                   compensation
    Qu = u        + clip( sign Cu beta + Phat Vu, 0, l_h )                     utility
    pi^lam_h(. | x) = softmax_a( (Qd + Qr + lam Qu)(x, .) / kappa )
    Vr = sum_a pi (Qr - kappa ln pi),  Vd = sum_a pi Qd,  Vu = sum_a pi Qu,    U(lam) = Vu_1(x_1)

r and u are the rewards of the objective and of the constraint with threshold b. lam is the
multiplier, kappa the temperature, A the number of actions and l_h = H - h. Cr, Cd, Cu, B and C_lam
are constants of an algorithm (`Constants`), and its sign of Cu is -1 or 1.

An episode searches the smallest lam in [0, C_lam] with U(lam) >= b. It plays the upper end of the
last bracket, whose U was found >= b. If even C_lam fails, it plays the safe policy or pi^C_lam.
With `replan="doubling"` it searches when the visits of a pair have doubled, and keeps its policy in
between. A policy that passed the test on fewer visits is as safe: the bounds hold for all counts.
With `near` > 0 the bisection begins at the multiplier of the last episode, and with a bracket that
grows from `near` times it: kappa may be 1e-6 and C_lam 1e5, which 23 halvings do not resolve.
Members differ in fields of `SoftmaxSearch`. `numbers` resolves a row for given sizes, and the
engines see only numbers. N = 1: with several constraints U need not be monotone along any one
multiplier, and the papers leave the search open.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.counts import visits_of
from cmdplab.algorithms.equations import count_weight, policy_term
from cmdplab.algorithms.families.planner import PlansAnew, every_episode, visited_asks
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.running.episodes import begin_if_changed, loops
from cmdplab.algorithms.running.layout import (
    Counts,
    Pairs,
    Scratch,
    Storage,
    laid_out,
    learner_type,
)
from cmdplab.algorithms.running.loops import copy
from cmdplab.algorithms.running.seen import SeenCounts
from cmdplab.algorithms.running.session import Family, Parts
from cmdplab.algorithms.running.storage import ListedCounts, add_visit
from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import Task
from cmdplab.numerics.arrays import aligned, padded, to_pairs
from cmdplab.numerics.compiling import by_type, callable_when_compiled, compiled, compiled_exactly
from cmdplab.numerics.vector_math import exp_plain, log_plain
from cmdplab.types import Array

# The formulas of both engines: scalars in, scalar out, as in equations.py. Compiled code keeps
# their order of operations: a small kappa makes a bit of difference into another policy.


def ridge_width(visits: float) -> float:
    """Return beta = 1 / sqrt(n + 1) after n visits of a pair."""
    return 1.0 / math.sqrt(visits + 1.0)


def clip_level(unit: float, steps_left: int, loose: float) -> float:
    """Return the clip level `unit` * (steps_left - 1 + loose), where steps_left is H - h + 1.

    loose is 0 in print, where the level is unit l_h, and 1 in the release.
    """
    return unit * (steps_left - 1.0 + loose)


def clipped_value(r: float, bonus: float, ahead: float, level: float, inside: float) -> float:
    """Return r + clip(bonus + Phat V, 0, level); inside = 1: clip(r + bonus + Phat V, 0, level).

    `ahead` is Phat V, the expected next value.
    """
    return (1.0 - inside) * r + min(max(inside * r + bonus + ahead, 0.0), level)


def composite_logit(d: float, r: float, u: float, lam: float, sharpness: float) -> float:
    """Return (Qd + Qr + lam Qu) / kappa, whose softmax over a is pi^lam; sharpness is 1 / kappa."""
    return (d + r + lam * u) * sharpness


def next_multiplier(low: float, high: float, reach: float, passed: bool) -> float:
    """Return the next multiplier to test in a bracket [low, high] whose last found end is known.

    It is the middle of a bracket no wider than `reach`. In a wider bracket, it is the point at
    distance `reach` inside the end found last: `high` if the last test `passed`.
    """
    if high - low <= reach:
        return (low + high) / 2.0
    return high - reach if passed else low + reach


FORMULAS = (ridge_width, clip_level, clipped_value, composite_logit, next_multiplier)
callable_when_compiled(FORMULAS, set())

GROWTH = 8.0  # factor of `reach` from one tested multiplier to the next


class Constants(NamedTuple):
    """Constants of the backward pass, scales included."""

    reward_width: float  # Cr
    utility_width: float  # Cu, without its sign
    compensation_width: float  # Cd
    compensation: float  # B
    temperature: float  # kappa
    largest: float  # C_lam


class SoftmaxSearchNumbers(NamedTuple):
    """Numbers of a row for given sizes: the engines read no other data of the row."""

    reward_width: float
    utility_width: float  # with its sign
    compensation_width: float
    compensation: float
    sharpness: float  # 1 / kappa
    largest: float
    reward_unit: float  # 1 + kappa ln A; 1 without an entropy
    entropy: float  # kappa in Vr; 0 without an entropy
    weighting: float
    loose: float
    inside: float
    tested: float
    bisections: float
    near: float
    fallback: float
    begins_safe: float
    terminal_value: float  # Vr_{H+1}
    replan_first: float
    replan_factor: float
    replan_most: float


@dataclass(frozen=True, kw_only=True)
class SoftmaxSearch(PlansAnew):
    """One algorithm of the family. The defaults are OPSE in print."""

    constants: Callable[[Setting, float, float], Constants]  # of a setting, bonus and margin scale
    utility_sign: float = -1.0  # of Cu: -1 pessimistic, 1 optimistic
    entropy: float = 1.0  # 0: no entropy in Vr
    weighting: float = 0.0  # 1: the entropy is weighted by pi once more (released)
    loose: float = 0.0  # 1: clip levels are one unit higher (released)
    inside: float = 0.0  # 1: the clip is around the whole of Q
    tested: bool = True  # both ends of [0, C_lam] are tried first
    bisections: int = 23  # with the two tests 25 passes
    near: float = 0.0  # > 0: the search begins at the last multiplier, and so close to it
    fallback: bool = True  # the safe policy is played if even C_lam fails
    terminal_entropy: float = 0.0  # 1: Vr_{H+1} is the entropy of a uniform choice (released)
    begins_safe: bool = False  # the first episode is the safe policy's, whatever b (released)

    def numbers(self, task: Task) -> SoftmaxSearchNumbers:
        """Return the numbers of this row for the sizes and scales of a task."""
        s = self.setting(task)
        c = self.constants(s, self.bonus_scale, self.margin_scale)
        entropy = self.entropy * c.temperature
        replan = self.replan(s)
        numbers: SoftmaxSearchNumbers = self.as_numbers(
            SoftmaxSearchNumbers,
            s,
            reward_width=c.reward_width,
            utility_width=self.utility_sign * c.utility_width,
            compensation_width=c.compensation_width,
            compensation=c.compensation,
            sharpness=1.0 / c.temperature,
            largest=c.largest,
            reward_unit=1.0 + entropy * s.log_actions,
            entropy=entropy,
            terminal_value=self.terminal_entropy
            * s.A
            * policy_term(1.0 / s.A, -s.log_actions, 0.0, entropy, self.weighting),
            replan_first=replan.first,
            replan_factor=replan.factor,
            replan_most=replan.most,
        )
        return numbers

    def _written(self, name: str) -> Any:
        """Return the value of a setting in records; None for a search in every episode."""
        if name == "replan" and self.replan is every_episode:
            return None
        return super()._written(name)

    @property
    def has_margin(self) -> bool:
        """Return True if utilities are evaluated pessimistically."""
        return self.utility_sign < 0.0


class SoftmaxSearchState(NamedTuple):
    """State that a learner of the family carries from one episode to the next."""

    counts: Counts  # [H, X, A, X], visits to (h, x, a, y); other forms: counts.py
    planned: Pairs  # [H, X, A], visits at the time of the search
    policy: Pairs  # [H, X, A], played next
    multiplier: Array  # [1], the lam of that policy; C_lam if the safe policy is played
    on_baseline: int  # 1 if the policy is the safe one
    baseline_episodes: int  # the number of its episodes
    episode: int  # episodes done

    @classmethod
    def initial(cls, row: Row, task: Task, counts: Array | None = None) -> SoftmaxSearchState:
        """Return the state before the first search; `counts` are a table unless given."""
        _, H, X, A = task.reward.shape
        counts = np.zeros((H, X, A, X)) if counts is None else counts
        none = np.zeros((H, X, A))
        return cls(counts, none, task.uniform, np.zeros(len(task.threshold)), 0, 0, 0)


# The pass. Every sum is taken in the order of plain Python, and nothing is fused: kappa may be
# 1e-7, and then a bit of a value is another policy. Loops still vectorise: they run over pairs.

term = compiled_exactly(policy_term)
exp, log = compiled_exactly(exp_plain), compiled_exactly(log_plain)


@compiled_exactly
def three_products(matrix, weights, first, second, third):
    """Write first[i] = sum_j weights[0, j] matrix[j, i]; second, third for weights[1], weights[2].

    This is the hottest loop. Three products share each load of the matrix, and four rows share
    each load of the sums.
    """
    first[:] = 0.0
    second[:] = 0.0
    third[:] = 0.0
    rows, j = len(matrix), 0
    while j + 4 <= rows:
        u0, u1, u2, u3 = weights[0, j], weights[0, j + 1], weights[0, j + 2], weights[0, j + 3]
        v0, v1, v2, v3 = weights[1, j], weights[1, j + 1], weights[1, j + 2], weights[1, j + 3]
        w0, w1, w2, w3 = weights[2, j], weights[2, j + 1], weights[2, j + 2], weights[2, j + 3]
        for i in range(len(first)):
            m0, m1, m2, m3 = matrix[j, i], matrix[j + 1, i], matrix[j + 2, i], matrix[j + 3, i]
            first[i] = (((first[i] + m0 * u0) + m1 * u1) + m2 * u2) + m3 * u3
            second[i] = (((second[i] + m0 * v0) + m1 * v1) + m2 * v2) + m3 * v3
            third[i] = (((third[i] + m0 * w0) + m1 * w1) + m2 * w2) + m3 * w3
        j += 4
    while j < rows:
        for i in range(len(first)):
            first[i] += matrix[j, i] * weights[0, j]
            second[i] += matrix[j, i] * weights[1, j]
            third[i] += matrix[j, i] * weights[2, j]
        j += 1


@compiled_exactly
def gathered_three(successor, visits, weights, first, second, third):
    """Write the sums of `expected_three` over lists of successors [S, A P]."""
    first[:] = 0.0
    second[:] = 0.0
    third[:] = 0.0
    for s in range(len(successor)):
        for i in range(len(first)):
            y, n = successor[s, i], visits[s, i]
            first[i] += n * weights[0, y]
            second[i] += n * weights[1, y]
            third[i] += n * weights[2, y]


@compiled_exactly
def listed_expected(counts, h, weights, first, second, third):
    """Do the work of `expected_three` for lists of successors."""
    gathered_three(counts.successor, counts.visits[h], weights, first, second, third)


@compiled_exactly
def seen_three(begin, used, state, visits, weights, first, second, third):
    """Write the sums of `expected_three` over the successors that were seen."""
    for i in range(len(first)):
        left, middle, right = 0.0, 0.0, 0.0
        for place in range(begin[i], begin[i] + used[i]):
            y, n = state[place], visits[place]
            left += n * weights[0, y]
            middle += n * weights[1, y]
            right += n * weights[2, y]
        first[i], second[i], third[i] = left, middle, right


@compiled_exactly
def seen_expected(counts, h, weights, first, second, third):
    """Do the work of `expected_three` for lists that grow."""
    places = (counts.begin[h], counts.used[h], counts.state, counts.visits)
    seen_three(*places, weights, first, second, third)


@by_type({ListedCounts: listed_expected, SeenCounts: seen_expected})
@compiled_exactly
def expected_three(counts, h, weights, first, second, third):
    """Write first[i] = sum_y counts_h(y, i) weights[0, y]; second, third for weights[1], [2]."""
    three_products(counts[h], weights, first, second, third)


@compiled_exactly
def action_values(
    reward, utility, beta, inverse, closed, numbers, left, lam, first, second, third, logit
):
    """Replace sums over y of counts times V by Qr, Qd, Qu. Write the logits of pi^lam at a step."""
    of_reward = clip_level(numbers.reward_unit, left, numbers.loose)
    of_compensation = clip_level(numbers.compensation, left, numbers.loose)
    of_utility = clip_level(1.0, left, numbers.loose)
    for i in range(len(logit)):
        width, scale = beta[i], inverse[i]
        ahead, bonus = first[i] * scale, numbers.reward_width * width
        r = clipped_value(reward[i], bonus, ahead, of_reward, numbers.inside)
        ahead, bonus = second[i] * scale, numbers.compensation_width * width
        d = clipped_value(numbers.compensation * width, bonus, ahead, of_compensation, 0.0)
        ahead, bonus = third[i] * scale, numbers.utility_width * width
        u = clipped_value(utility[i], bonus, ahead, of_utility, numbers.inside)
        first[i], second[i], third[i] = r, d, u
        logit[i] = composite_logit(d, r, u, lam, numbers.sharpness) + closed[i]


@compiled_exactly
def softmax(logit, policy, top, mass):
    """Write policy = softmax over a of the logits, which become ln policy: nothing overflows."""
    P = len(top)
    top[:] = -np.inf
    mass[:] = 0.0
    for a in range(len(policy) // P):
        for x in range(P):
            top[x] = max(top[x], logit[a * P + x])
    for a in range(len(policy) // P):
        for x in range(P):
            i = a * P + x
            logit[i] -= top[x]
            policy[i] = exp(logit[i])
            mass[x] += policy[i]
    for x in range(P):
        top[x] = log(mass[x])
        mass[x] = 1.0 / mass[x]
    for a in range(len(policy) // P):
        for x in range(P):
            logit[a * P + x] -= top[x]
            policy[a * P + x] *= mass[x]


@compiled_exactly
def policy_values(policy, log_policy, entropy, weighting, r, d, u, reward, compensation, utility):
    """Write Vr[x], Vd[x], Vu[x] = sum_a policy_term of Qr, Qd, Qu."""
    P = len(reward)
    reward[:] = 0.0
    compensation[:] = 0.0
    utility[:] = 0.0
    for a in range(len(policy) // P):
        for x in range(P):
            i = a * P + x
            p, log_p = policy[i], log_policy[i]
            reward[x] += term(p, log_p, r[i], entropy, weighting)
            compensation[x] += term(p, log_p, d[i], 0.0, weighting)
            utility[x] += term(p, log_p, u[i], 0.0, weighting)


@compiled_exactly
def evaluate(learner, numbers, start, lam, work):
    """Write pi^lam into `work.policy` by one backward pass, and return U(lam)."""
    H = len(learner.policy)
    q, value = work.action_value, work.value
    q[:] = 0.0
    value[:] = 0.0
    value[0, :] = numbers.terminal_value
    for h in range(H - 1, -1, -1):
        if h < H - 1 or numbers.terminal_value != 0.0:
            expected_three(learner.counts, h, value, q[0], q[1], q[2])
        action_values(
            learner.reward[0, h],
            learner.reward[1, h],
            learner.width[h],
            learner.inverse[h],
            learner.closed[h],
            numbers,
            H - h,
            lam,
            q[0],
            q[1],
            q[2],
            work.logit,
        )
        softmax(work.logit, work.policy[h], work.top, work.mass)
        soft = (numbers.entropy, numbers.weighting)
        values = (value[0], value[1], value[2])
        policy_values(work.policy[h], work.logit, *soft, q[0], q[1], q[2], *values)
    return value[2, start]


@compiled
def keep(policy, learner, lam, on_baseline):
    """Store the policy of the next episode."""
    copy(policy.reshape(-1), learner.policy.reshape(-1))
    learner.multiplier[0] = lam
    learner.on_baseline[0] = on_baseline


@compiled
def fail(learner, numbers, work):
    """Store the safe policy, or the policy just evaluated: even the largest multiplier fails."""
    if numbers.fallback > 0.0:
        keep(learner.baseline, learner, numbers.largest, 1)
    else:
        keep(work.policy, learner, numbers.largest, 0)


@compiled
def search(learner, numbers, start, work):
    """Find the policy of the next episode, from the counts."""
    copy(learner.visits.reshape(-1), learner.planned.reshape(-1))
    low, high, b = 0.0, numbers.largest, learner.threshold[0]
    last, found = learner.multiplier[0], False
    if numbers.tested > 0.0:
        if evaluate(learner, numbers, start, high, work) < b:
            fail(learner, numbers, work)
            return
        keep(work.policy, learner, high, 0)
        found = True
        if evaluate(learner, numbers, start, 0.0, work) >= b:
            keep(work.policy, learner, 0.0, 0)
            return
    lam, reach = (low + high) / 2.0, np.inf
    if numbers.near > 0.0 and low < last < high:
        lam, reach = last, numbers.near * last
    for _ in range(int(numbers.bisections)):
        passed = evaluate(learner, numbers, start, lam, work) >= b
        if passed:
            high, found = lam, True
            keep(work.policy, learner, high, 0)
        else:
            low = lam
        lam = next_multiplier(low, high, reach, passed)
        reach *= GROWTH
    if not found:
        if evaluate(learner, numbers, start, high, work) < b:
            fail(learner, numbers, work)
        else:
            keep(work.policy, learner, high, 0)


@compiled
def first(learner, numbers, start, scratch, work):
    """Find the policy of the first episode."""
    if numbers.begins_safe > 0.0:
        keep(learner.baseline, learner, numbers.largest, 1)
    else:
        search(learner, numbers, start, work)


@compiled_exactly
def refresh(learner, h, i):
    """Write the width of one pair and the factor that turns its counts into Phat."""
    learner.width[h, i] = ridge_width(learner.visits[h, i])
    learner.inverse[h, i] = count_weight(learner.visits[h, i], 1.0, 0.0)


@compiled
def refresh_all(learner):
    """Refresh every pair, at the start of a run and after a resume."""
    for h in range(len(learner.visits)):
        for i in range(learner.visits.shape[1]):
            refresh(learner, h, i)


@compiled
def advance(learner, numbers, start, steps, k, states, actions, samples, scratch, work):
    """Count episode k, and search if it is time. Return True after a search."""
    P = len(work.top)
    for h in range(len(actions)):
        i = actions[h] * P + states[h]
        add_visit(learner.counts, h, states[h + 1], i, True, 1.0)
        learner.visits[h, i] += 1.0
        refresh(learner, h, i)
    learner.baseline_episodes[0] += learner.on_baseline[0]
    if visited_asks(learner, numbers, P, states, actions):
        search(learner, numbers, start, work)
        return True
    return False


class Inputs(NamedTuple):
    """The learner's arrays beside those of its state; a pair (x, a) is at a * P + x."""

    visits: Array  # [H, A * P]
    inverse: Array  # [H, A * P], Phat = counts * inverse
    width: Array  # [H, A * P], beta
    baseline: Array  # [H, A * P]
    reward: Array  # [2, H, A * P]
    threshold: Array  # [1]
    closed: Array  # [H, A * P], zero if an action is open, else too low ever to be taken


Learner = learner_type(SoftmaxSearchState, Inputs)


class Work(NamedTuple):
    """Space for one pass."""

    value: Array  # [3, P]: Vr, Vd, Vu
    action_value: Array  # [3, A * P]
    logit: Array  # [A * P], and then ln pi
    top: Array  # [P], of a softmax
    mass: Array  # [P]
    policy: Array  # [H, A * P], pi^lam


def arrange(
    row: SoftmaxSearch, task: Task, storage: Storage, state: SoftmaxSearchState, scratch: Scratch
) -> Parts:
    """Lay out a state, and derive widths and weights from it."""
    (_, H, X, A), P = task.reward.shape, padded(task.reward.shape[2])
    safe = task.uniform if task.baseline is None else task.baseline.policy
    learner = Learner(
        **laid_out(state, task, storage, H),
        visits=to_pairs(visits_of(state.counts, H, X, A)),
        inverse=aligned(H, A * P),
        width=aligned(H, A * P),
        baseline=to_pairs(safe),
        reward=to_pairs(task.reward),
        threshold=task.threshold.copy(),
        closed=to_pairs(task.closed),
    )
    refresh_all(learner)
    sizes = ((3, P), (3, A * P), (A * P,), (P,), (P,), (H, A * P))
    return Parts(learner, scratch, Work(*(aligned(*each) for each in sizes)))


FAMILY = Family(SoftmaxSearchState, arrange, loops(advance, first=first, begin=begin_if_changed))
SoftmaxSearch.family = FAMILY
