"""The host engine: any learner, in plain Python, one call per episode. Slow, easy to debug."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import numpy as np

from cmdplab.algorithms.equations import draw_step, reward_sample
from cmdplab.algorithms.learner import Chunk, Episode, Learner, LearnerState
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.running import outside
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.numerics.noise import uniforms
from cmdplab.types import Array, Indices


def roll_out(problem: CMDP, policy: Array, noise: Array) -> Episode:
    """Play one episode by inverse CDF: noise [H, 2] draws each action and next state."""
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


def sampled(problem: CMDP, episode: Episode, reward_noise: Array, spread: float) -> Episode:
    """Return the episode with samples of its rewards, by the uniforms reward_noise [H, 1 + N]."""
    samples = np.zeros(reward_noise.T.shape)
    for n, h in np.ndindex(*samples.shape):
        r = float(problem.reward[n, h, episode.states[h], episode.actions[h]])
        samples[n, h] = reward_sample(r, float(reward_noise[h, n]), spread)
    return episode._replace(rewards=samples)


def _recorded(episode: Episode, policy: Array) -> Episode:
    """Return an episode that was played before, for any policy."""
    return episode


class HostSession:
    """A run of any learner on the host engine. `task` decides if rewards are known or observed.

    Without a problem, `task` is required, and the session can only act and observe.
    """

    def __init__(
        self,
        problem: CMDP | None,
        learner: Learner,
        seed: int,
        state: LearnerState | None = None,
        task: Task | None = None,
    ) -> None:
        self._problem, self._seed, self._learner = problem, seed, learner
        self._task = task if task is not None else Task.of(outside.known(problem), 0.0)
        self._state = state if state is not None else learner.init()
        self._next: Array | None = None  # the policy of the state, once computed

    def play(self, episodes: int) -> Chunk:
        problem = outside.known(self._problem)
        noise = uniforms(self._seed, self._state.episode + 1, episodes, problem.horizon)
        return self._follow(problem, (partial(roll_out, problem, noise=each) for each in noise))

    def _told(self, problem: CMDP, episode: Episode) -> Episode:
        """Return the episode, with samples of its rewards if the rewards are observed."""
        if not self._task.observed:
            return episode
        drawn = outside.reward_noise(self._task, self._seed, self._state.episode + 1, 1)[0]
        return sampled(problem, episode, drawn, self._task.spread)

    def replay(self, states: Indices, actions: Indices) -> Chunk:
        """Learn from trajectories from outside: states [E, H + 1], actions [E, H]."""
        pairs = zip(states, actions, strict=True)
        plays = (partial(_recorded, Episode(*each)) for each in pairs)
        return self._follow(outside.known(self._problem), plays)

    def _follow(self, problem: CMDP, plays: Iterable[Callable[[Array], Episode]]) -> Chunk:
        returns, multipliers, shares = [], [], []
        for play in plays:
            policy = self._played()
            returns.append(exact.returns(problem, policy))
            shares.append(float(getattr(self._state, "on_baseline", 0.0)))
            tossed, safe = self._tossed(policy)
            self._learn(self._told(problem, play(tossed)._replace(by_baseline=safe)))
            multipliers.append(np.array(self._state.multiplier))  # the learner may keep its own
        return Chunk(np.array(returns), np.array(multipliers, np.float64), np.array(shares))

    def _tossed(self, policy: Array) -> tuple[Array, bool]:
        """Return the next episode's policy, and True if it is a randomly chosen safe policy."""
        return policy, False

    def _played(self) -> Array:
        if self._next is None:
            self._next = self._learner.policy(self._state)
        return self._next

    def _learn(self, episode: Episode) -> None:
        self._state = self._learner.observe(self._state, episode)
        self._next = None

    def act(self, h: int, x: int, u: float) -> int:
        h, x = outside.checked_place(self._task, h, x)
        return _draw(self._played()[h, x], u)

    def policy(self) -> Array:
        return self._played().copy()

    def observe(
        self, states: outside.Whole, actions: outside.Whole, rewards: Array | None = None
    ) -> None:
        row = getattr(self._learner, "row", None)
        pooled = isinstance(row, Row) and row.pooled
        pair = outside.checked_episode(self._task, states, actions, pooled)
        samples = outside.checked_rewards(self._task, rewards)
        self._learn(Episode(*pair, samples if self._task.observed else None))

    def state(self) -> LearnerState:
        """Return the learner's state. It is immutable, so nothing is copied."""
        return self._state
