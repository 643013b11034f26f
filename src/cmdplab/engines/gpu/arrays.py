"""Arrays on the card: the problems and the runs, and the memory that they need.

B is the number of runs and I the number of distinct problems. N' is the number of constraints, at
least 1. J and S are sizes of `form`, the layout of a problem, and H J S and H X J S are flat axes
(layout.py). `dtype` is the type of numbers, of `itemsize` bytes. rows are algorithms.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.algorithms.families.primal_dual import PrimalDualState
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.running.layout import world as host_world
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.gpu.device import cuda
from cmdplab.engines.gpu.layout import Form, closed_on_card, from_card, places, to_card
from cmdplab.numerics.noise import round_keys
from cmdplab.types import Array, Places

Card = Any  # an array on the card


class Runs(NamedTuple):
    """Runs of a batch: each field has one entry per run."""

    problems: Sequence[CMDP]
    rows: Sequence[Any]
    tasks: Sequence[Task]
    seeds: Sequence[int]
    states: Sequence[Any]  # the states to continue from; None: from the start


class Worlds(NamedTuple):
    """Arrays of the distinct problems on the card, in the order of the kernel's arguments."""

    kernel: Card  # [I, H X J S], P_h(y | pair) of each problem
    cumulative: Card  # [I, H X A X], doubles: a roll-out does not depend on the precision
    reward: Card  # [I, (1 + N) H J S]
    closed: Card  # [I, H J S]


class Learners(NamedTuple):
    """States of the runs on the card, in the order of the kernel's arguments."""

    counts: Card  # [B, H X J S], 32-bit whole numbers
    visits: Card  # [B, H J S], 32-bit whole numbers
    inverse: Card  # [B, H J S]
    bonus: Card  # [B, H J S]
    log_policy: Card  # [B, H J S]
    policy: Card  # [B, H J S]
    multiplier: Card  # [B, N'], doubles


def run_bytes(form: Form, itemsize: int) -> int:
    """Return the bytes on the card for the state of one run, with numbers of `itemsize` bytes."""
    H, X, row = form.horizon, form.states, form.row
    return 4 * H * X * row + H * row * (4 + 4 * itemsize) + 8 * (form.columns + 64)


def world_bytes(form: Form, itemsize: int) -> int:
    """Return the bytes on the card for one problem, with numbers of `itemsize` bytes."""
    H, X, A, row = form.horizon, form.states, form.actions, form.row
    return itemsize * H * row * (X + form.rewards + 1) + 8 * H * X * A * X


def episode_bytes(form: Form) -> int:
    """Return the bytes on the card for the results and the schedule of one episode of one run.

    The factor 2 holds two launches: one is read while the next one is played.
    """
    return 2 * 8 * (form.rewards + form.columns + 4)


def worlds(
    problems: Sequence[CMDP], tasks: Sequence[Task], form: Form, dtype: npt.DTypeLike
) -> Worlds:
    """Return distinct problems on the card, where each task is that of one run of its problem."""

    def sent(each: Sequence[Array], kind: npt.DTypeLike) -> Card:
        return cuda.to_device(np.stack([np.ravel(one) for one in each]).astype(kind))

    tables = [to_card(np.moveaxis(each.table, 3, 1), form) for each in problems]
    cumulative = [host_world(each).cumulative for each in problems]
    rewards = [to_card(each.reward, form) for each in problems]
    closed = [closed_on_card(each.closed, form, dtype) for each in tasks]
    return Worlds(
        sent(tables, dtype), sent(cumulative, np.float64), sent(rewards, dtype), sent(closed, dtype)
    )


def learners(
    rows: Sequence[Row],
    tasks: Sequence[Task],
    states: Sequence[PrimalDualState | None],
    form: Form,
    dtype: npt.DTypeLike,
) -> Learners:
    """Return the states of the runs on the card; a state of None is a fresh run.

    The kernel `prepare` computes bonuses, and writes the counts of unvisited pairs.
    """
    B, H, X, row = len(tasks), form.horizon, form.states, form.row
    counts = cuda.device_array((B, H * X * row), np.int32)
    visits = np.zeros((B, H, row), np.int32)
    logs, policies = np.empty((B, H, row), dtype), np.empty((B, H, row), dtype)
    multiplier = np.zeros((B, form.columns))
    fresh: dict[int, tuple[Array, Array]] = {}
    for b, (task, state) in enumerate(zip(tasks, states, strict=True)):
        if state is None:
            if id(task) not in fresh:
                fresh[id(task)] = _policy(PrimalDualState.initial(rows[b], task), form, dtype)
            logs[b], policies[b] = fresh[id(task)]
            continue
        logs[b], policies[b] = _policy(state, form, dtype)
        visits[b] = to_card(state.counts.sum(axis=-1), form)
        multiplier[b, : form.rewards - 1] = state.multiplier
        seen = to_card(np.moveaxis(state.counts, 3, 1), form).astype(np.int32)
        counts[b].copy_to_device(seen.ravel())
    flat = (B, H * row)
    zeros = np.zeros(flat, dtype)
    sent = [visits.reshape(flat), zeros, zeros, logs.reshape(flat), policies.reshape(flat)]
    return Learners(counts, *(cuda.to_device(each) for each in (*sent, multiplier)))


def _policy(state: PrimalDualState, form: Form, dtype: npt.DTypeLike) -> tuple[Array, Array]:
    return closed_on_card(state.log_policy, form, dtype), to_card(state.policy, form)


def natural_states(
    arrays: Learners, form: Form, runs: slice, episode: int
) -> list[PrimalDualState]:
    """Return the states of the runs of a slice in natural axes, as the other engines use them.

    episode : the number of episodes that the states have played.
    """
    H, X, row, N = form.horizon, form.states, form.row, form.rewards - 1
    host = Learners(*(each[runs].copy_to_host() for each in arrays))
    count = len(host.visits)

    def natural(rows: Array) -> Array:
        return from_card(rows.reshape(count, H, row), form)

    visits, logs, policies = map(natural, (host.visits, host.log_policy, host.policy))
    counts = host.counts.reshape(count, H, X, row)[..., places(form)]
    seen = np.moveaxis(counts, 2, 4) * (visits[..., None] > 0.0)
    nothing = np.zeros((0, H, X, form.actions))
    return [
        PrimalDualState(seen[b].astype(np.float64), logs[b], policies[b], lam[:N], episode, nothing)
        for b, lam in enumerate(host.multiplier)
    ]


class Told(NamedTuple):
    """Thresholds, starts and problem indices of runs, in the order of a kernel's arguments."""

    threshold: Card  # [B, N'], doubles
    starts: Card  # [I], 32-bit whole numbers
    instance: Card  # [B], 32-bit whole numbers: the index of each run's problem


def distinct(keys: Sequence[Hashable]) -> tuple[Places, list[int]]:
    """Return the index of each run's key among the distinct keys, and the first run of each key."""
    places: dict[Hashable, int] = {}
    first: list[int] = []
    which = np.empty(len(keys), np.int32)
    for b, key in enumerate(keys):
        if key not in places:
            places[key] = len(first)
            first.append(b)
        which[b] = places[key]
    return which, first


def streams(which: Places, seeds: Sequence[int]) -> tuple[Card, Card]:
    """Return on the card the schedule index [B] and the keys of random numbers [B, 20] of runs."""
    keys = np.stack([round_keys(seed) for seed in seeds])
    return cuda.to_device(which), cuda.to_device(keys)


def told(
    problems: Sequence[CMDP], tasks: Sequence[Task], columns: int
) -> tuple[Told, list[CMDP], list[Task]]:
    """Return `Told` on the card with N' = `columns`, the distinct problems, and a task of each."""
    instance, chosen = distinct([id(each) for each in problems])
    threshold = np.zeros((len(tasks), columns))
    for b, task in enumerate(tasks):
        threshold[b, : len(task.threshold)] = task.threshold
    starts = np.array([tasks[b].start for b in chosen], np.int32)
    sent = Told(*(cuda.to_device(each) for each in (threshold, starts, instance)))
    return sent, [problems[b] for b in chosen], [tasks[b] for b in chosen]
