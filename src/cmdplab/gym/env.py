"""One copy of a problem as a `gymnasium.Env`."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from cmdplab.checks import whole_number
from cmdplab.cmdp.horizons import with_an_end
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.gym.dynamics import Dynamics, costs_of

Info = dict[str, Any]
Picture = npt.NDArray[np.uint8]

PAPER, CELL, HERE, TIME = (255, 255, 255), (225, 230, 235), (0, 90, 160), (230, 130, 0)
WIDE = 480  # most pixels, if cells are wider than one pixel
BAR = 8  # pixels, the height of the bar of time


class ProblemEnv(gymnasium.Env[Any, Any]):
    """A problem, state by state: Discrete(X) observations, Discrete(A) actions, H steps.

    The reward is r^0. Step H *terminates* an episode. No episode is truncated, because the horizon
    is part of the problem. `reset` draws the H uniforms of its episode, and step h moves by inverse
    CDF.

    info : "step", the steps taken so far; "utilities" [N], "costs" [N] = 1 - utilities and "cost",
        their sum, all 0 after a reset; with a mask also "action_mask" [A], int8, and after a step
        "closed", True if the action was closed.
    strict : a closed action raises. Otherwise the state stays, and the reward and all utilities
        are 0 (each cost 1), as `CMDP` defines a closed pair.
    reward_space : Box [1 + N] of (reward, utilities), which `ToVectorReward` returns.
    """

    metadata: ClassVar[dict[str, Any]] = {  # type: ignore[misc]
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 1,
    }

    def __init__(
        self, problem: CMDP, render_mode: str | None = None, *, strict: bool = False
    ) -> None:
        if render_mode not in (None, *self.metadata["render_modes"]):
            modes = " and ".join(map(repr, self.metadata["render_modes"]))
            raise InputError(f"render_mode is {render_mode!r}, but only {modes} can be drawn")
        self.problem = problem = with_an_end(problem)
        self.render_mode, self.strict = render_mode, strict
        self.observation_space = spaces.Discrete(problem.states)
        self.action_space = spaces.Discrete(problem.actions)
        self.reward_space = spaces.Box(0.0, 1.0, (1 + problem.constraints,), np.float64)
        self._dynamics = Dynamics.of(problem)
        self._noise: list[float] = []  # the H uniforms of this episode
        self._state = problem.start
        self._step = problem.horizon  # nothing may be played before reset

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[int, Info]:
        """Return to the start state."""
        check_options(options)
        super().reset(seed=None if seed is None else whole_number("seed", seed))
        self._noise = self.np_random.random(self._dynamics.horizon).tolist()
        self._state, self._step = self._dynamics.start, 0
        none = np.zeros(self.problem.constraints)
        told = {"cost": 0.0, "costs": none, "utilities": none.copy()}
        return self._state, self._told(told)

    def step(self, action: int) -> tuple[int, float, bool, bool, Info]:
        """Play one action: (next state, reward, terminated, False, info)."""
        dynamics, h, state = self._dynamics, self._step, self._state
        if h == dynamics.horizon:
            raise gymnasium.error.ResetNeeded("the episode is over: call reset() before step()")
        self._check(action)
        pair = state * dynamics.shape[1] + int(action)
        closed = dynamics.closed(h, state, int(action))
        if closed and self.strict:
            raise dynamics.refuse(h, state, action)
        if closed:
            signals = np.zeros(len(dynamics.reward))
        else:
            signals = dynamics.reward[:, h, pair].copy()
            self._state = dynamics.successors[h].draw(pair, self._noise[h])
        self._step = h + 1
        utilities = signals[1:]
        costs = costs_of(utilities)
        told = {"cost": float(costs.sum()), "costs": costs, "utilities": utilities}
        told |= {} if closed is None else {"closed": bool(closed)}
        return self._state, float(signals[0]), h + 1 == dynamics.horizon, False, self._told(told)

    def render(self) -> Any:
        """Return one line in the mode "ansi", or a picture [height, width, 3] in "rgb_array"."""
        if self.render_mode is None:
            return None
        if self.render_mode == "rgb_array":
            place = (self._state, self.problem.states)
            return picture(*place, self._step / self.problem.horizon)
        name, horizon = self.problem.name, self.problem.horizon
        return f"{name}: step {self._step} of {horizon}, state {self._state}"

    def _told(self, info: Info) -> Info:
        info["step"] = self._step
        if self._dynamics.mask is not None:
            info["action_mask"] = self._dynamics.offered(self._step, self._state)
        return info

    def _check(self, action: int) -> None:
        if not self.action_space.contains(action):
            actions = self.problem.actions
            raise InputError(f"action {action!r} is not one of 0..{actions - 1}")


def check_options(options: Info | None) -> None:
    """Refuse options of a reset, because none exists."""
    if options:
        raise InputError(f"reset takes no options, and {next(iter(options))!r} was given")


Pair = npt.NDArray[np.int64]


class TimeAware(gymnasium.Wrapper[Any, Any, Any, Any], gymnasium.utils.RecordConstructorArgs):
    """Observations (state, steps taken) in MultiDiscrete([X, H + 1]).

    An optimal policy of a finite horizon depends on the step, which the state alone does not show.
    """

    def __init__(self, env: gymnasium.Env[Any, Any]) -> None:
        gymnasium.utils.RecordConstructorArgs.__init__(self)
        super().__init__(env)
        if not env.has_wrapper_attr("problem"):
            raise InputError(f"{env} does not come from a cmdplab problem: its steps are unknown")
        problem: CMDP = env.get_wrapper_attr("problem")
        self.observation_space = spaces.MultiDiscrete([problem.states, problem.horizon + 1])

    def reset(self, *, seed: int | None = None, options: Info | None = None) -> tuple[Pair, Info]:
        state, info = self.env.reset(seed=seed, options=options)
        return np.array([state, info["step"]]), info

    def step(self, action: int) -> tuple[Pair, Any, bool, bool, Info]:
        state, reward, terminated, truncated, info = self.env.step(action)
        return np.array([state, info["step"]]), reward, terminated, truncated, info


def picture(state: int, states: int, time: float) -> Picture:
    """Return a picture [height, width, 3] of a state: one cell for each state, about as a square.

    time : the elapsed share of the episode, which is the length of the bar below. NumPy alone draws
    it, because video recorders ask for pixels at every step.
    """
    columns = math.ceil(math.sqrt(states))
    rows = math.ceil(states / columns)
    size = max(1, min(40, WIDE // columns))
    gap = 1 if size >= 4 else 0
    cells = np.full((rows * columns, 3), PAPER, dtype=np.uint8)
    cells[:states] = CELL
    cells[state] = HERE
    drawn = cells.reshape(rows, columns, 3).repeat(size, axis=0).repeat(size, axis=1)
    for edge in range(gap):
        drawn[edge::size], drawn[:, edge::size] = PAPER, PAPER
    bar = np.full((BAR, drawn.shape[1], 3), PAPER, dtype=np.uint8)
    bar[2:, : round(time * drawn.shape[1])] = TIME
    return np.concatenate([drawn, bar])
