"""Triple-Q on the CPU engine: all episodes of a chunk in one compiled call, without the GIL.

The greedy action of a state is kept and sought anew only where its tables change, and the next
state is drawn from a list of successors: step and update cost O(H (A + ln X)) an episode. Exact
returns cost more: a forward pass over the states with mass and the actions with probability.

The loops are in triple_q_episode.py.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.triple_q import TripleQNumbers, TripleQState, exploration
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Kernel, Sparse
from cmdplab.engines import outside
from cmdplab.engines.cpu import triple_q_episode as kernels
from cmdplab.engines.cpu.session import CpuSession
from cmdplab.types import Array, Indices


class Successors(NamedTuple):
    """The true kernel, which only the engine sees: the possible successors of each (h, x, a).

    A stationary kernel is stored once, L = 1; otherwise L = H.
    """

    range: Indices  # [L, X, A, 2], where those of (h, x, a) begin and end below
    state: Indices  # [S]
    probability: Array  # [S]
    cumulative: Array  # [S], from the first one on; the last is beyond every uniform


class Tables(NamedTuple):
    """The learner's arrays, as in `TripleQState`, and what it is told."""

    objective: Array  # [H, X, A]
    utility: Array  # [N, H, X, A]
    visits: Array  # [H, X, A]
    queue: Array  # [N]
    tally: Array  # [N]
    multiplier: Array  # [N]
    reward: Array  # [1 + N, H, X, A]
    threshold: Array  # [N]
    closed: Array  # [H, X, A], zero where an action is open, else too low ever to be the best
    opened: Indices  # [H, X], how many actions are open
    best: Indices  # [H, X], the greedy action


class Scratch(NamedTuple):
    """Space for one episode, so that the loops allocate nothing."""

    mass: Array  # [2, X], of this step and the next; zero between calls
    states: Indices  # [H + 1]
    actions: Indices  # [H]
    samples: Array  # [1 + N, H], of rewards: their means where they are known


class TripleQInside(NamedTuple):
    """Triple-Q as a wrapper sees it: see safe_episode.py."""

    tables: Tables
    numbers: TripleQNumbers
    samples: Array  # [1 + N, H], of rewards: their means where they are known


def successors(problem: CMDP) -> Successors:
    """The kernel of a problem as lists."""
    return successors_of(problem.kernel)


def successors_of(given: Kernel) -> Successors:
    """A kernel as lists."""
    if isinstance(given, Sparse):
        kernel = given.probability if given.probability.ndim == 4 else given.probability[None]
        states = np.broadcast_to(given.successor, kernel.shape)
    else:
        kernel = given.table[:1] if given.table.strides[0] == 0 else given.table
        states = np.broadcast_to(np.arange(kernel.shape[-1]), kernel.shape)
    possible = kernel > 0.0
    end = np.cumsum(np.count_nonzero(possible, axis=-1)).reshape(kernel.shape[:3])
    begin = np.concatenate([[0], end.ravel()[:-1]]).reshape(end.shape)
    cumulative = np.cumsum(kernel, axis=-1)[possible]  # adding zeros changes no bit of a sum
    cumulative[end - 1] = 2.0
    lists = (states[possible], kernel[possible], cumulative)
    return Successors(np.stack([begin, end], axis=-1), *lists)


class TripleQSession(CpuSession):
    """A run of Triple-Q."""

    _loops = kernels

    def _begin(self, problem: CMDP | None, state: TripleQState | None) -> None:
        task, (_, H, X, _) = self._task, self._task.reward.shape
        state = state if state is not None else TripleQState.initial(self._row, task)
        opened = np.count_nonzero(task.closed == 0.0, axis=-1)
        told = (task.reward, task.threshold, task.closed, opened)
        arrays = (*state[:-1], *told, np.zeros((H, X), np.int64))
        self._learner = Tables._make(np.array(each, order="C") for each in arrays)
        visited, taken = np.zeros(H + 1, np.int64), np.zeros(H, np.int64)
        samples = np.zeros((len(task.reward), H))
        self._scratch = Scratch(np.zeros((2, X)), visited, taken, samples)
        self._world = None if problem is None else successors(problem)
        kernels.find_all(self._learner)

    def learn(self, episodes: int) -> Array:
        """`play` without exact returns: the multipliers [E, N] after each episode."""
        return self._run(kernels.learn, episodes).multiplier

    def replay(self, states: Indices, actions: Indices) -> Chunk:
        """Learn from trajectories from outside: states [E, H + 1], actions [E, H]."""
        return self._run(kernels.replay, len(states), *outside.trajectories(states, actions))

    def _call(self, loop: Any, noise: outside.Noise, chunk: Chunk, *given: Any) -> None:
        if not noise.spread:  # samples without noise are the means
            shape = (len(chunk.returns), *self._scratch.samples.T.shape)
            noise = noise._replace(rewards=np.zeros(shape))
        told = (self._world, self._learner, self._numbers, self._task.start, self._episode + 1)
        loop(*told, noise, *given, self._scratch, chunk)

    def _drawn(self, h: int, x: int, u: float) -> int:
        action: int = kernels.draw_action(self._learner, h, x, self._share(), u)
        return action

    def policy(self) -> Array:
        policy = np.empty(self._task.reward.shape[1:])
        kernels.write_policy(self._learner, self._share(), policy)
        return policy

    def _learn(self, states: Indices, actions: Indices, samples: Array) -> None:
        if not self._task.observed:
            samples = outside.means(self._task, states, actions)
        done, told = self._episode + 1, np.empty(len(self._learner.multiplier))
        kernels.advance(self._learner, self._numbers, done, states, actions, samples, told)

    def inside(self) -> TripleQInside:
        """All that a wrapper needs to let it learn, compiled; `skip` says what was learnt so."""
        return TripleQInside(self._learner, self._numbers, self._scratch.samples)

    def state(self) -> TripleQState:
        return TripleQState._make([*(each.copy() for each in self._learner[:6]), self._episode])

    def _share(self) -> float:
        """How much of the play of the next episode is random."""
        return exploration(float(self._episode + 1), *self._numbers[-4:])
