"""The planning family: each episode plays the best policy of a set of plausible models.

Every member keeps counts, an estimate Pbar and widths beta(y) around it, and plans with

    r^0 + w^0 sum_y beta(y),   r^n + w^n sum_y beta(y) - m^n sum_y beta'(y)

over the kernels |P' - Pbar| <= freedom beta. Here bonus_scale multiplies beta and margin_scale
beta' before they are capped. The plan is

either for the optimal multipliers (an optimistic linear program, solved by solvers/simplex.py), or
greedy for multipliers from a queue, which sums the shortfalls of each constraint:

    Q^{k+1,n} = [ Q^{k,n} + step_k (b^n + margin_k - V~^n) ]_+,   multiplier = weight_k Q^{k,n}

If rewards are observed, r^n above is an end of its interval: r^ = clip(mean + width, 0, 1). The
lower end is for utilities with a pessimistic plan.

A pair that was never visited has a uniform estimate. If the kernel is chosen (freedom 1), the pair
may have any kernel at any scale, which keeps scaled algorithms exploring. If not (freedom 0), the
pair has its scaled bonus only.

L below is H if each step has counts of its own, and 1 if a stationary kernel lets the steps share
them. Then step h reads layer min(h, L - 1) of every array of counts.

Some members start from a safe policy and play it until their plan is provably safe. Members differ
in fields of `Planner`. `numbers` resolves a row for given sizes, and the engines see only numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.counts import NO_ENDS
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.running.layout import Counts, Ends, Pairs
from cmdplab.algorithms.schedules import Constant, Schedule, Setting
from cmdplab.algorithms.task import Task
from cmdplab.numerics.compiling import callable_when_compiled, compiled
from cmdplab.settings import SETTINGS
from cmdplab.types import Array

# The formulas of both engines: scalars in, scalars out, as in equations.py. Compiled code keeps
# their order of operations.


def samples_of_width(freedom: float, moves: float, visits: float) -> float:
    """Return n of beta(y): a box counts visits with a known successor, a bonus all visits."""
    return moves if freedom > 0.0 else visits


def box_half(freedom: float, width: float, visits: float) -> float:
    """Return freedom beta(y); for a pair never seen freedom itself, which allows any kernel."""
    return freedom * (width if visits > 0.0 else 1.0)


def box_ends(p: float, half: float, most: float) -> tuple[float, float]:
    """Return most ^ (Pbar(y) - half v 0), most ^ (Pbar(y) + half); most = 0: y cannot follow."""
    return min(max(p - half, 0.0), most), min(p + half, most)


def signal(r: Any, hope: float, bonus: Any, fear: float, margin: Any) -> Any:
    """Return r + w sum_y beta(y) - m sum_y beta'(y), used as r in the plan; numbers or arrays."""
    return r + hope * bonus - fear * margin


def asks_for_plan(visits: float, planned: float, first: float, factor: float, most: float) -> bool:
    """Return n' < most and n - n' >= max(first, factor n'), n' the visits at the last plan."""
    return planned < most and visits - planned >= max(first, factor * planned)


def safe_target(b: float, baseline: float, caution: float) -> float:
    """Return b + caution (b_0 - b). The baseline is left only if its utility exceeds this value."""
    return b + caution * (baseline - b)


FORMULAS = (samples_of_width, box_half, box_ends, signal, asks_for_plan, safe_target)
callable_when_compiled(FORMULAS, set())


@compiled
def visited_asks(  # type: ignore[no-untyped-def]
    learner, numbers, P, states, actions
):
    """Return True if a pair of the last episode needs a new plan."""
    for h in range(len(actions)):
        layer = min(h, len(learner.visits) - 1)
        i = actions[h] * P + states[h]
        visits, planned = learner.visits[layer, i], learner.planned[layer, i]
        rule = (numbers.replan_first, numbers.replan_factor, numbers.replan_most)
        if asks_for_plan(visits, planned, *rule):
            return True
    return False


Coefficient = Callable[[Setting], float]

NEVER = 1e-12  # a plan that reaches a state so rarely reaches it by rounding


class Width(NamedTuple):
    """Numbers of beta(y) = cap ^ scale (flat phi ^ (dev sqrt(Pbar(1 - Pbar)) phi + tail phi^2)).

    phi = sqrt(log / n): see equations.interval_width and scaled_width.
    """

    log: float
    flat: float = math.inf
    dev: float = 0.0
    tail: float = math.inf
    cap: float = 1.0


class Replan(NamedTuple):
    """Rule of a new plan: a pair was visited max(first, factor n) times since it had n < most."""

    first: float = 1.0
    factor: float = 0.0
    most: float = math.inf


def every_episode(s: Setting) -> Replan:
    """Return the default rule: every episode leads to a new plan, which uses its data at once."""
    return Replan()


def doubling(s: Setting) -> Replan:
    """Return the rule of a new plan when the visits of a pair have doubled since the last plan."""
    return Replan(first=1.0, factor=1.0)


REPLANS = dict(zip(SETTINGS["replan"].choices, (every_episode, doubling), strict=True))


class Queue(NamedTuple):
    """Schedules of the multipliers that need no search: see the module's docstring."""

    step: Schedule
    weight: Schedule = Constant(1.0)
    margin: Schedule = Constant(0.0)


def nothing(s: Setting) -> float:
    """Return zero."""
    return 0.0


class PlannerState(NamedTuple):
    """State that a planner carries from one episode to the next."""

    counts: Counts  # [L, X, A, X], visits to (h, x, a, y); other forms: counts.py
    planned: Pairs  # [L, X, A], visits when the policy was planned
    policy: Pairs  # [H, X, A], played next
    promised: Array  # [1 + N], its returns in the model it was planned with
    queue: Array  # [N]
    multiplier: Array  # [N], with which the policy was planned
    on_baseline: int  # 1 if the policy is the safe baseline
    baseline_episodes: int  # the number of episodes of the baseline
    episode: int  # episodes done
    reward_sums: Pairs = np.zeros((0, 0, 0, 0))  # [1 + N, L, X, A] of samples; empty if known
    ends: Ends = NO_ENDS  # [L, X, A], visits whose successor is not known; empty if there are none

    @classmethod
    def initial(cls, row: Row, task: Task, counts: Array | None = None) -> PlannerState:
        """Return the state before the first plan; `counts` are a table unless given."""
        (rewards, _, X, A), layers = task.reward.shape, row.layers(task)
        none = np.zeros(rewards - 1)
        return cls(
            counts=np.zeros((layers, X, A, X)) if counts is None else counts,
            planned=np.zeros((layers, X, A)),
            policy=task.uniform,
            promised=np.zeros(rewards),
            queue=none,
            multiplier=none,
            on_baseline=0,
            baseline_episodes=0,
            episode=0,
            reward_sums=task.no_samples[:, :layers],
        )


class PlannerNumbers(NamedTuple):
    """Numbers of a row for given sizes: a compiled loop reads no other data of an algorithm."""

    log: float
    flat: float
    dev: float
    tail: float
    cap: float
    bonus_scale: float
    margin_scale: float
    freedom: float
    objective_bonus: float
    utility_bonus: float
    utility_margin: float
    truncation: float
    searched: float
    caution: float
    warm_up: float
    replan_first: float
    replan_factor: float
    replan_most: float
    objective_width: float
    utility_width: float
    reward_bonus: float
    uniform_elsewhere: float


@dataclass(frozen=True, kw_only=True)
class PlansAnew(Row):
    """A row that finds its policy by a search, in every episode or more rarely."""

    replan: Callable[[Setting], Replan] = REPLANS[SETTINGS["replan"].default]

    def _value(self, name: str) -> Any:
        """Return the value of a setting; for `replan` the name of its schedule in `REPLANS`."""
        if name != "replan":
            return super()._value(name)
        return next((known for known, each in REPLANS.items() if each is self.replan), None)

    def _change(self, name: str, value: Any) -> dict[str, Any]:
        return super()._change(name, REPLANS[value] if name == "replan" else value)

    @property
    def may_plan_rarely(self) -> bool:
        """Return True if the row plans in every episode, and could plan only at doubled visits."""
        return self.replan is every_episode


@dataclass(frozen=True, kw_only=True)
class Planner(PlansAnew):
    """One algorithm of the family. The defaults are OptCMDP."""

    width: Callable[[Setting], Width]
    freedom: float = 1.0  # 1: the kernel is chosen in the box; 0: it is Pbar
    objective_bonus: Coefficient = nothing  # w^0
    utility_bonus: Coefficient = nothing  # w^n
    utility_margin: Coefficient = nothing  # m^n
    reward_bonus: Coefficient = nothing  # if rewards are observed: this many more widths on r^0
    truncation: float = math.inf  # 1: values are truncated at the steps left
    queue: Queue | None = None  # None: the multipliers are the optimal ones
    caution: float = -math.inf  # the baseline must exceed b + caution (b_0 - b) to be left
    warm_up: Coefficient = nothing  # episodes that the baseline is played in any case
    epsilon: float = SETTINGS["epsilon"].default
    uniform_elsewhere: float = 0.0  # where a plan never comes: 0 its greedy action, 1 any action

    def setting(self, task: Task) -> Setting:
        return super().setting(task)._replace(epsilon=self.epsilon, bonus_scale=self.bonus_scale)

    @property
    def may_plan_rarely(self) -> bool:
        """Return False with a queue, because its multipliers change in every episode."""
        return self.queue is None and super().may_plan_rarely

    @property
    def has_margin(self) -> bool:
        """Return True if the plan is pessimistic about utilities, or the queue aims above b."""
        owed = self.queue is not None and self.queue.margin != Constant(0.0)
        return owed or self.pessimistic

    @property
    def pessimistic(self) -> bool:
        """Return True if the plan uses the lower ends of the utilities."""
        return self.utility_margin is not nothing

    @property
    def promise_heuristic(self) -> str:
        """Return why zero violation may fail: margins may not cover the chosen kernel, or ""."""
        if self.safe and self.freedom > 0.0 and self.bonus_scale > self.margin_scale >= 1.0:
            return "bonus scale above the margin scale: zero violation is heuristic"
        return super().promise_heuristic

    @property
    def heuristic(self) -> str:
        if self.safe and self.margin_scale >= 1.0 and self.promise_heuristic and not self.pooled:
            return self.promise_heuristic
        return super().heuristic

    def numbers(self, task: Task) -> PlannerNumbers:
        """Return the numbers of this row for a task."""
        s = self.setting(task)
        width, replan = self.width(s), self.replan(s)
        # Hoeffding's sqrt(log / 2n), with the logarithm of the row's own widths.
        hope, fear = (math.sqrt(0.5) * each for each in (self.bonus_scale, self.margin_scale))
        return PlannerNumbers(
            *width,
            bonus_scale=self.bonus_scale,
            margin_scale=self.margin_scale,
            freedom=self.freedom,
            objective_bonus=self.objective_bonus(s),
            utility_bonus=self.utility_bonus(s),
            utility_margin=self.utility_margin(s),
            truncation=self.truncation,
            searched=1.0 if self.queue is None else 0.0,
            caution=self.caution,
            warm_up=self.warm_up(s),
            replan_first=replan.first,
            replan_factor=replan.factor,
            replan_most=replan.most,
            objective_width=hope,
            utility_width=-fear if self.pessimistic else hope,
            reward_bonus=self.reward_bonus(s),
            uniform_elsewhere=self.uniform_elsewhere,
        )

    def schedule(self, task: Task, first_episode: int, episodes: int) -> Array:
        """Return [episodes, 3]: step and margin of each episode's queue, and the next weight."""
        k = np.arange(first_episode, first_episode + episodes, dtype=np.float64)
        if self.queue is None:
            return np.zeros((episodes, 3))
        s = self.setting(task)
        margin = self.margin_scale * self.queue.margin(k, s)
        return np.stack([self.queue.step(k, s), margin, self.queue.weight(k + 1.0, s)], axis=1)
