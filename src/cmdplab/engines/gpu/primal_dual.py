"""Runs of the primal-dual family on the card: their arrays, their kernel and their schedules."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmdplab.algorithms.families.primal_dual import PrimalDualState
from cmdplab.engines.gpu import arrays
from cmdplab.engines.gpu.arrays import Runs, distinct, streams, told
from cmdplab.engines.gpu.device import cuda
from cmdplab.engines.gpu.layout import Form
from cmdplab.engines.gpu.primal_dual_episode import play_kernel, prepare_kernel
from cmdplab.types import Array, Indices

# Registers of a thread. These were the fastest of 48 to 128 on an H200 at the paper's size. Fewer
# registers spill, and more leave fewer runs on a multiprocessor at a time.
REGISTERS = {4: 64, 8: 128}  # by the bytes of a number


class PrimalDualPlayer:
    """Player of primal-dual runs, which may differ in everything but their sizes."""

    def __init__(self, runs: Runs, form: Form, real: Any, registers: int | None = None) -> None:
        problems, rows, tasks, seeds, states = runs
        self.form, self._rows, self._tasks = form, rows, tasks
        self.kernel = play_kernel(form, real, registers or REGISTERS[np.dtype(real).itemsize])
        common, chosen, asked = told(problems, tasks, form.columns)
        worlds = arrays.worlds(chosen, asked, form, real)
        numbers = [row.numbers(task) for row, task in zip(rows, tasks, strict=True)]
        resolved = cuda.to_device(np.array(numbers, np.float64))
        done = [0 if state is None else state.episode for state in states]
        kinds = [(r, r.setting(t), k) for r, t, k in zip(rows, tasks, done, strict=True)]
        which, self._kinds = distinct(kinds)
        self.fixed = (*worlds, *common, resolved)
        self.drawn = streams(which, seeds)
        self.learners = arrays.learners(rows, tasks, states, form, real)
        prepare = prepare_kernel(form, real)[len(rows), form.threads]
        prepare(resolved, *self.learners[:4])

    def schedules(self, done: Indices, episodes: int) -> Array:
        """Return schedules [D, E, 4] of D distinct rows for E more episodes after `done` [B]."""
        columns = [
            self._rows[b].schedule(self._tasks[b], int(done[b]) + 1, episodes) for b in self._kinds
        ]
        return np.stack(columns)

    def states(self, runs: slice, episode: int) -> list[PrimalDualState]:
        return arrays.natural_states(self.learners, self.form, runs, episode)
