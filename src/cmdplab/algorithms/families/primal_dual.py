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

from cmdplab.algorithms.counts import NO_ENDS
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.running.layout import Counts, Ends, Pairs
from cmdplab.algorithms.schedules import Constant, Power, Schedule, Setting
from cmdplab.algorithms.task import Task
from cmdplab.errors import InputError
from cmdplab.settings import SETTINGS, check_choice
from cmdplab.types import Array


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
        bonus = self.bonus(setting)
        multiplier, entropy = self.bonus_multiplier(setting)
        scale = self.bonus_scale * (1.0 + self.reward_bonus * task.observed)
        # Hoeffding's sqrt(log / 2n) for a known K; phi itself if it holds for all n at once.
        width = self.bonus_scale * (1.0 if bonus.iterated else math.sqrt(0.5))
        return PrimalDualNumbers(
            log=bonus.log,
            root=scale * bonus.root,
            dev=scale * bonus.dev,
            flat=scale * bonus.flat,
            tail=scale * bonus.tail,
            iterated=bonus.iterated,
            radius_cap=self.radius_cap,
            bonus_multiplier=multiplier,
            bonus_entropy=entropy,
            unvisited_mass=self.unvisited.row_mass,
            unvisited_extra=self.unvisited.extra_bonus,
            entropy_weighting=self.entropy_weighting,
            terminal_entropy=self.terminal_entropy,
            dual_lookahead=self.dual_lookahead,
            dual_cap=self.dual_cap(setting),
            log_actions=setting.log_actions,
            prior_visits=self.prior_visits,
            mixing=self.mixing(setting),
            reward_scale=0.0 if self.reward_bonus else width,
            visit=1.0,
        )

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
