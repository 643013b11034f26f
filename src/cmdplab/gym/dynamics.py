"""One step of a problem, for one copy or for many: the next state and the signals.

One number stands for a pair (x, a): its place x A + a in a table of all pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Kernel, Sparse
from cmdplab.errors import InputError
from cmdplab.numerics.compiling import compiled_exactly
from cmdplab.types import Array, Indices, Mask


class Successors(NamedTuple):
    """The positive entries of one step's kernel, pair after pair: F is the cumulative probability.

    The entries of a pair are its next states y in rising order; the last F of a pair is 1.
    """

    begins: Indices  # [X A + 1], first entry of each pair, and the number of entries
    states: Indices  # [entries], y
    reached: Array  # [entries], F(y)

    @classmethod
    def of(cls, kernel: Kernel, step: int) -> Successors:
        """Return the entries of a kernel at a step, without an array larger than its table."""
        successor, probability = _rows(kernel, step)
        pairs, places = np.nonzero(probability)
        begins = np.searchsorted(pairs, np.arange(len(probability) + 1))
        reached = np.cumsum(probability, axis=1)[pairs, places]
        reached[begins[1:] - 1] = 1.0
        return cls(begins, successor[pairs, places], reached)

    def draw(self, pair: int, uniform: float) -> int:
        """Return the first y with uniform < F(y): the inverse CDF."""
        begin, end = self.begins[pair], self.begins[pair + 1]
        return int(self.states[begin + self.reached[begin:end].searchsorted(uniform, "right")])

    def draw_each(self, pairs: Indices, uniforms: Array) -> Indices:
        """Return a next state [n] for each of the pairs [n] and uniforms [n], all contiguous."""
        drawn = np.empty_like(pairs)
        _draw_each(self.begins, self.states, self.reached, pairs, uniforms, drawn)
        return drawn


@compiled_exactly
def _draw_each(
    begins: Indices, states: Indices, reached: Array, pairs: Indices, uniforms: Array, out: Indices
) -> None:
    """Bisect within the entries of each pair (NumPy's search takes no ragged rows)."""
    for copy in range(len(pairs)):
        low, high = begins[pairs[copy]], begins[pairs[copy] + 1] - 1
        while low < high:
            middle = (low + high) // 2
            if uniforms[copy] < reached[middle]:
                high = middle
            else:
                low = middle + 1
        out[copy] = states[low]


def _rows(kernel: Kernel, step: int) -> tuple[Indices, Array]:
    """Return the successors [X A, S] of every pair at a step, rising, and their probabilities."""
    if isinstance(kernel, Sparse):
        places = kernel.successor.shape[-1]
        return kernel.successor.reshape(-1, places), kernel.at(step).reshape(-1, places)
    probability = kernel.table[step].reshape(-1, kernel.table.shape[-1])
    return np.broadcast_to(np.arange(probability.shape[1]), probability.shape), probability


class Dynamics(NamedTuple):
    """A problem laid out for stepping."""

    horizon: int
    start: int
    shape: tuple[int, int]  # X, A
    reward: Array  # [1 + N, H, X A], the problem's own
    successors: tuple[Successors, ...]  # [H], one object H times if the kernel is stationary
    mask: Mask | None  # [H, X, A], True for allowed actions; None: all

    @classmethod
    def of(cls, problem: CMDP) -> Dynamics:
        """Return the layout of a problem."""
        H, X, A = problem.horizon, problem.states, problem.actions
        steps = range(1 if problem.stationary else H)
        successors = tuple(Successors.of(problem.kernel, step) for step in steps)
        successors *= H // len(successors)
        reward = problem.reward.reshape(-1, H, X * A)
        return cls(H, problem.start, (X, A), reward, successors, problem.mask)

    def offered(self, step: int, state: Any) -> npt.NDArray[np.int8]:
        """Return 1 for allowed actions and 0 for closed ones: [A] or [n, A].

        `Discrete.sample` takes this mask. All are 1 without a mask, and after the last step, where
        no action is chosen.
        """
        if self.mask is None or step == self.horizon:
            return np.ones((*np.shape(state), self.shape[1]), dtype=np.int8)
        return np.asarray(self.mask[step, state], dtype=np.int8)

    def closed(self, step: int, state: Any, action: Any) -> Any:
        """Return True if an action is closed in a state, or an array [n]; None without a mask.

        A closed pair stays in its state without reward, as in `CMDP`. The kernel's row cannot tell:
        a stationary kernel has one row for all steps, while the mask may change with the step.
        """
        return None if self.mask is None else ~self.mask[step, state, action]

    def refuse(self, step: int, state: int, action: int, whose: str = "") -> InputError:
        """Return the error of a strict environment for a closed action."""
        return InputError(f"action {action} is not allowed in state {state} at step {step}{whose}")


def costs_of(utilities: Array) -> Array:
    """Return c = 1 - u, the reverse of `CMDP.from_costs`."""
    return 1.0 - utilities
