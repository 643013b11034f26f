"""The primal-dual family: one row of choices is one algorithm.

Every episode k of every member does the same four things (paper, Algorithms 1 and 2):

    play pi^k, count the visited transitions,
    (and, if rewards are observed, replace them by r^ = clip(mean + width, 0, 1))
    evaluate pi^k on Pbar^k for each reward n:  Q~^n = min(r^n + m^n beta + Pbar V~^n, cap^n)
    pi^{k+1} prop. to (pi^k)^{1 - eta tau} exp(eta (Q~^0 + sum_n lambda^n Q~^n))
    lambda^{k+1,n} = clip(lambda^n + eta' (b^n - V~^n_1(x_1) - tau lambda^n), 0, dual cap)

Algorithms, and the paper's text and its released notebook, differ in fields of `PrimalDual`.
`numbers` resolves a row for given sizes. The engines see only those numbers, so that no choice of
algorithm or hyper-parameter ever compiles anything again.

L below is H if each step has counts of its own, and 1 if stationary dynamics let the steps share
them. Then step h reads layer min(h, L - 1) of every array of counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.counts import NO_ENDS, all_visits, visits_of
from cmdplab.algorithms.equations import (
    bonus,
    bonus_weight,
    confidence_radius,
    count_weight,
    multiplier_cap,
    multiplier_step,
    reward_estimate,
    reward_temperature,
    seen_value,
    unvisited_bonus,
    value_cap,
)
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.running.episodes import counting, loops
from cmdplab.algorithms.running.layout import (
    Counts,
    Ends,
    Pairs,
    Scratch,
    Storage,
    laid_out,
    learner_type,
    with_row_for,
)
from cmdplab.algorithms.running.loops import (
    copy,
    evaluate_pair,
    mix,
    soft_values,
    softmax_step,
    sum_of_deviations,
    sum_of_roots,
)
from cmdplab.algorithms.running.session import Family, Parts, with_places, write_policy
from cmdplab.algorithms.running.storage import expected_pair, gather
from cmdplab.algorithms.schedules import Constant, Power, Schedule, Setting
from cmdplab.algorithms.task import Task
from cmdplab.errors import InputError
from cmdplab.numerics.arrays import aligned, padded, to_pairs
from cmdplab.numerics.compiling import compiled
from cmdplab.settings import SETTINGS, check_choice
from cmdplab.types import Array, Indices


class PrimalDualState(NamedTuple):
    """State that a primal-dual learner carries from one episode to the next."""

    counts: Counts  # [L, X, A, X], visits to (h, x, a, y), or P; other forms: counts.py
    log_policy: Pairs  # [H, X, A], ln pi_h(a | x)
    policy: Pairs  # [H, X, A]; exp(log_policy) can differ in the last bit, and resuming is exact
    multiplier: Array  # [N]
    episode: int  # episodes done
    reward_sums: Pairs = np.zeros((0, 0, 0, 0))  # [1 + N, L, X, A] of samples; empty if known
    ends: Ends = NO_ENDS  # [L, X, A], visits whose successor is not known; empty if there are none

    @classmethod
    def initial(cls, row: Row, task: Task, counts: Array | None = None) -> PrimalDualState:
        """Return the state with no visits, the uniform policy and zero multipliers.

        `counts` are a table unless given. A known kernel replaces the visits: one visit to every
        pair, shared out by P.
        """
        rewards, _, X, A = task.reward.shape
        layers, policy = row.layers(task), task.uniform
        log_policy = np.log(np.where(policy > 0.0, policy, 1.0)) + task.closed
        if counts is None:
            known = task.known_rows(None)
            counts = np.zeros((layers, X, A, X)) if known is None else known
        multiplier = np.zeros(rewards - 1)
        return cls(counts, log_policy, policy, multiplier, 0, task.no_samples[:, :layers])


class Bonus(NamedTuple):
    """Numbers of beta = phi (root S + dev D + flat) + tail phi^2.

    phi = sqrt((iterated llnp(2n) + log) / n). S = sum_y sqrt(Pbar(y)),
    D = sum_y sqrt(Pbar(y)(1 - Pbar(y))): see equations.bonus.
    """

    log: float
    root: float = 0.0
    dev: float = 0.0
    flat: float = 0.0
    tail: float = 0.0
    iterated: float = 0.0


def no_bonus(s: Setting) -> Bonus:
    """Return beta = 0: there is nothing to explore."""
    return Bonus(log=0.0)


class Unvisited(NamedTuple):
    """Values of a pair (x, a) that was never seen at step h."""

    row_mass: float  # Pbar(y) = row_mass / X
    extra_bonus: float  # added to the bonus; infinity holds Q~ at its cap


ZERO_ROW = Unvisited(row_mass=0.0, extra_bonus=0.0)  # the printed definition of Pbar
UNIFORM_ROW = Unvisited(row_mass=1.0, extra_bonus=0.0)  # the released notebook
OPTIMISTIC_CAP = Unvisited(row_mass=0.0, extra_bonus=math.inf)  # the result of the unscaled bonus


def value_range(s: Setting) -> tuple[float, float]:
    """Return H and ln A. The printed bonus has the factor H (1 + tau ln A) for n = 0, else H."""
    return float(s.H), s.log_actions


def unit(s: Setting) -> tuple[float, float]:
    """Return 1 and 0. The released bonus has no factor, for every reward."""
    return 1.0, 0.0


def slater_cap(s: Setting) -> float:
    """Return H / slack. The printed multipliers are clipped at H (1 + tau ln A) / slack."""
    return s.H / s.slack


def unmixed(s: Setting) -> float:
    """Return theta = 0: the policy step starts from pi^k itself."""
    return 0.0


def uncapped(s: Setting) -> float:
    """Return infinity. The released multipliers are only kept above zero."""
    return math.inf


class PrimalDualNumbers(NamedTuple):
    """Numbers of a row for given sizes: a compiled loop reads no other data of an algorithm."""

    log: float
    root: float
    dev: float
    flat: float
    tail: float
    iterated: float
    radius_cap: float
    bonus_multiplier: float
    bonus_entropy: float
    unvisited_mass: float
    unvisited_extra: float
    entropy_weighting: float
    terminal_entropy: float
    dual_lookahead: float
    dual_cap: float
    log_actions: float
    prior_visits: float
    mixing: float
    reward_scale: float
    visit: float  # added to the counts by a visit: 1, or 0 if the kernel is known


# The fields whose exponents are settings.
_EXPONENTS = {"alpha_eta": ("policy_step", "dual_step"), "alpha_tau": ("temperature",)}
# The fields whose constants are settings, of a row that plans.
_CONSTANTS = {
    "fixed_step": ("policy_step", "dual_step"),
    "fixed_temperature": ("temperature",),
}
_ETA, _TAU = (Power(SETTINGS[name].default) for name in _EXPONENTS)


@dataclass(frozen=True, kw_only=True)
class PrimalDual(Row):
    """One algorithm of the family. The defaults are UOpt-RPGPD as the paper prints it."""

    bonus: Callable[[Setting], Bonus]
    policy_step: Schedule = _ETA  # eta_k of the policy
    dual_step: Schedule = _ETA  # eta_k of the multipliers
    temperature: Schedule = _TAU  # tau_k
    margin: Schedule = Constant(0.0)  # the dual step aims at b + margin_k
    bonus_multiplier: Callable[[Setting], tuple[float, float]] = value_range
    radius_cap: float = math.inf  # the cap on phi: infinite in Section 3, 1 in Appendix H.1
    prior_visits: float = 0.0  # Pbar, phi and means of observed rewards divide by n + prior_visits
    reward_bonus: float = 0.0  # > 0: so many bonuses more if rewards are observed, and no width
    unvisited: Unvisited = OPTIMISTIC_CAP
    mixing: Callable[[Setting], float] = unmixed  # theta: pi^k is mixed with it before each step
    dual_cap: Callable[[Setting], float] = slater_cap
    entropy_weighting: float = 0.0  # 1: the entropy is weighted by pi twice (released)
    terminal_entropy: float = 0.0  # 1: V_{H+1} is the entropy of pi_H instead of 0 (released)
    dual_lookahead: float = 0.0  # 1: the dual step averages Q~^k with pi^{k+1} (released)
    kernel: str | None = None  # known: Pbar = P and beta = 0 (Appendix A's setting)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.radius_cap > 0.0:
            raise InputError(f"radius_cap is {self.radius_cap:g}, not a positive number")
        if self.kernel is not None:
            check_choice("kernel", self.kernel)
        if self.kernel is not None and self.pooled:
            raise InputError(f"{self.name} with a known kernel counts nothing: no dynamics")

    def numbers(self, task: Task) -> PrimalDualNumbers:
        """Return the numbers of this row for a task. A known kernel has no bonus."""
        if self.knows_kernel:
            return (
                replace(self, bonus=no_bonus, unvisited=ZERO_ROW, prior_visits=0.0, kernel=None)
                .numbers(task)
                ._replace(visit=0.0)
            )
        setting = self.setting(task)
        beta = self.bonus(setting)
        multiplier, entropy = self.bonus_multiplier(setting)
        scale = self.bonus_scale * (1.0 + self.reward_bonus * task.observed)
        # Hoeffding's sqrt(log / 2n) for a known K; phi itself if it holds for all n at once.
        width = self.bonus_scale * (1.0 if beta.iterated else math.sqrt(0.5))
        numbers: PrimalDualNumbers = self.as_numbers(
            PrimalDualNumbers,
            setting,
            log=beta.log,
            root=scale * beta.root,
            dev=scale * beta.dev,
            flat=scale * beta.flat,
            tail=scale * beta.tail,
            iterated=beta.iterated,
            bonus_multiplier=multiplier,
            bonus_entropy=entropy,
            unvisited_mass=self.unvisited.row_mass,
            unvisited_extra=self.unvisited.extra_bonus,
            log_actions=setting.log_actions,
            reward_scale=0.0 if self.reward_bonus else width,
            visit=1.0,
        )
        return numbers

    def schedule(self, task: Task, first_episode: int, episodes: int) -> Array:
        """Return [episodes, 4]: policy step, dual step, temperature, margin; k counts from 1."""
        k = np.arange(first_episode, first_episode + episodes, dtype=np.float64)
        setting = self.setting(task)
        columns = (self.policy_step, self.dual_step, self.temperature, self.margin)
        steps = np.stack([column(k, setting) for column in columns], axis=1)
        steps[:, 3] *= self.margin_scale
        return steps

    def _value(self, name: str) -> Any:
        """Return the value of a setting. Exponents and constants are those of schedules."""
        if name in _CONSTANTS:
            schedule = getattr(self, _CONSTANTS[name][0])
            return schedule.value if isinstance(schedule, Constant) else None
        if name not in _EXPONENTS:
            return super()._value(name)
        schedule = getattr(self, _EXPONENTS[name][0])
        return schedule.exponent if isinstance(schedule, Power) else None

    def _change(self, name: str, value: Any) -> dict[str, Any]:
        if name in _CONSTANTS:
            if (
                limits := SETTINGS[name].range
            ) is not None:  # no field of the row, which checks those
                limits.check(name, value)
            return dict.fromkeys(_CONSTANTS[name], Constant(value))
        if name not in _EXPONENTS:
            return super()._change(name, value)
        powers = {field: getattr(self, field) for field in _EXPONENTS[name]}
        if not all(isinstance(each, Power) for each in powers.values()):
            raise InputError(
                f"{self.name} has no exponent {name}: its schedule is not a power of k"
            )
        return {field: replace(each, exponent=value) for field, each in powers.items()}

    def reads(self, name: str) -> bool:
        """Return True if a setting changes anything. Only a power of k has an exponent."""
        if name == "dynamics" and self.knows_kernel:
            return False
        return super().reads(name) and (name not in _EXPONENTS or self._value(name) is not None)

    def _may_have(self, name: str) -> bool:
        return name in _EXPONENTS or super()._may_have(name)  # `_change` says why one is missing

    @property
    def knows_kernel(self) -> bool:
        return self.kernel is not None

    @property
    def has_margin(self) -> bool:
        """Return True if the dual step aims above the thresholds."""
        return self.margin != Constant(0.0)

    def with_exponents(
        self, alpha_eta: float | None = None, alpha_tau: float | None = None
    ) -> PrimalDual:
        """Return the row with other exponents, if its step or temperature is a power of k."""
        return self.with_settings(alpha_eta=alpha_eta, alpha_tau=alpha_tau)

    def outside_theorem(self) -> str:
        """Return why the row is outside the region of Theorem 4.1, as one sentence, or ""."""
        schedules = (self.policy_step, self.dual_step, self.temperature)
        if not all(isinstance(each, Power) for each in schedules):
            return "the theorem is about steps and temperatures that are powers of k"
        eta, dual, tau = (each.exponent for each in schedules if isinstance(each, Power))
        if eta != dual:
            return f"the theorem has one step size; here the exponents are {eta:g} and {dual:g}"
        if 0.0 < tau < 0.5 < eta < 1.0 and eta + tau < 1.0:
            return ""
        return (
            f"alpha_eta = {eta:g} and alpha_tau = {tau:g} are outside the region of the theorem, "
            "0 < alpha_tau < 0.5 < alpha_eta < 1 and alpha_eta + alpha_tau < 1"
        )


def as_released(row: PrimalDual, bonus: Callable[[Setting], Bonus]) -> PrimalDual:
    """Return a printed row as the authors' notebook would run it. Its bonus is given separately.

    The notebook counts k from 0. Powers of k are therefore one episode behind.
    """
    steps = {
        field: replace(step, shift=step.shift - 1.0)
        for field in ("policy_step", "dual_step", "temperature")
        if isinstance(step := getattr(row, field), Power)
    }
    return replace(
        row,
        preset="released",
        bonus=bonus,
        bonus_multiplier=unit,
        unvisited=UNIFORM_ROW,
        dual_cap=uncapped,
        entropy_weighting=1.0,
        terminal_entropy=1.0,
        dual_lookahead=1.0,
        unverified="",
        guarantee="",  # the theorem is about the printed formulas
        **steps,  # type: ignore[arg-type]
    )


# Episodes, compiled: Numba infers the types. Index letters: running/episodes.py.


@compiled
def refresh_rewards(learner, numbers, h, i):
    """Write the upper ends of one pair's rewards, if rewards are observed."""
    visits = learner.visits[h, i]
    seen = visits + numbers.prior_visits
    for n in range(len(learner.reward_sums)):
        phi = confidence_radius(visits, numbers.iterated, numbers.log, float("inf"))
        total = learner.reward_sums[n, h, i]
        learner.reward[n, h, i] = reward_estimate(total, seen, numbers.reward_scale * phi)


@compiled
def refresh_bonus(learner, numbers, h, i, row):
    """Write the bonus of one pair from its counts, gathered first so that the roots vectorise."""
    visits, inverse = learner.visits[h, i], learner.inverse[h, i]
    times = gather(learner.counts, h, i, inverse, row)
    # A sum whose coefficient is zero is not needed: skipping it saves 0.3 us an episode.
    roots = times * sum_of_roots(row) if numbers.root != 0.0 else 0.0
    deviations = times * sum_of_deviations(row) if numbers.dev != 0.0 else 0.0
    n = visits + numbers.prior_visits
    phi = confidence_radius(n, numbers.iterated, numbers.log, numbers.radius_cap)
    beta = bonus(phi, roots, deviations, numbers.root, numbers.dev, numbers.flat, numbers.tail)
    learner.bonus[h, i] = unvisited_bonus(beta, visits, numbers.unvisited_extra)


@compiled
def refresh(learner, numbers, row, layer, i):
    """Write all that follows from the visits of one pair."""
    moves = learner.moves[layer, i]
    if moves > 0.0:
        learner.inverse[layer, i] = count_weight(moves, numbers.prior_visits, 0.0)
    refresh_bonus(learner, numbers, layer, i, row)
    refresh_rewards(learner, numbers, layer, i)


count, refresh_all = counting(refresh)


@compiled
def terms(learner, numbers, n, h, tau):
    """Return reward n at step h, its bonus weight, cap, multiplier and temperature."""
    soft = reward_temperature(n, tau)
    lam = 1.0
    if n > 0:  # the row of zeros that makes the number of rewards even has no multiplier
        lam = learner.multiplier[n - 1] if n <= len(learner.multiplier) else 0.0
    weight = bonus_weight(numbers.bonus_multiplier, soft, numbers.bonus_entropy)
    cap = value_cap(len(learner.policy) - h, soft, numbers.log_actions)
    layer = min(h, learner.reward.shape[1] - 1)
    return learner.reward[n, layer], weight, cap, lam, soft


@compiled
def evaluate(learner, numbers, h, tau, scratch):
    """Write Q~_h, V~_h of every reward and their total, from the values of step h + 1."""
    value, q = scratch.value, scratch.action_value
    layer = min(h, len(learner.visits) - 1)
    copy(learner.closed[h], scratch.total)
    for n in range(0, len(value), 2):
        expected_pair(learner.counts, layer, value[n : n + 2], q[n], q[n + 1])
        evaluate_pair(
            terms(learner, numbers, n, h, tau),
            terms(learner, numbers, n + 1, h, tau),
            learner.bonus[layer],
            learner.inverse[layer],
            learner.policy[h],
            learner.log_policy[h],
            numbers.entropy_weighting,
            q[n],
            q[n + 1],
            scratch.total,
            value[n],
            value[n + 1],
        )


@compiled
def step_multipliers(learner, numbers, start, eta, tau, margin, scratch):
    """Make the dual step on V~ of pi^k, or (lookahead = 1) on Q~^k averaged with pi^{k+1}."""
    P = scratch.value.shape[1]
    cap = multiplier_cap(numbers.dual_cap, tau, numbers.log_actions)
    for n in range(len(learner.multiplier)):
        value = scratch.value[n + 1, start]
        ahead = 0.0
        for i in range(start, len(scratch.total), P):
            ahead += learner.policy[0, i] * scratch.action_value[n + 1, i]
        value = seen_value(value, ahead, numbers.dual_lookahead)
        learner.multiplier[n] = multiplier_step(
            learner.multiplier[n], eta, tau, learner.threshold[n] + margin, value, cap
        )


@compiled
def improve(learner, numbers, start, steps, scratch):
    """Evaluate pi^k optimistically and replace it in a backward sweep, then make the dual step."""
    eta, dual_eta, tau, margin = steps
    value, q = scratch.value, scratch.action_value
    last = len(learner.policy) - 1
    value[:] = 0.0
    q[0, :] = 0.0
    soft_values(
        learner.policy[last],
        learner.log_policy[last],
        q[0],
        tau * numbers.terminal_entropy,
        numbers.entropy_weighting,
        value[0],
    )
    for h in range(last, -1, -1):
        evaluate(learner, numbers, h, tau, scratch)
        if numbers.mixing > 0.0:
            mix(learner.policy[h], numbers.mixing, scratch.mass, learner.log_policy[h])
        softmax_step(
            learner.log_policy[h],
            learner.policy[h],
            eta,
            tau,
            scratch.total,
            scratch.top,
            scratch.mass,
        )
    step_multipliers(learner, numbers, start, dual_eta, tau, margin, scratch)


@compiled
def advance(learner, numbers, start, steps, k, states, actions, samples, scratch, space):
    """Count episode k, then improve."""
    P = len(scratch.top)
    count(learner, numbers, scratch.row, P, numbers.visit, states, actions, samples)
    improve(learner, numbers, start, steps, scratch)
    return True


class Inputs(NamedTuple):
    """The learner's arrays beside those of its state: (6 + R) H P A doubles. A pair is a * P + x.

    L is that of the row: H, or 1 if steps share their counts.
    """

    inverse: Array  # [L, A * P], Pbar = counts * inverse
    visits: Array  # [L, A * P]
    moves: Array  # [L, A * P], visits with a known successor
    bonus: Array  # [L, A * P]
    reward: Array  # [R, H, A * P], as given; [R, L, A * P] if rewards are observed
    threshold: Array  # [N]
    closed: Array  # [H, A * P], zero if an action is open, else too low ever to be taken


Learner = learner_type(PrimalDualState, Inputs)


def arrange(
    row: PrimalDual, task: Task, storage: Storage, state: PrimalDualState, scratch: Scratch
) -> Parts:
    """Return the arrays of the loops for a state, with its bonuses and estimated rewards.

    storage : how counts are stored. scratch : the space for intermediate results.
    """
    (rewards, H, X, A), layers, numbers = task.reward.shape, row.layers(task), row.numbers(task)
    estimated = layers if task.observed else H
    moves = visits_of(state.counts, layers, X, A)
    uniform = (moves == 0.0) * (numbers.unvisited_mass > 0.0)
    reward = aligned(rewards + rewards % 2, estimated, A * padded(X))
    reward[:rewards] = to_pairs(task.reward[:, :estimated])
    learner = Learner(
        **laid_out(state, task, storage, layers, uniform),
        inverse=to_pairs(np.full(moves.shape, numbers.unvisited_mass / X)),
        visits=to_pairs(all_visits(moves, state.ends)),
        moves=to_pairs(moves),
        bonus=aligned(layers, A * padded(X)),
        reward=reward,
        threshold=task.threshold.copy(),
        closed=to_pairs(task.closed),
    )
    scratch = with_row_for(learner.counts, scratch)
    refresh_all(learner, numbers, scratch.row, padded(X), padded(X))
    return Parts(learner, scratch)


def grow(parts: Parts, states: Indices, actions: Indices) -> Parts:
    """Return the arrays with places for an episode, and a row for the longest list."""
    learner, scratch, _ = with_places(parts, states, actions)
    return Parts(learner, with_row_for(learner.counts, scratch))


FAMILY = Family(PrimalDualState, arrange, loops(advance), grow=grow, write=write_policy)
PrimalDual.family = FAMILY
