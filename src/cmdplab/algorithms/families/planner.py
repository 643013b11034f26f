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

from cmdplab.algorithms.counts import NO_ENDS, all_visits, visits_of
from cmdplab.algorithms.equations import (
    confidence_radius,
    mixed_policy,
    queue_step,
    reward_estimate,
)
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.running.boxes import AnyBox, empty_box, enlarged_box, row_ends
from cmdplab.algorithms.running.episodes import begin_if_changed, counting, loops
from cmdplab.algorithms.running.layout import (
    Counts,
    Ends,
    Pairs,
    Scratch,
    Storage,
    laid_out,
    learner_type,
)
from cmdplab.algorithms.running.loops import copy
from cmdplab.algorithms.running.session import Family, Parts, with_places, write_policy
from cmdplab.algorithms.schedules import Constant, Schedule, Setting
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.transitions import Sparse
from cmdplab.numerics.arrays import padded, to_pairs
from cmdplab.numerics.compiling import (
    callable_when_compiled,
    compiled,
    compiled_apart,
    compiled_exactly,
    compiled_in_order,
)
from cmdplab.settings import SETTINGS
from cmdplab.solvers.layout import planning
from cmdplab.solvers.simplex import plan, write_policy as write_plan
from cmdplab.solvers.value_iteration import evaluate, sweep
from cmdplab.types import Array, Indices

# The formulas of both engines: scalars in, scalars out, as in equations.py. Compiled code keeps
# their order of operations.


def samples_of_width(freedom: float, moves: float, visits: float) -> float:
    """Return n of beta(y): a box counts visits with a known successor, a bonus all visits."""
    return moves if freedom > 0.0 else visits


def signal(r: Any, hope: float, bonus: Any, fear: float, margin: Any) -> Any:
    """Return r + w sum_y beta(y) - m sum_y beta'(y), used as r in the plan; numbers or arrays."""
    return r + hope * bonus - fear * margin


def asks_for_plan(visits: float, planned: float, first: float, factor: float, most: float) -> bool:
    """Return n' < most and n - n' >= max(first, factor n'), n' the visits at the last plan."""
    return planned < most and visits - planned >= max(first, factor * planned)


def safe_target(b: float, baseline: float, caution: float) -> float:
    """Return b + caution (b_0 - b). The baseline is left only if its utility exceeds this value."""
    return b + caution * (baseline - b)


FORMULAS = (samples_of_width, signal, asks_for_plan, safe_target)
callable_when_compiled(FORMULAS, set())


@compiled
def visited_asks(learner, numbers, P, states, actions):
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
        replan = self.replan(s)
        # Hoeffding's sqrt(log / 2n), with the logarithm of the row's own widths.
        hope, fear = (math.sqrt(0.5) * each for each in (self.bonus_scale, self.margin_scale))
        numbers: PlannerNumbers = self.as_numbers(
            PlannerNumbers,
            s,
            **self.width(s)._asdict(),
            searched=self.queue is None,
            replan_first=replan.first,
            replan_factor=replan.factor,
            replan_most=replan.most,
            objective_width=hope,
            utility_width=-fear if self.pessimistic else hope,
        )
        return numbers

    def schedule(self, task: Task, first_episode: int, episodes: int) -> Array:
        """Return [episodes, 3]: step and margin of each episode's queue, and the next weight."""
        k = np.arange(first_episode, first_episode + episodes, dtype=np.float64)
        if self.queue is None:
            return np.zeros((episodes, 3))
        s = self.setting(task)
        margin = self.margin_scale * self.queue.margin(k, s)
        return np.stack([self.queue.step(k, s), margin, self.queue.weight(k + 1.0, s)], axis=1)


# Episodes, compiled: Numba infers the types. Sweeps and pivots are in solvers/.


@compiled_exactly
def refresh_rewards(learner, numbers, layer, i, phi):
    """Write the ends of one pair's rewards for the plan, if rewards are observed."""
    visits = learner.visits[layer, i]
    for n in range(len(learner.reward_sums)):
        width = numbers.objective_width if n == 0 else numbers.utility_width
        more = numbers.reward_bonus * width * phi if n == 0 else 0.0
        r = reward_estimate(learner.reward_sums[n, layer, i], visits, width * phi)
        learner.reward[n, layer, i] = r + more


@compiled_exactly
def share_rewards(learner, layer, steps, i):
    """Copy a pair's reward ends from a layer's first step to its others, if rewards are unknown."""
    for n in range(len(learner.reward_sums)):
        for h in range(layer + 1, layer + steps):
            learner.reward[n, h, i] = learner.reward[n, layer, i]


@compiled_exactly
def refresh(learner, numbers, model, layer, i):
    """Write a pair's box and signals, from its counts and samples, at the layer's steps."""
    visits, moves = learner.visits[layer, i], learner.moves[layer, i]
    steps = model.reward.shape[1] - len(learner.visits) + 1  # all of them, or one
    phi = confidence_radius(visits, 0.0, numbers.log, float("inf"))
    refresh_rewards(learner, numbers, layer, i, phi)
    share_rewards(learner, layer, steps, i)
    counted = (learner.counts, learner.most)
    samples = samples_of_width(numbers.freedom, moves, visits)
    phi = confidence_radius(samples, 0.0, numbers.log, float("inf"))
    bonus, margin, lowest = row_ends(*counted, model, numbers, layer, i, moves, phi)
    # A fixed kernel has no spare mass: every state could otherwise get a remainder of rounding.
    model.spare[layer, i] = max(1.0 - lowest, 0.0) if numbers.freedom > 0.0 else 0.0
    for h in range(layer, layer + steps):
        r, more = learner.reward[0, h, i], numbers.objective_bonus
        model.reward[0, h, i] = signal(r, more, bonus, 0.0, margin)
        for n in range(1, len(model.reward)):
            r, more, less = learner.reward[n, h, i], numbers.utility_bonus, numbers.utility_margin
            model.reward[n, h, i] = signal(r, more, bonus, less, margin)


count, refresh_all = counting(refresh)


@compiled
def must_wait(learner, model, numbers, start, episode, work, returns):
    """Return True if the safe policy must be played in any case."""
    if learner.has_baseline[0] == 0:
        return False
    if episode < numbers.warm_up:
        return True
    if numbers.caution == -float("inf"):
        return False
    evaluate(model, learner.baseline, -1.0, float("inf"), start, work.order, returns, work)
    for n in range(len(model.threshold)):
        b = model.threshold[n]
        if returns[n + 1] <= safe_target(b, learner.baseline_returns[n + 1], numbers.caution):
            return True
    return False


@compiled
def play_safe(learner):
    """Make the baseline the policy of the next episode."""
    copy(learner.baseline.reshape(-1), learner.policy.reshape(-1))
    copy(learner.baseline_returns, learner.promised)
    learner.on_baseline[0] = 1


@compiled
def greedy_plan(learner, model, numbers, start, weight, columns, basis, work):
    """Plan by one sweep with the multipliers of the queue."""
    P = len(work.here)
    basis.weights[0] = 1.0
    for n in range(len(learner.queue)):
        learner.multiplier[n] = weight * learner.queue[n]
        basis.weights[n + 1] = learner.multiplier[n]
    actions, order, returns = columns.actions[0], columns.order[0], learner.promised
    sweep(model, basis.weights, numbers.truncation, start, actions, order, returns, work)
    learner.policy[:] = 0.0
    for h in range(len(actions)):
        for x in range(P):
            learner.policy[h, actions[h, x] * P + x] = 1.0


@compiled_in_order
def complete(policy, occupancy, closed, share, P):
    """Make this share of the policy uniform over open actions, where a plan never comes."""
    for h in range(len(policy)):
        for x in range(P):
            mass, opened = 0.0, 0.0
            for i in range(x, policy.shape[1], P):
                mass += occupancy[h, i]
                opened += closed[h, i] == 0.0
            if mass > NEVER:
                continue
            for i in range(x, policy.shape[1], P):
                uniform = 1.0 / opened if closed[h, i] == 0.0 else 0.0
                policy[h, i] = mixed_policy(policy[h, i], share, uniform)


@compiled_apart
def make_plan(learner, model, numbers, start, weight, episode, columns, basis, work):
    """Find the policy of the next episode."""
    P = len(work.here)
    copy(learner.visits.reshape(-1), learner.planned.reshape(-1))
    if must_wait(learner, model, numbers, start, episode, work, learner.promised):
        play_safe(learner)
        return
    learner.on_baseline[0] = 0
    if numbers.searched == 0.0:
        greedy_plan(learner, model, numbers, start, weight, columns, basis, work)
        return
    _, _, margin, _ = plan(model, start, learner.multiplier, columns, basis, work)
    if margin < 0.0 and learner.has_baseline[0] == 1:
        play_safe(learner)
        return
    write_plan(model, start, columns, basis, work, learner.policy, learner.promised)
    if numbers.uniform_elsewhere > 0.0:
        complete(learner.policy, work.occupancy, model.closed, numbers.uniform_elsewhere, P)
    if margin >= 0.0:
        for n in range(len(learner.multiplier)):
            learner.multiplier[n] = max(basis.multiplier[n], 0.0)


@compiled
def first(learner, numbers, start, scratch, space):
    """Make the first plan, without data."""
    model, columns, basis, work = space
    make_plan(learner, model, numbers, start, 0.0, 0, columns, basis, work)


@compiled
def advance(learner, numbers, start, steps, k, states, actions, samples, scratch, space):
    """Count episode k, update the queue, and plan if it is time."""
    model, columns, basis, work = space
    P = len(work.here)
    count(learner, numbers, model, P, 1.0, states, actions, samples)
    step, margin, weight = steps
    for n in range(len(learner.queue)):
        b, value = model.threshold[n], learner.promised[n + 1]
        learner.queue[n] = queue_step(learner.queue[n], step, b, margin, value)
    learner.baseline_episodes[0] += learner.on_baseline[0]
    if k == numbers.warm_up or visited_asks(learner, numbers, P, states, actions):
        make_plan(learner, model, numbers, start, weight, k, columns, basis, work)
        return True
    return False


class Inputs(NamedTuple):
    """The learner's arrays beside those of its state. A pair is a * P + x; L is that of the row."""

    visits: Array  # [L, A * P]
    moves: Array  # [L, A * P], visits with a known successor
    most: Array  # [X, A * P], 0 if a state is known not to follow, else 1; or [1, A * P]
    has_baseline: Indices  # [1]
    reward: Array  # [1 + N, H, A * P]
    baseline: Array  # [H, A * P]
    baseline_returns: Array  # [1 + N]


Learner = learner_type(PlannerState, Inputs)


class Space(NamedTuple):
    """The box, and the work space of the search."""

    model: AnyBox
    columns: Any
    basis: Any
    work: Any


def arrange(
    row: Planner, task: Task, storage: Storage, state: PlannerState, scratch: Scratch
) -> Parts:
    """Lay out a state, and derive the box from it."""
    baseline, (rewards, H, X, A), layers = task.baseline, task.reward.shape, row.layers(task)
    moves = visits_of(state.counts, layers, X, A)
    learner = Learner(
        **laid_out(state, task, storage, layers),
        visits=to_pairs(all_visits(moves, state.ends)),
        moves=to_pairs(moves),
        most=_most(task, storage.listed),
        has_baseline=np.array([baseline is not None], int),
        reward=to_pairs(task.reward),
        baseline=to_pairs(task.uniform if baseline is None else baseline.policy),
        baseline_returns=np.zeros(rewards) if baseline is None else baseline.returns,
    )
    model = empty_box(task, layers, storage.listed, learner.counts)
    refresh_all(learner, row.numbers(task), model, X, padded(X))
    return Parts(learner, scratch, Space(model, *planning(rewards - 1, H, X, A)))


def _most(task: Task, listed: Sparse | None) -> Array:
    """Return 1 for states that can follow a pair, as far as the task says, else 0.

    One row of ones stands for all states. With lists, one row of zeros is for the unlisted states.
    """
    pairs = task.reward.shape[3] * padded(task.reward.shape[2])
    if task.support is None:
        return np.ones((1, pairs))
    if listed is not None:
        return np.zeros((1, pairs))
    return to_pairs(np.moveaxis(task.support.astype(np.float64), 2, 0))


def grow(parts: Parts, states: Indices, actions: Indices) -> Parts:
    """Return the arrays with places for an episode, in the box too."""
    grown = with_places(parts, states, actions)
    model = enlarged_box(grown.space.model, grown.learner.counts)
    return grown._replace(space=grown.space._replace(model=model))


FAMILY = Family(
    PlannerState,
    arrange,
    loops(advance, first=first, begin=begin_if_changed),
    grow=grow,
    write=write_policy,
)
Planner.family = FAMILY
