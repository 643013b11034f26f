"""Problems from logged episodes. States and actions are numbered and transitions are counted.

A log may have a model: a problem that gives names, mask and shape. It may also give the rewards
and the transitions that are possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.checks import real_number, whole_horizon
from cmdplab.cmdp.bundle import Bundle, check_problem
from cmdplab.cmdp.columns import Columns, columns_of, kept, limits, names, numbers, ordered, places
from cmdplab.cmdp.labels import Labels, Scale
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.formats.assemble import Episodes, How, Listed, Problem, Signal, judged, problem_of
from cmdplab.formats.estimates import Data, Estimated, boxed, check_steps, frequencies
from cmdplab.formats.kernels import LARGEST
from cmdplab.formats.tables import start_of
from cmdplab.types import Array, Indices, Mask


def from_trajectories(
    data: Any,
    *,
    model: Problem | None = None,
    support: bool = False,
    utilities: Mapping[str, float] | None = None,
    costs: Mapping[str, float] | None = None,
    reward: str | None = "reward",
    by_step: bool = False,
    delta: float = 0.05,
    horizon: int | None = None,
    discount: float | None = None,
    criterion: str | None = None,
    start: int | str | npt.ArrayLike | None = None,
    name: str = "estimated",
) -> Estimated:
    """Return a problem from logged episodes, with estimated kernel and rewards.

    data : a list of episodes, each a list of (state, action, reward, ..., next), the utilities and
        costs in their order between reward and next; or a long table (`from_table` lists the
        kinds) with columns episode, state, action, rewards, and `next`. Without `next` the
        next state is the state of the following row.
    model : a problem that gives the states and actions with their names and numbers, the mask, and
        by default the horizon (or criterion) and the start. Its kernel is not read.
    support : True: transitions that have probability zero in the model are impossible.
    reward : the column to maximise. None: rewards, thresholds, start and horizon are the model's,
        and the log needs states and actions alone.
    utilities : column -> threshold. costs : column -> budget. by_step : estimate a kernel for each
        step of episodes of H steps. delta : the probability with which the box may miss the kernel.
    start : default: that of the model, else the frequencies of the first states of the log.
    Rewards are means. A pair without visits has the worst value of the whole log.
    """
    utilities, costs = limits("utilities", utilities), limits("costs", costs)
    said = (horizon, discount, criterion, start)
    if model is not None:
        check_problem(model)
    elif reward is None or support:
        raise InputError("known rewards or a known support need model=problem")
    if reward is None and (utilities or costs or any(each is not None for each in said)):
        raise InputError("without a column for the reward, sums and limits are those of the model")
    log = log_of(data, [] if reward is None else [reward, *utilities, *costs], model)
    if model is not None and all(each is None for each in said[:3]):
        how: How = Episodes(model.horizon) if isinstance(model, CMDP) else model.criterion
    else:
        how = judged(horizon, discount, criterion)
    steps = how.horizon if isinstance(how, Episodes) else 0
    seen = _counted(log, whole_horizon(steps or None) if by_step else 0)
    known = _data(seen, log, model, support)
    if reward is None:
        assert model is not None
        return boxed(known, replace(model, transition=known.estimate, name=name), [], delta)
    shape = seen.shape[:-1] if known.mask is None else known.mask.shape
    notes, found = list[str](), list[Signal]()
    for column, values in log.signals.items():
        worst = values.max() if column in costs else values.min()
        means, varies = _means(log, values, float(worst), seen.shape[:-1])
        limit = real_number(f"the limit of {column}", {**utilities, **costs}.get(column, 0.0))
        found.append(Signal(column, np.broadcast_to(means, shape), limit, column in costs))
        if varies:
            notes.append(f"{column} varies in {varies} pairs: means are taken, and not bounded")
    called = log.labels.steps if len(log.labels.steps) == steps else ()
    labels = replace(log.labels, steps=called, signals=tuple(map(Scale, log.signals)))
    first = model.start if start is None and model is not None else start
    begins = _first(log, notes) if first is None else start_of(first, labels, log.sizes[0])
    opened = np.ones(shape, dtype=np.bool_) if known.mask is None else known.mask
    read = Listed(known.estimate, opened, tuple(found), labels, name)
    check_steps(seen, how)
    return boxed(known, problem_of(read, how, begins), notes, delta)


def _data(counts: Array, log: Log, model: Problem | None, support: bool) -> Data:
    """Return the counts of a log, with mask and support of the model. Refuse impossible steps."""
    if model is None:
        return Data(counts, frequencies(counts))
    by_step, mask = counts.ndim == 4, np.asarray(model.opened)
    possible: Mask | None = None
    step = (log.step,) if by_step else ()
    if by_step and mask.shape != counts.shape[:-1]:
        raise InputError(f"counts of {len(counts)} steps need a model of that horizon")
    if mask.ndim == 3 and not by_step and (mask == mask[:1]).all():
        mask = mask[0]
    opened = mask if by_step or mask.ndim == 2 else np.asarray(mask.any(axis=0))
    _refuse(log, ~opened[(*step, log.state, log.action)], f"{model.name} closes action", False)
    if support:
        kernel = model.transition
        rows = kernel.dense() if isinstance(kernel, Sparse) else kernel
        possible = np.asarray(rows > 0.0)
        if possible.ndim == 4 and not by_step:
            possible = np.asarray(possible.any(axis=0))
        possible = np.broadcast_to(possible, counts.shape)
        to = np.maximum(log.following, 0)
        wrong = ~possible[(*step, log.state, log.action, to)] & (log.following >= 0)
        _refuse(log, wrong, f"{model.name} has no transition by action", True)
    return Data(counts, frequencies(counts, possible), mask, possible)


def _refuse(log: Log, wrong: Mask, sentence: str, target: bool) -> None:
    """Refuse a log if `wrong` [E] is True anywhere. sentence : the beginning of the error."""
    if wrong.any():
        at = int(np.argmax(wrong))
        place = f"{log.labels.action(log.action[at])} in state {log.labels.state(log.state[at])}"
        to = f" to {log.labels.state(log.following[at])}" if target else ""
        raise InputError(f"{log.rows[at]}: {sentence} {place}{to}")


class Log(NamedTuple):
    """E logged steps in their order, with states and actions as numbers."""

    state: Indices  # [E]
    action: Indices  # [E]
    following: Indices  # [E], -1 if an episode ended and its last state is not given
    step: Indices  # [E], counted from 0 in each episode
    began: Indices  # the first state of each episode
    signals: dict[str, Array]  # [E] each: the reward, then utilities and costs
    rows: list[str]  # the name of each row
    labels: Labels  # names of states and actions, if they are not numbers
    sizes: tuple[int, int]  # [X, A]


def log_of(data: Any, signals: list[str], known: Bundle | None = None) -> Log:
    """Return the log of a table, or of a list of episodes of (state, action, reward, ..., next).

    signals : the columns of rewards, utilities and costs. If it is empty, a step of a list may hold
    any values between action and next. known : a problem with the names and numbers of states and
    actions. By default they are numbered by first appearance, and names 0..n - 1 keep their
    numbers.
    """
    if len(set(signals)) < len(signals):
        raise InputError(f"a column is used twice: {', '.join(signals)}")
    rows = _of_episodes(data, signals) if _episodes(data) else columns_of(data)
    for column in ("episode", "state", "action"):
        rows.column(column)
    state, action, episode = (names(rows, each) for each in ("state", "action", "episode"))
    first = np.array([n == 0 or episode[n] != episode[n - 1] for n in range(len(episode))])
    again = [each for each, new in zip(episode, first, strict=True) if new]
    if len(set(again)) < len(again):
        twice = next(each for each in again if again.count(each) > 1)
        raise InputError(f"the rows of episode {twice} are not together")
    starts = np.flatnonzero(first)
    step = np.arange(len(first)) - np.repeat(starts, np.diff([*starts, len(first)]))
    _check_steps(rows, step)
    if "next" in rows.values:
        following = names(rows, "next")
    else:  # the state of the following row of the same episode; nothing after the last
        ends = [*first[1:], True]
        following = ["" if end else x for end, x in zip(ends, [*state[1:], ""], strict=True)]
    if known is None:
        states = ordered([*state, *(each for each in following if each)])
        labels = Labels(kept(states), kept(actions := ordered(action)))
        sizes = (len(states), len(actions))
    else:
        labels, sizes = known.labels, (known.states, known.actions)
    at = {
        "state": places(rows, "state", "x", labels, sizes[0], state),
        "action": places(rows, "action", "a", labels, sizes[1], action),
        "next": places(rows, "next", "x", labels, sizes[0], following),
    }
    return Log(
        state=at["state"],
        action=at["action"],
        following=at["next"],
        step=step,
        began=at["state"][first],
        signals={each: numbers(rows, each) for each in signals},
        rows=rows.rows,
        labels=labels,
        sizes=sizes,
    )


def _episodes(data: Any) -> bool:
    listed = isinstance(data, list | tuple)
    return listed and not any(isinstance(each, Mapping) for each in data)


def _of_episodes(data: Any, signals: list[str]) -> Columns:
    header = ["state", "action", *signals, "next"]
    found: list[dict[str, Any]] = []
    called: list[str] = []
    for k, episode in enumerate(data):
        if not isinstance(episode, Iterable):
            raise InputError(f"episode {k} is {episode!r}, not a list of steps")
        for h, step in enumerate(episode):
            listed = isinstance(step, list | tuple)
            if listed and not signals and len(step) > len(header):
                step = (*step[:2], step[-1])
            if not listed or len(step) != len(header):
                raise InputError(f"episode {k}, step {h} is not ({', '.join(header)})")
            found.append({"episode": k, **dict(zip(header, step, strict=True))})
            called.append(f"episode {k}, step {h}")
    if not found:
        raise InputError("there is no step in these episodes")
    values = {name: [each[name] for each in found] for name in ("episode", *header)}
    return Columns(values, called)


def _check_steps(rows: Columns, step: Indices) -> None:
    if "step" not in rows.values:
        return
    given = numbers(rows, "step")
    wrong = np.flatnonzero(given - given[0] != step)
    if len(wrong) or given[0] not in (0.0, 1.0):
        at = int(wrong[0]) if len(wrong) else 0
        raise InputError(f"{rows.rows[at]}: the step is {given[at]:g}, not the next of its episode")


def _counted(log: Log, steps: int) -> Array:
    X, A = log.sizes
    shape = (steps, X, A, X) if steps else (X, A, X)
    if math.prod(shape) > LARGEST:
        raise InputError(
            f"counts of {X} states and {A} actions would be {math.prod(shape)} numbers"
        )
    counts = np.zeros(shape)
    known = log.following >= 0
    if steps and (log.step >= steps).any():
        at = int(np.argmax(log.step >= steps))
        raise InputError(f"{log.rows[at]} is step {log.step[at]}, and the horizon is {steps}")
    where = (log.state[known], log.action[known], log.following[known])
    np.add.at(counts, (log.step[known], *where) if steps else where, 1.0)
    return counts


def _means(log: Log, values: Array, worst: float, shape: tuple[int, ...]) -> tuple[Array, int]:
    """Return the mean of a signal for each pair, and the number of pairs in which it varies.

    values : [E]. worst : the value of pairs without visits. shape : (X, A) or (H, X, A).
    """
    place = (log.state, log.action) if len(shape) == 2 else (log.step, log.state, log.action)
    total, number = np.zeros(shape), np.zeros(shape)
    np.add.at(total, place, values)
    np.add.at(number, place, 1.0)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(low, place, values)
    np.maximum.at(high, place, values)
    some = number > 0.0
    mean = np.where(high > low, total / np.where(some, number, 1.0), high)
    return np.where(some, mean, worst), int((high > low).sum())


def _first(log: Log, notes: list[str]) -> int | Array:
    began = np.bincount(log.began, minlength=log.sizes[0])
    if (began > 0).sum() == 1:
        return int(np.argmax(began))
    notes.append("episodes began in several states: their shares are taken, and not bounded")
    return np.asarray(began / began.sum())
