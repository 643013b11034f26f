"""Runs of Triple-Q on the card, in doubles only, because one bit can change a greedy choice.

B is the number of runs and I the number of distinct problems. N' is the number of constraints, at
least 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.families.triple_q import TripleQState, exploration
from cmdplab.algorithms.running.layout import world as host_world
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.gpu.arrays import Card, Runs, distinct, streams, told
from cmdplab.engines.gpu.device import WARP, cuda
from cmdplab.engines.gpu.triple_q_episode import play_kernel
from cmdplab.numerics.noise import blocks_per_episode
from cmdplab.types import Array, Indices

REGISTERS = 64  # of a thread: a multiprocessor then holds 32 runs of one warp
MOST_THREADS = 512


class TripleQForm(NamedTuple):
    """Sizes of a problem, and the number of threads that play it."""

    states: int  # X
    actions: int  # A
    horizon: int  # H
    rewards: int  # 1 + N
    threads: int  # of a block

    @property
    def columns(self) -> int:
        """Return N' = N, or 1 without constraints, because no array on the card may be empty."""
        return max(self.rewards - 1, 1)

    @property
    def episodes_drawn(self) -> int:
        """Return the number of episodes whose noise is drawn at once, so that no thread idles."""
        return max(self.threads // blocks_per_episode(self.horizon), 1)

    def shared_bytes(self, itemsize: int) -> int:
        """Return the bytes of shared memory of a block: mass, noise, chances, queues and more."""
        noise = 4 * blocks_per_episode(self.horizon) * self.episodes_drawn
        doubles = 2 * self.states + noise + 2 * (self.actions + 1) + 3 * self.columns
        doubles += self.rewards * (1 + self.horizon)
        return itemsize * doubles + 2 * 4 * self.horizon


class TripleQWorlds(NamedTuple):
    """Arrays of the distinct problems on the card. L = 1 if all are stationary, else L = H."""

    flows: Card  # [I, L X A X + H X A (1 + N)], the true kernels, then the rewards
    cumulative: Card  # [I, L X A X]
    closed: Card  # [I, H, X, A]
    opened: Card  # [I, H, X], 32-bit whole numbers


class TripleQLearners(NamedTuple):
    """States of the runs on the card, in the order of the kernel's arguments."""

    objective: Card  # [B, H, X, A]
    utility: Card  # [B, N', H, X, A]
    visits: Card  # [B, H, X, A]
    queue: Card  # [B, N']
    tally: Card  # [B, N']
    multiplier: Card  # [B, N']
    best: Card  # [B, H, X], 32-bit whole numbers, found by the kernel


def triple_q_form(shape: tuple[int, int, int, int], threads: int | None = None) -> TripleQForm:
    """Return the form for rewards of the shape [1 + N, H, X, A].

    `threads` replaces the chosen number, to find the fastest one.
    """
    R, H, X, A = shape
    whole = min(-(-(X + R) // WARP) * WARP, MOST_THREADS)
    return TripleQForm(X, A, H, R, whole if threads is None else threads)


def run_bytes(form: TripleQForm, itemsize: int) -> int:
    """Return the bytes on the card for the state of one run, with numbers of `itemsize` bytes."""
    pairs = form.horizon * form.states * form.actions
    return itemsize * (pairs * (2 + form.columns) + 4 * form.columns + 64) + 4 * pairs


def world_bytes(form: TripleQForm, itemsize: int) -> int:
    """Return the bytes on the card for one problem, with numbers of `itemsize` bytes."""
    pairs = form.horizon * form.states * form.actions
    return itemsize * pairs * (2 * form.states + form.rewards + 1) + 4 * pairs


def _worlds(problems: Sequence[CMDP], tasks: Sequence[Task], layers: int) -> TripleQWorlds:
    flows = [
        np.concatenate([each.table[:layers].ravel(), np.moveaxis(each.reward, 0, 3).ravel()])
        for each in problems
    ]
    cumulative = [host_world(each).cumulative[:layers].ravel() for each in problems]
    closed = [each.closed for each in tasks]
    opened = [np.count_nonzero(each == 0.0, axis=-1).astype(np.int32) for each in closed]
    arrays = (flows, cumulative, closed, opened)
    return TripleQWorlds(*(cuda.to_device(np.stack(each)) for each in arrays))


def _learners(states: Sequence[TripleQState], form: TripleQForm) -> TripleQLearners:
    N, pairs = form.rewards - 1, (form.horizon, form.states, form.actions)
    queues = np.zeros((3, len(states), form.columns))
    utility = np.zeros((len(states), form.columns, *pairs))
    for b, state in enumerate(states):
        utility[b, :N] = state.utility
        queues[:, b, :N] = state.queue, state.tally, state.multiplier
    objective = np.stack([state.objective for state in states])
    visits = np.stack([state.visits for state in states])
    best = np.zeros((len(states), *pairs[:2]), np.int32)
    arrays = (objective, utility, visits, *queues, best)
    return TripleQLearners._make(cuda.to_device(each) for each in arrays)


class TripleQPlayer:
    """Player of Triple-Q runs, which may differ in everything but their sizes."""

    def __init__(
        self, runs: Runs, form: TripleQForm, real: Any, registers: int | None = None
    ) -> None:
        problems, rows, tasks, seeds, states = runs
        self.form = form
        common, chosen, asked = told(problems, tasks, form.columns)
        layers = 1 if all(each.stationary for each in chosen) else form.horizon
        self.kernel = play_kernel(form, layers, registers or REGISTERS)
        numbers = [row.numbers(task) for row, task in zip(rows, tasks, strict=True)]
        begun = [
            TripleQState.initial(row, task) if state is None else state
            for row, task, state in zip(rows, tasks, states, strict=True)
        ]
        kinds = [(n[-4:], state.episode) for n, state in zip(numbers, begun, strict=True)]
        which, self._first = distinct(kinds)
        self._exploration = [numbers[b][-4:] for b in self._first]
        resolved = cuda.to_device(np.array(numbers, np.float64))
        self.fixed = (*_worlds(chosen, asked, layers), *common, resolved)
        self.drawn = streams(which, seeds)
        self.learners = _learners(begun, form)

    def schedules(self, done: Indices, episodes: int) -> Array:
        """Return shares of random play [D, E, 1] of D distinct rows after `done` [B] episodes."""
        shares = [
            [exploration(float(k), *row) for k in range(done[b] + 1, done[b] + episodes + 1)]
            for b, row in zip(self._first, self._exploration, strict=True)
        ]
        return np.array(shares)[..., None]

    def states(self, runs: slice, episode: int) -> list[TripleQState]:
        N = self.form.rewards - 1
        host = TripleQLearners._make(each[runs].copy_to_host() for each in self.learners)
        return [
            TripleQState(Q, C[:N], visits, queue[:N], tally[:N], multiplier[:N], episode)
            for Q, C, visits, queue, tally, multiplier, _ in zip(*host, strict=True)
        ]
