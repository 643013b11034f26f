"""Many copies of one problem, stepped together with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.error import ResetNeeded
from gymnasium.utils import seeding
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from cmdplab.checks import whole_number
from cmdplab.cmdp.horizons import with_an_end
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.gym.dynamics import Dynamics, costs_of
from cmdplab.gym.env import Info, check_options
from cmdplab.types import Array

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]
Seeds = int | Sequence[int] | Numbers | None
MOST = 1 << 30  # uniforms of all copies: 8 GB
AHEAD = 256  # uniforms drawn at once; the number changes none of them


class ProblemVectorEnv(VectorEnv[Numbers, Numbers, npt.NDArray[Any]]):
    """n copies of a problem, equal to `gymnasium.vector.SyncVectorEnv` of n `ProblemEnv`.

    Every copy has a generator of its own, seeded with seed, seed + 1, ..., and gives the numbers of
    its `ProblemEnv`. All copies are reset together, so that one clock serves all. After step H the
    next step ignores its actions and begins new episodes (AutoresetMode.NEXT_STEP). The rewards,
    utilities and costs of that call are 0. Closed actions are as in `ProblemEnv`, with `strict` or
    without.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": [],
        "autoreset_mode": AutoresetMode.NEXT_STEP,
    }

    def __init__(self, problem: CMDP, num_envs: int = 1, *, strict: bool = False) -> None:
        problem = with_an_end(problem)
        num_envs = whole_number("num_envs", num_envs, least=1)
        if num_envs * max(problem.horizon, AHEAD) > MOST:
            raise InputError(f"{num_envs} copies of {problem.horizon} steps are too many")
        self.problem, self.num_envs, self.strict = problem, num_envs, strict
        self.single_observation_space = spaces.Discrete(problem.states)
        self.single_action_space = spaces.Discrete(problem.actions)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self._dynamics = Dynamics.of(problem)
        self._generators: list[np.random.Generator] = []
        self._noise: Array = np.empty((0, problem.horizon, num_envs))  # [episodes ahead, H, n]
        self._episode = -1  # its index among them
        self._states: Numbers = np.empty(num_envs, dtype=np.int64)
        self._clock = np.repeat(np.arange(problem.horizon + 1)[:, None], num_envs, axis=1)
        self._present = np.ones(num_envs, dtype=np.bool_)
        self._step = -1  # before the first reset

    def reset(self, *, seed: Seeds = None, options: Info | None = None) -> tuple[Numbers, Info]:
        """Return all copies to the start state; `seed` is one seed, or one for each copy."""
        check_options(options)
        self._seed(seed)
        return self._begin()

    def step(self, actions: Numbers) -> tuple[Numbers, Array, Flags, Flags, Info]:
        """Play actions [n]: next states, rewards, terminations and truncations [n], and infos."""
        dynamics, h, n = self._dynamics, self._step, self.num_envs
        ended, never = np.zeros((2, n), dtype=np.bool_)
        if h < 0:
            raise ResetNeeded("call reset() before step()")
        if h == dynamics.horizon:
            states, infos = self._begin()
            return states, np.zeros(n), ended, never, infos
        pairs = self._pairs(actions)
        closed = self._closed(np.asarray(actions))
        signals = dynamics.reward[:, h].take(pairs, axis=1)
        states = dynamics.successors[h].draw_each(pairs, self._noise[self._episode, h])
        if closed is not None:
            signals[:, closed] = 0.0
            states[closed] = self._states[closed]
        self._states, self._step = states, h + 1
        utilities = signals[1:].T.copy()
        costs = costs_of(utilities)
        told: Info = {"cost": costs.sum(axis=1), "costs": costs, "utilities": utilities}
        told |= {} if closed is None else {"closed": closed}
        ended.fill(h + 1 == dynamics.horizon)
        return self._states.copy(), signals[0].copy(), ended, never, self._told(told)

    def _seed(self, seed: Seeds) -> None:
        n = self.num_envs
        if seed is None and self._generators:
            return
        self._generators = [seeding.np_random(one)[0] for one in _one_each(seed, n)]
        self._noise = self._noise[:0]

    def _begin(self) -> tuple[Numbers, Info]:
        self._episode += 1
        if self._episode >= len(self._noise):
            size = (max(1, AHEAD // self._dynamics.horizon), self._dynamics.horizon)
            self._noise = np.ascontiguousarray(
                np.stack([copy.random(size) for copy in self._generators], axis=-1)
            )
            self._episode = 0
        self._states = np.full(self.num_envs, self._dynamics.start)
        self._step = 0
        none = np.zeros((self.num_envs, self.problem.constraints))
        told = {"cost": none.sum(axis=1), "costs": none, "utilities": none.copy()}
        return self._states.copy(), self._told(told)

    def _told(self, infos: Info) -> Info:
        """Add the step to the infos, and for each key the flags [n] of the copies that have it."""
        infos["step"] = self._clock[self._step].copy()
        if self._dynamics.mask is not None:
            infos["action_mask"] = self._dynamics.offered(self._step, self._states)
        return infos | {f"_{key}": self._present.copy() for key in infos}

    def _pairs(self, actions: npt.ArrayLike) -> Numbers:
        """Return the pairs of the copies' states with their actions: [n]."""
        chosen = np.asarray(actions)
        if chosen.shape != (self.num_envs,) or chosen.dtype.kind not in "iu":
            raise InputError(f"actions must be {self.num_envs} whole numbers, one for each copy")
        try:
            pairs = np.ravel_multi_index((self._states, chosen), self._dynamics.shape)
        except ValueError:
            wrong = next(action for action in chosen if action not in self.single_action_space)
            raise InputError(
                f"action {wrong} is not one of 0..{self.problem.actions - 1}"
            ) from None
        return pairs

    def _closed(self, actions: Numbers) -> Flags | None:
        """Return True for each copy that takes a closed action, [n]; None without a mask."""
        closed: Flags | None = self._dynamics.closed(self._step, self._states, actions)
        if self.strict and closed is not None and closed.any():
            copy = int(np.argmax(closed))
            place = (self._step, int(self._states[copy]), int(actions[copy]))
            raise self._dynamics.refuse(*place, whose=f" (copy {copy})")
        return closed


def _one_each(seed: object, copies: int) -> list[int | None]:
    """Return a seed for each copy: seed, seed + 1, ..., or those listed; None: from the system."""
    seeds = seed.tolist() if isinstance(seed, np.ndarray) else seed
    if seeds is None:
        return [None] * copies
    if not isinstance(seeds, Sequence) or isinstance(seeds, str):
        first = whole_number("seed", seeds)
        return list(range(first, first + copies))
    if len(seeds) != copies:
        raise InputError(f"{len(seeds)} seeds were given for {copies} copies")
    return [None if one is None else whole_number("a seed", one) for one in seeds]
