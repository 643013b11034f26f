"""Runs of the primal-dual family on the card: what they carry there, and a launch of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cmdplab.algorithms.primal_dual import PrimalDual, State
from cmdplab.algorithms.task import Task
from cmdplab.engines import gpu_arrays
from cmdplab.engines.gpu_kernels import play_kernel, prepare_kernel
from cmdplab.engines.gpu_layout import Form
from cmdplab.engines.gpu_philox import round_keys
from cmdplab.engines.gpu_setup import cuda
from cmdplab.engines.gpu_sharing import distinct, told
from cmdplab.problem import CMDP, Array

# Registers of a thread, of the values tried on an H200 (48 to 128) the fastest at the paper's size:
# fewer spill, and more leave fewer runs on a multiprocessor at a time.
REGISTERS = {4: 64, 8: 128}  # by the bytes of a number


class PrimalDualPlayer:
    """Runs side by side, which may differ in everything but their sizes."""

    def __init__(
        self,
        problems: Sequence[CMDP],
        rows: Sequence[PrimalDual],
        tasks: Sequence[Task],
        seeds: Sequence[int],
        states: Sequence[State | None],
        form: Form,
        real: Any,
        registers: int | None = None,
    ) -> None:
        self.form, self._rows, self._tasks = form, rows, tasks
        self.kernel = play_kernel(form, real, registers or REGISTERS[np.dtype(real).itemsize])
        self._told, chosen, asked = told(problems, tasks, form.columns)
        self._worlds = gpu_arrays.worlds(chosen, asked, form, real)
        numbers = [row.numbers(task) for row, task in zip(rows, tasks, strict=True)]
        self._numbers = cuda.to_device(gpu_arrays.number_rows(numbers))
        self._keys = cuda.to_device(np.stack([round_keys(seed) for seed in seeds]))
        done = [0 if state is None else state.episode for state in states]
        kinds = [(r, r.setting(t), k) for r, t, k in zip(rows, tasks, done, strict=True)]
        which, self._kinds = distinct(kinds)
        self._which = cuda.to_device(which)
        self._learners = gpu_arrays.learners(tasks, states, form, real)
        prepare = prepare_kernel(form, real)[len(rows), form.threads]
        prepare(self._numbers, *self._learners[:4])

    def schedules(self, done: npt.NDArray[np.int64], episodes: int) -> Array:
        """[D, E, 4], of the distinct algorithms, after `done` [B] episodes."""
        columns = [
            self._rows[b].schedule(self._tasks[b], int(done[b]) + 1, episodes) for b in self._kinds
        ]
        return np.stack(columns)

    def launch(
        self,
        stream: Any,
        schedules: Array,
        done: npt.NDArray[np.int64],
        returns: gpu_arrays.Card,
        multiplier: gpu_arrays.Card,
    ) -> None:
        """An episode for each of the schedules: returns [B, E, 1 + N], multipliers [B, E, N']."""
        self.kernel[len(self._rows), self.form.threads, stream](
            *self._worlds,
            *self._told,
            self._numbers,
            cuda.to_device(schedules, stream=stream),
            self._which,
            self._keys,
            cuda.to_device(done, stream=stream),
            *self._learners,
            returns,
            multiplier,
        )

    def states(self, runs: slice, episode: int) -> list[State]:
        """The states of some runs in natural axes."""
        return gpu_arrays.natural_states(self._learners, self.form, runs, episode)
