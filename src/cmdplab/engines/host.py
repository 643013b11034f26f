"""The host engine: any learner, plain Python, one call an episode. Slow, easy to step through."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from cmdplab.algorithms.equations import draw_step
from cmdplab.algorithms.learner import Chunk, Episode, Learner, LearnerState
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.outside import reward_noise
from cmdplab.engines.plain.learner import sampled
from cmdplab.numerics.noise import uniforms
from cmdplab.types import Array, Indices


def roll_out(problem: CMDP, policy: Array, noise: Array) -> Episode:
    """One episode by inverse CDF: noise [H, 2] chooses the action and the next state of a step."""
    states, actions = [problem.start], []
    for h, (to_act, to_move) in enumerate(noise):
        actions.append(_draw(policy[h, states[-1]], to_act))
        successors, row = problem.kernel.successors(h, states[-1], actions[-1])
        states.append(int(successors[_draw(row, to_move)]))
    return Episode(np.array(states), np.array(actions))


def _draw(probabilities: Array, u: float) -> int:
    total, drawn = 0.0, 0
    for place, p in enumerate(probabilities):
        total, drawn, found = draw_step(place, float(p), u, total, drawn)
        if found:
            break
    return drawn


def _recorded(episode: Episode, policy: Array) -> Episode:
    """An episode that was played before, whatever the policy now is."""
    return episode


class HostSession:
    """A run of any learner on the host engine; `task` says what it is told of rewards."""

    def __init__(
        self,
        problem: CMDP,
        learner: Learner,
        seed: int,
        state: LearnerState | None = None,
        task: Task | None = None,
    ) -> None:
        self._problem, self._seed, self._learner = problem, seed, learner
        self._task = task if task is not None else Task.of(problem, 0.0)
        self._state = state if state is not None else learner.init()

    def play(self, episodes: int) -> Chunk:
        """Play, with noise that depends on the episode's number only."""
        first, horizon = self._state.episode + 1, self._problem.horizon
        noise = uniforms(self._seed, first, episodes, horizon)
        return self._follow(partial(roll_out, self._problem, noise=each) for each in noise)

    def _told(self, episode: Episode) -> Episode:
        """The episode with samples of its rewards, where the learner does not know them."""
        if not self._task.observed:
            return episode
        drawn = reward_noise(self._task, self._seed, self._state.episode + 1, 1)[0]
        return sampled(self._problem, episode, drawn, self._task.spread)

    def replay(self, states: Indices, actions: Indices) -> Chunk:
        """Learn from trajectories from outside: states [E, H + 1], actions [E, H]."""
        pairs = zip(states, actions, strict=True)
        return self._follow(partial(_recorded, Episode(*each)) for each in pairs)

    def _follow(self, plays: Iterable[Callable[[Array], Episode]]) -> Chunk:
        returns, multipliers = [], []
        for play in plays:
            policy = self._learner.policy(self._state)
            returns.append(exact.returns(self._problem, policy))
            self._state = self._learner.observe(self._state, self._told(play(policy)))
            multipliers.append(self._state.multiplier)
        return Chunk(np.array(returns), np.array(multipliers))

    def state(self) -> LearnerState:
        """The learner's state: immutable, so nothing is copied."""
        return self._state
