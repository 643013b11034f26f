"""Plan on what was seen, with a price on every constraint that moves with what was earned."""

from typing import NamedTuple

import numpy as np


class State(NamedTuple):
    """All that the next episode needs: arrays and numbers."""

    visits: np.ndarray  # [H, X, A, X], how often each transition was seen
    earned: np.ndarray  # [1 + N, H, X, A], the sums of the rewards seen
    multiplier: np.ndarray  # [N], the prices
    episode: int  # episodes done


class PricedPlanner:
    """Made from a `cmdplab.algorithms.task.Task`: all but the kernel is told."""

    def __init__(self, task):
        self.task = task

    def init(self):
        rewards, H, X, A = self.task.reward.shape
        prices = np.zeros(rewards - 1)
        return State(np.zeros((H, X, A, X)), np.zeros((rewards, H, X, A)), prices, 0)

    def policy(self, state):
        times = np.maximum(state.visits.sum(axis=-1), 1.0)
        worth = np.tensordot(np.append(1.0, state.multiplier), state.earned, 1) / times
        policy, value = np.zeros(times.shape), 0.0
        for h in reversed(range(len(times))):
            next_value = state.visits[h] @ np.broadcast_to(value, times.shape[1]) / times[h]
            q = worth[h] + times[h] ** -0.5 + next_value
            q = q if self.task.mask is None else np.where(self.task.mask[h], q, -np.inf)
            policy[h, np.arange(len(q)), q.argmax(axis=-1)] = 1.0
            value = q.max(axis=-1)
        return policy

    def observe(self, state, episode):
        steps, x, a = np.arange(len(episode.actions)), episode.states[:-1], episode.actions
        known = self.task.reward[:, steps, x, a]
        rewards = known if episode.rewards is None else episode.rewards
        visits, earned = state.visits.copy(), state.earned.copy()
        visits[steps, x, a, episode.states[1:]] += 1.0
        earned[:, steps, x, a] += rewards
        missed = self.task.threshold - rewards[1:].sum(axis=-1)
        prices = state.multiplier + missed / np.sqrt(state.episode + 1.0)
        return State(visits, earned, np.maximum(prices, 0.0), state.episode + 1)
