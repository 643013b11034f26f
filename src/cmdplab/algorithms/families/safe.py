"""Safe(row): a random choice between a learner and a safe policy, so that no episode violates.

S-OPS (Stradi, Castiglioni, Marchesi and Gatti, 2025) in the form of Zuo and Stradi (2026), around
any row that counts visits. Symbols -> names: pi_0 `baseline` with utilities b_0, pihat `candidate`,
w^n `bound`, lam `on_baseline`, d `baseline_slack`. In every episode

    w^n = min over P' in the box of V^pihat[P', r^n]         extended value iteration, a kernel each
    lam = max over n with w^n < b^n of (b^n - w^n) / (b_0^n - w^n), and 0 if there is none
    one draw: pi_0 with probability lam, else pihat, followed for all H steps

so that lam b_0^n + (1 - lam) w^n >= b^n: the mixture is safe, over its draw. Measures, records and
exports hold this mixture. A policy that mixes actions in every step is another one. Box:

    |P' - Pbar| <= 2 sqrt(Pbar (1 - Pbar) u / (n - 1)) + (14/3) u / (n - 1),    n - 1 at least 1
    u = ln(8 N (X H)^2 A K / delta)

If rewards are observed, r^n is the lower end clip(mean - sqrt(4 u / n), 0, 1).

Needs: K and a safe policy with its utilities, which exceed every threshold. Guarantees: with
probability 1 - delta no episode violates, in expectation over its draw, for every learner.
Its regret is of order sqrt(K) / d around a planner that is optimistic in every episode [derived].
Whether it is sublinear around a regularised primal-dual learner, or Triple-Q, is open.

Departures: w is the value of one kernel for each n, never lower than the sum of upper occupancies
of S-OPS, and as valid [derived]; Pbar (1 - Pbar) stands for Pbar, never wider, from the same
inequality (Maurer and Pontil) [derived]; Pi_0 is never forced by an optimistic program without a
solution: the plan is then any policy, whose mixture is as safe [derived]. Losses are not
adversarial: the learner is the row's. Triple-Q learns from the actions that follow, and hence from
its own episodes alone. Other rows learn from all. Provenance: draw, widths, u [paper]; the rest
[derived].
"""

from __future__ import annotations

import math
from collections import namedtuple
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple, Self, Unpack

import numpy as np

from cmdplab.algorithms.counts import visits_of
from cmdplab.algorithms.custom import Custom
from cmdplab.algorithms.equations import confidence_radius, reward_estimate
from cmdplab.algorithms.families.planner import Planner
from cmdplab.algorithms.families.triple_q import TripleQ
from cmdplab.algorithms.row import CONSTRAINT, EPISODES, SAFE_POLICY, Row
from cmdplab.algorithms.running import outside
from cmdplab.algorithms.running.boxes import AnyBox, empty_box, row_ends
from cmdplab.algorithms.running.episodes import counting, draw_action, loops
from cmdplab.algorithms.running.layout import (
    Counts,
    Pairs,
    Scratch,
    Storage,
    laid_out,
    learner_type,
    natural,
)
from cmdplab.algorithms.running.loops import copy
from cmdplab.algorithms.running.session import Family, Parts
from cmdplab.algorithms.running.storage import exact_returns
from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.transitions import Dense, Kernel
from cmdplab.errors import InputError
from cmdplab.numerics.arrays import padded, to_pairs
from cmdplab.numerics.compiling import callable_when_compiled, compiled, compiled_exactly
from cmdplab.settings import Settings, without_none
from cmdplab.solvers.layout import planning
from cmdplab.solvers.value_iteration import evaluate
from cmdplab.types import Array, Indices

# The formulas of both engines, as in planner.py.


def coin_share(lam: float, w: float, b: float, b_0: float) -> float:
    """Return max( lam, (b - w) / (b_0 - w) ) if w < b, else lam: one more bound may raise lam."""
    return max(lam, (b - w) / (b_0 - w)) if w < b else lam


def mixed_value(lam: float, own: Any, safe: Any) -> Any:
    """Return (1 - lam) V^pihat + lam V^{pi_0}: returns are linear in the mixed occupancies."""
    return (1.0 - lam) * own + lam * safe


def visits_of_width(n: float) -> float:
    """Return (n - 1) v 1, the divisor of the kernel's widths."""
    return max(n - 1.0, 1.0)


def utility_width(n: float, log: float, scale: float) -> float:
    """Return scale sqrt( 4 u / (n v 1) ), by which an observed utility may be below its mean."""
    return scale * math.sqrt(4.0 * log / max(n, 1.0))


FORMULAS = (coin_share, mixed_value, visits_of_width, utility_width)
callable_when_compiled(FORMULAS, set())


def union_log(s: Setting) -> float:
    """Return u = ln( 8 N (X H)^2 A K / delta )."""
    return math.log(8.0 * s.N * (s.X * s.H) ** 2 * s.A * s.K / s.delta)


class SafeNumbers(NamedTuple):
    """Numbers of a wrapper for given sizes: the widths of its box, as in `planner.Width`."""

    log: float
    flat: float
    dev: float
    tail: float
    cap: float
    bonus_scale: float  # both scales are the wrapper's margin_scale
    margin_scale: float
    freedom: float


_SHARED = ("bonus_scale", "delta", "tuned_for", "slack_factor", "dynamics", "unknown_rewards")
_OWN = ("margin_scale", "tightening")


@dataclass(frozen=True, kw_only=True)
class Safe(Row):
    """A wrapper that mixes a row with a safe policy: `Safe(row)`.

    A setting that is not given is that of the row inside, except `margin_scale`. It multiplies the
    widths of the wrapper's own box, and is 1 in theory. The row inside keeps its own.
    """

    row: Row = field(kw_only=False)
    name: str = ""  # Safe(...), and the name of the row inside
    bonus_scale: Any = None
    delta: Any = None
    tuned_for: Any = None
    slack_factor: Any = None
    dynamics: Any = None
    unknown_rewards: Any = None
    margin_scale: float = 1.0
    paper: str = "Stradi, Castiglioni, Marchesi and Gatti (2025), arXiv:2403.03672"
    provenance: str = "coin, widths, u [paper]; one kernel a bound, Pbar (1 - Pbar) [derived]"
    safe: bool = True
    tosses_coin: ClassVar[bool] = True
    has_margin: ClassVar[bool] = True  # its box is pessimistic

    def __post_init__(self) -> None:
        _check_inside(self.row)
        shared = {each: getattr(self, each) for each in _SHARED}
        inside = replace(self.row, **{k: v for k, v in shared.items() if v is not None})
        needs = dict.fromkeys((*inside.needs, EPISODES, SAFE_POLICY, CONSTRAINT))
        proved = "of order sqrt(K) / d" if optimistic(inside) else "unknown"
        derived = {
            "row": inside,
            "name": f"Safe({inside.name})",
            "preset": inside.preset,
            "summary": f"{inside.name} or a safe policy, by a coin: no episode violates",
            "needs": tuple(needs),
            "guarantee": f"no violation in any episode, over its coin; regret {proved}",
            "unverified": inside.unverified,
            **{each: getattr(inside, each) for each in _SHARED},
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        super().__post_init__()

    def with_settings(self, **settings: Unpack[Settings]) -> Self:
        """Return the row with other settings: margin_scale and tightening here, the rest inside."""
        chosen = dict(without_none(settings))
        inside: Any = {k: v for k, v in chosen.items() if k not in _OWN}
        changes: dict[str, Any] = {k: v for k, v in chosen.items() if k in _OWN}
        if inside.get("kernel") is not None:
            raise InputError(f"{self.name} has no setting kernel")
        row = self.row.with_settings(**inside)
        changes |= {each: getattr(row, each) for each in _SHARED}
        return replace(self, row=row, **changes)

    def reads(self, name: str) -> bool:
        """Return True if a setting changes anything, here or inside."""
        if name in (*_OWN, "delta", "tuned_for"):
            return True
        return name != "kernel" and self.row.reads(name)

    def _value(self, name: str) -> Any:
        return getattr(self, name) if name in _OWN else self.row._value(name)

    @property
    def family(self) -> Family:
        """Return the family of wrapped learners of the family inside."""
        return safe_family(self.row.family)

    @property
    def may_plan_rarely(self) -> bool:
        """Return the value of the row inside. lam is still computed anew in every episode."""
        return self.row.may_plan_rarely

    @property
    def own_episodes_only(self) -> bool:
        """Return True if the learner does not see the episodes of the safe policy."""
        return isinstance(self.row, TripleQ)

    @property
    def heuristic(self) -> str:
        """Return the claims that do not hold as they stand. Safety needs no optimism inside."""
        if self.promise_heuristic or not optimistic(self.row) or self.bonus_scale >= 1.0:
            return self.promise_heuristic
        return f"bonus scale {self.bonus_scale:g}: regret is heuristic, zero violation is not"

    def outside_theorem(self) -> str:
        """Return why the schedules inside are outside their theorem; empty if they are not."""
        return self.row.outside_theorem()

    def check(self, task: Task) -> None:
        """Refuse a task that lacks an input of the wrapper or of the row inside."""
        super().check(task._replace(kernel=None))
        self.row.check(inner_task(task))

    def numbers(self, task: Task) -> SafeNumbers:
        """Return the widths of the box for a task."""
        scale = self.margin_scale
        log = union_log(self.setting(task))
        return SafeNumbers(log, math.inf, 2.0, 14.0 / 3.0, 1.0, scale, scale, 1.0)

    def schedule(self, task: Task, first_episode: int, episodes: int) -> Array:
        """Return the schedule of the row inside."""
        return self.row.schedule(inner_task(task), first_episode, episodes)

    def layers(self, task: Task) -> int:
        return self.row.layers(task)


def _check_inside(row: object) -> None:
    if not isinstance(row, Row):
        raise InputError(
            f"Safe takes a row, not {row!r}: Safe(algorithm(NAME)), or the name 'Safe(NAME)'"
        )
    if isinstance(row, Safe) or row.safe or SAFE_POLICY in row.needs:
        raise InputError(f"{row.name} begins with a safe policy already: it needs no Safe(...)")
    if isinstance(row, Custom):
        raise InputError(f"Safe({row.name}) has no pessimistic bound: it is from outside cmdplab")
    if row.knows_kernel:
        raise InputError(f"Safe({row.name}) has no pessimistic bound: it knows the kernel")
    if row.family.write is None:
        raise InputError(f"Safe({row.name}) has no pessimistic bound: its visits are not told")


def optimistic(row: Row) -> bool:
    """Return True if a row plans with an optimistic program: then its regret is bounded."""
    return isinstance(row, Planner) and row.queue is None and not row.pessimistic


def inner_task(task: Task) -> Task:
    """Return the task of the row inside, without the safe policy and the kernel."""
    return task._replace(baseline=None, kernel=None)


class SafeFields(NamedTuple):
    """Fields that a wrapper carries from one episode to the next, beside its learner's state."""

    visited: Counts  # [L, X, A, X], visits of every episode, the safe policy's too
    utility_sums: Pairs  # [N, L, X, A] of samples; [0, L, X, A] if rewards are known
    candidate: Pairs  # [H, X, A], the learner's policy, played next with probability 1 - lam
    bound: Array  # [N], w of the candidate
    multiplier: Array  # [N], the learner's
    on_baseline: float  # lam, the probability of the safe policy in the next episode
    given_to_baseline: float  # the sum of lam over the episodes done
    baseline_episodes: int  # the number of episodes of the safe policy
    episode: int  # episodes done

    @classmethod
    def first(cls, task: Task, visited: Array) -> SafeFields:
        """Return the fields before the first episode. The candidate and its lam are found later."""
        none, sums = np.zeros(len(task.threshold)), task.no_samples[1:, : len(visited)]
        return cls(visited, sums, task.uniform, none, none, 1.0, 0.0, 0, 0)


@lru_cache
def safe_state(inside: Any) -> Any:
    """Return the type of state of a wrapper whose learner has a state of type `inside`.

    It has the fields of `SafeFields`, then those of `inside` with the prefix `learner_`.
    """
    fields = (*SafeFields._fields, *(f"learner_{name}" for name in inside._fields))
    return namedtuple("SafeState", fields)


def joined(own: SafeFields, inside: Any) -> Any:
    """Return the states of a wrapper and of its learner as one state."""
    kind: Any = type(inside)
    return safe_state(kind)(*own, *inside)


def parted(row: Safe, state: Any) -> tuple[SafeFields, Any]:
    """Return the two parts of a state: that of the wrapper and that of its learner."""
    kind = row.row.family.state
    own = {name: getattr(state, name) for name in SafeFields._fields}
    inside = {name: getattr(state, f"learner_{name}") for name in kind._fields}
    return SafeFields(**own), kind(**inside)


def behaviour(task: Task, state: Any) -> Array:
    """Return the policy [H, X, A] whose occupancy is lam w_0 + (1 - lam) w, to export or measure.

    w_0 is the occupancy of the safe policy, w that of the candidate. If `task.kernel` is None, the
    estimate replaces it, uniform for unseen pairs, and the result is approximate.
    """
    assert task.baseline is not None
    lam, safe, own = float(state.on_baseline), task.baseline.policy, np.array(state.candidate)
    if lam == 0.0:
        return own
    kernel = task.kernel if task.kernel is not None else _estimate(state.visited, len(own))
    both = [exact.visits(kernel, task.start, each) for each in (own, safe)]
    return exact.policy_of(mixed_value(lam, *both), own)


def _estimate(visited: Array, steps: int) -> Kernel:
    visits = visited.sum(axis=-1, keepdims=True)
    rows = np.where(visits > 0.0, visited / np.maximum(visits, 1.0), 1.0 / visited.shape[-1])
    return Dense(rows[np.minimum(np.arange(steps), len(rows) - 1)])


# Episodes, compiled: Numba infers the types. The guard counts the episodes of both policies,
# bounds the utilities of the candidate, and sets lam. The learner inside has its own family.


@compiled_exactly
def refresh(guard, numbers, model, layer, i):
    """Write the box and the utilities of one pair, from its visits and samples."""
    visits = guard.visits[layer, i]
    steps = model.reward.shape[1] - len(guard.visits) + 1  # all of them, or one
    width = utility_width(visits, numbers.log, numbers.margin_scale)
    for n in range(len(guard.reward_sums)):
        r = reward_estimate(guard.reward_sums[n, layer, i], visits, -width)
        for h in range(layer, layer + steps):
            model.reward[n, h, i] = r
    phi = confidence_radius(visits_of_width(visits), 0.0, numbers.log, float("inf"))
    counted = (guard.counts, guard.most)
    _, _, lowest = row_ends(*counted, model, numbers, layer, i, visits, phi)
    model.spare[layer, i] = max(1.0 - lowest, 0.0)


count, refresh_all = counting(refresh)


@compiled
def weigh(guard, model, start, work):
    """Find w of the candidate, and the lam that makes the mixture safe."""
    infinite = float("inf")
    evaluate(model, guard.candidate, -1.0, infinite, start, work.order, guard.bound, work)
    lam = 0.0
    for n in range(len(guard.bound)):
        b_0 = guard.baseline_returns[n + 1]
        lam = coin_share(lam, guard.bound[n], model.threshold[n], b_0)
    guard.on_baseline[0] = lam


@compiled
def begin(world, guard, start, k, e, changed, noise, scratch, chunk):
    """Write the exact returns of the mixture, and draw which policy plays."""
    lam = guard.on_baseline[0]
    copy(guard.candidate.reshape(-1), scratch.policies[0].reshape(-1))
    exact_returns(world, scratch.policies, start, scratch, scratch.returns)
    for n in range(len(guard.baseline_returns)):
        own, safe_one = scratch.returns[0, n], guard.baseline_returns[n]
        chunk.returns[e, n] = mixed_value(lam, own, safe_one)
    chunk.on_baseline[e] = lam
    guard.tossed[0] = 1 if noise.coins[e] < lam else 0


@compiled
def act(guard, h, x, u, P):
    """Draw an action of the policy that plays this episode."""
    played = guard.baseline if guard.tossed[0] == 1 else guard.candidate
    return draw_action(played[h], x, u, P)


@lru_cache
def safe_loops(inside: Family) -> Any:
    """Return the loops around learners of a family."""
    write, learn, find = inside.write, inside.loops.advance, inside.loops.first

    @compiled
    def prepare(guard, start, space):
        """Find the candidate, its bounds and its lam, for the next episode."""
        write(guard.inside, guard.candidate)
        weigh(guard, space.model, start, space.work)

    @compiled
    def first(guard, numbers, start, scratch, space):
        """Find the first candidate."""
        find(guard.inside, guard.numbers, start, scratch, space.inside)
        prepare(guard, start, space)

    @compiled
    def advance(guard, numbers, start, steps, k, states, actions, samples, scratch, space):
        """Learn an episode that either policy played."""
        P = len(scratch.top)
        count(guard, numbers, space.model, P, 1.0, states, actions, samples)
        guard.given_to_baseline[0] += guard.on_baseline[0]
        guard.baseline_episodes[0] += guard.tossed[0]
        if guard.tossed[0] == 0 or guard.own_only[0] == 0:
            guard.own_episodes[0] += 1
            own, told = guard.own_episodes[0], (states, actions, samples, scratch, space.inside)
            learn(guard.inside, guard.numbers, start, steps, own, *told)
            copy(guard.inside.multiplier, guard.multiplier)
        prepare(guard, start, space)
        return True

    return loops(advance, first=first, begin=begin, act=act)


class Inputs(NamedTuple):
    """The arrays of a guard beside `SafeFields`. A pair is a * P + x; L is of the row inside."""

    visits: Array  # [L, A * P]
    moves: Array  # [L, A * P], the same numbers: every successor is known
    most: Array  # [1, A * P], ones: any state may follow
    baseline: Array  # [H, A * P]
    baseline_returns: Array  # [1 + N]
    own_episodes: Indices  # [1], of the learner inside
    own_only: Indices  # [1], 1 if the learner does not see episodes of the safe policy
    tossed: Indices  # [1], 1 if the safe policy plays
    inside: Any  # the arrays of the learner inside
    numbers: Any  # of the row inside


Learner = learner_type(SafeFields, Inputs)


class Space(NamedTuple):
    """The box of the guard, its work space, and that of the learner inside."""

    model: AnyBox
    work: Any
    inside: Any


@lru_cache
def safe_family(inside: Family) -> Family:
    """Return the family of wrapped learners of a family."""
    kind = safe_state(inside.state)

    def start(row: Safe, task: Task, storage: Storage) -> Any:
        told, layers = inner_task(task), row.layers(task)
        own = SafeFields.first(task, storage.nothing(told, layers))
        return joined(own, inside.initial(row.row, told, storage))

    def arrange(row: Safe, task: Task, storage: Storage, state: Any, scratch: Scratch) -> Parts:
        (_, H, X, A), told, layers = task.reward.shape, inner_task(task), row.layers(task)
        own, learnt = parted(row, state)
        outside.check_layers(row, task, own.visited)
        learner, scratch, space = inside.arranged(row.row, told, storage, learnt, scratch)
        baseline, visits = task.baseline, visits_of(own.visited, layers, X, A)
        assert baseline is not None
        guard = Learner(
            **laid_out(own, task, storage, layers),
            visits=to_pairs(visits),
            moves=to_pairs(visits),
            most=np.ones((1, A * padded(X))),
            baseline=to_pairs(baseline.policy),
            baseline_returns=np.array(baseline.returns),
            own_episodes=np.array([learnt.episode]),
            own_only=np.array([row.own_episodes_only], int),
            tossed=np.array([0]),
            inside=learner,
            numbers=row.row.numbers(told),  # type: ignore[attr-defined]
        )
        box = empty_box(told, layers, storage.listed, guard.counts)
        model = box._replace(reward=to_pairs(task.reward[1:]))
        refresh_all(guard, row.numbers(task), model, X, padded(X))
        work = planning(len(task.threshold) - 1, H, X, A).work
        return Parts(guard, scratch, Space(model, work, space))

    def keep(guard: Any, task: Task, storage: Storage, episode: int) -> Any:
        told = inner_task(task)
        learnt = inside.kept(guard.inside, told, storage, int(guard.own_episodes[0]))
        return joined(natural(SafeFields, guard, task, storage, episode), learnt)

    def policy(row: Safe, task: Task, state: Any) -> Array:
        return behaviour(task, state)

    made = safe_loops(inside)
    return Family(kind, arrange, made, policy=policy, start=start, keep=keep)
