"""CMDP estimated from episodes, a box for its kernel, and standard errors of its returns.

    Pbar(y | x, a) = n(x, a, y) / n(x, a),     rewards and costs are means

n counts the transitions (`seen`). The model assumes equal steps. It closes each untried action of a
state in which another action was tried. A state without any tried action leads to one more state,
which has the worst reward and cost and is never left. Hence plans avoid untried pairs.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab import display
from cmdplab.cmdp import exact
from cmdplab.cmdp.horizons import randomly_started
from cmdplab.cmdp.labels import Labels, Scale as Units, unused
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.formats.estimates import confidence_widths
from cmdplab.formats.kernels import Transitions, stored
from cmdplab.live.model.experience import Entries, Experience
from cmdplab.live.model.steps import moves_by_step, signals_by_step
from cmdplab.live.signals import Setup
from cmdplab.solvers import Box
from cmdplab.types import Array, Mask, frozen

LARGEST = 40_000_000  # numbers of the rewards [1 + N, H, X, A]: 320 MB
LARGEST_BOX = 20_000_000  # entries of a box
LARGEST_BY_STEP = 5_000_000  # transitions of all steps


@display.shown
@frozen
class LearnedModel(NamedTuple):
    """Estimated problem, the box around its kernel, and notes.

    `solve(found.problem)` trusts the estimates. `solve_robust(found.problem, found.box)` does not.
    Values and thresholds are in [0, H]. `problem.labels` has the units of the environment.
    """

    problem: CMDP
    box: Box | None  # [X, A, X]; None where it would be too large
    visits: Array  # [X, A], of the environment's states and actions
    notes: tuple[str, ...] = ()

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [("problem", self.problem.name), ("steps seen", f"{int(self.visits.sum()):,}")]
        never = f"{int((self.visits == 0).sum()):,} of {self.visits.size:,} pairs"
        return "LearnedModel", [*facts, ("never tried", never), *(("note", n) for n in self.notes)]


class BySteps(NamedTuple):
    """Counts with their steps, for a model whose signals or kernel change with the step."""

    seen: Experience
    leads: bool  # True if the kernel changes too, not only the signals


def model_problem(
    seen: Experience,
    world: Setup,
    limit: Array,
    name: str = "learned",
    steps: BySteps | None = None,
) -> CMDP:
    """Return the estimated CMDP. State X is the end, X + 1 follows states without tried actions.

    limit : [N], in the user's units. steps : counts for estimates of each step; None: equal steps.
    """
    X, A, H = seen.states, seen.actions, world.horizon
    signals = len(world.names)
    if signals * H * (X + 2) * A > LARGEST:
        raise InputError(
            f"a plan for {X:,} states, {A} actions and {H} steps would need "
            f"{signals * H * (X + 2) * A:.1e} numbers, more than {LARGEST:.0e}"
        )
    if not seen.episodes:
        raise InputError("no episode was seen: there is nothing to plan on")
    entries = seen.entries()
    visits = seen.visits()
    paid = np.repeat(world.scale.worst, (X + 2) * A).reshape(signals, X + 2, A)
    paid[:, X] = 0.0
    paid[:, :X] = np.where(visits > 0.0, _means(entries, visits, signals), paid[:, :X])
    paid = paid[:, None]
    if steps is not None:
        every = np.broadcast_to(paid[:, :, X:], (signals, H, 2, A))
        paid = np.concatenate([signals_by_step(steps.seen, paid[:, 0, :X]), every], axis=2)
    unit = np.clip(world.scale.to_unit(paid), 0.0, 1.0)
    opened = _opened(visits, world.opened, H)
    flat: Mask = np.asarray(opened.any(axis=0))
    moves = seen.moves()
    own = steps.seen if steps is not None and steps.leads else None
    mask = flat if own is None else np.broadcast_to(flat, opened.shape)
    kernel = stored(_transitions(moves, seen.number(moves), flat, own), mask)
    threshold = np.clip(world.scale.to_unit(np.append(0.0, limit), H)[1:], 0.0, H)
    made = CMDP(
        kernel,
        np.broadcast_to(unit, (signals, H, X + 2, A)),
        threshold,
        0 if world.start is None else world.start,
        name=name,
        mask=None if opened.all() else opened,
        labels=_labels(world),
    )
    if world.start is not None:
        return made
    began, many = seen.starts()
    first = np.zeros(X + 2)
    first[began] = many / many.sum()
    return randomly_started(made, first)


def model_of(seen: Experience, world: Setup, limit: Array, delta: float = 0.05) -> LearnedModel:
    """Return the estimated problem and a box of its tried rows, true with probability 1 - delta."""
    problem, visits = model_problem(seen, world, limit), seen.visits()
    notes = ["the world is taken to be the same at every step, and rewards and costs are means"]
    never = int((visits == 0).sum())
    if never:
        notes.append(f"{never:,} of {visits.size:,} pairs were never tried: the worst is assumed")
    X = problem.states
    if X * X * problem.actions > LARGEST_BOX:
        notes.append(f"a box of {X:,} states would be too large: it is left out")
        return LearnedModel(problem, None, visits, tuple(notes))
    if world.start is None:
        notes.append("episodes begin in several states: their shares are taken, and not bounded")
    table = problem.table[0]
    width = np.zeros_like(table)
    moves = seen.number(seen.moves())
    here = np.flatnonzero(moves.ravel())
    rows = table[: seen.states].reshape(-1, X)[here]
    width[: seen.states].reshape(-1, X)[here] = confidence_widths(
        rows, moves.ravel()[here], (seen.states + 1, seen.actions), delta
    )
    width[..., seen.states + 1 :] = 0.0  # the last states stand for no observed state
    return LearnedModel(problem, Box.around(table, width), visits, tuple(notes))


def standard_errors(problem: CMDP, seen: Experience, world: Setup, policy: Array) -> Array:
    """Return the standard errors [1 + N] of the model's returns of a policy, in the user's units.

    By the delta method, a sample (r, y) of the pair (x, a) moves V by sum_h w_h(x, a) (r +
    V_{h+1}(y)) over n(x, a), where w is the occupancy. A sampled start moves V by V(x_1) over the
    episodes. The errors are right for many visits, but too small for pairs that were tried once.
    """
    lead = problem.horizon - world.horizon
    width = world.scale.width
    entries = seen.moves()
    visits = seen.number(entries)
    occupancy = exact.occupancy(problem, policy)[lead:, : seen.states]
    weight = occupancy.sum(axis=0)[entries.state, entries.action]
    pair = entries.state * seen.actions + entries.action
    n = visits.ravel()[pair]
    found = []
    for k, reward in enumerate(problem.reward):
        values = np.zeros((problem.horizon + 1, problem.states))
        values[:-1] = np.sum(policy * exact.action_values(problem, policy, reward), axis=-1)
        after = np.zeros(len(n))
        for h in range(world.horizon):
            place = occupancy[h][entries.state, entries.action]
            after += place * values[lead + h + 1][entries.following]
        mean = (entries.sums[k] / entries.times - world.scale.worst[k]) / (
            world.scale.best[k] - world.scale.worst[k]
        )
        spread = entries.squares[k] / entries.times - (entries.sums[k] / entries.times) ** 2
        spread = np.maximum(spread, 0.0) / width[k] ** 2
        moved = weight * mean + after
        share = entries.times / n
        first = np.bincount(pair, share * moved, visits.size)
        second = np.bincount(pair, share * (moved**2 + weight**2 * spread), visits.size)
        variance = np.maximum(second - first**2, 0.0) / np.maximum(visits.ravel(), 1.0)
        found.append(float(variance.sum()) + _of_the_start(seen, world, values[lead]))
    return np.asarray(np.sqrt(found) * width)


def _of_the_start(seen: Experience, world: Setup, value: Array) -> float:
    """Return the variance of values [X, ...] due to the estimated shares of the first states."""
    if world.start is not None:
        return 0.0
    began, many = seen.starts()
    share = many / many.sum()
    mean = share @ value[began]
    return float(share @ (value[began] - mean) ** 2 / many.sum())


def _means(entries: Entries, visits: Array, signals: int) -> Array:
    sums = np.zeros((signals, *visits.shape))
    for total, each in zip(sums, entries.sums, strict=True):
        np.add.at(total, (entries.state, entries.action), each)
    return np.asarray(sums / np.maximum(visits, 1.0))


def _opened(visits: Array, told: Mask | None, horizon: int) -> Mask:
    X, A = visits.shape
    may = np.broadcast_to(np.array(True), (1, X, A)) if told is None else told
    tried = may & (visits > 0.0)
    some = tried.any(axis=-1, keepdims=True)
    opened = np.zeros((len(may), X + 2, A), dtype=np.bool_)
    opened[:, :X] = np.where(some, tried, may)
    opened[:, X:, 0] = True  # nothing is decided after the end
    return np.broadcast_to(opened, (horizon, X + 2, A))


def _transitions(
    entries: Entries, visits: Array, opened: Mask, steps: Experience | None
) -> Transitions:
    """Return the estimated kernel over X + 2 states, of each step if `steps` are given.

    Open pairs without a known successor lead to state X + 1.
    """
    X = len(visits)
    untried = np.argwhere(opened[:X] & (visits == 0.0))
    ends = np.array([[X, 0, X], [X + 1, 0, X + 1]])
    more = np.concatenate([np.c_[untried, np.full(len(untried), X + 1)], ends])
    seen = np.stack([entries.state, entries.action, entries.following], axis=1)
    state, action, target = np.concatenate([seen, more]).astype(np.int64).T
    chance = entries.times / visits[entries.state, entries.action]
    if steps is None:
        told = np.append(chance, np.ones(len(more)))
        return Transitions(state, action, target, told).within(opened)
    H = steps.horizon
    if H * len(state) > LARGEST_BY_STEP:
        raise InputError(
            f"a plan by steps would need {H * len(state):.1e} transitions, "
            f"more than {LARGEST_BY_STEP:.0e}"
        )
    told = np.c_[moves_by_step(steps, entries, chance), np.ones((H, len(more)))]
    x, a, y = (np.tile(each, H) for each in (state, action, target))
    step = np.repeat(np.arange(H), len(state))
    return Transitions(x, a, y, told.ravel(), step).within(
        np.broadcast_to(opened, (H, *opened.shape))
    )


def _labels(world: Setup) -> Labels:
    scale, named = world.scale, world.spaces.labels
    states = named.states
    if states:
        states = (*states, *(unused(each, states) for each in ("over", "never seen")))
    units = tuple(
        Units(name, float(best - worst), float(world.horizon * worst))
        for name, worst, best in zip(world.names, scale.worst, scale.best, strict=True)
    )
    return Labels(states, named.actions, (), units)
