"""Learners that break their contract, each in one way."""

from dataclasses import dataclass, field

import numpy as np

from visitor.learner import PricedPlanner


class Negative(PricedPlanner):
    def policy(self, state):
        policy = super().policy(state)
        return policy - 0.1 * (state.episode >= 3) * np.eye(policy.shape[-1])[0]


class Shape(PricedPlanner):
    def policy(self, state):
        return super().policy(state)[:, :, :1]


class NoNumber(PricedPlanner):
    def policy(self, state):
        return super().policy(state) * np.nan


class Sum(PricedPlanner):
    def policy(self, state):
        return super().policy(state) / 2.0


class Text(PricedPlanner):
    def policy(self, state):
        return "left"


class Count(PricedPlanner):
    def observe(self, state, episode):
        return super().observe(state, episode)._replace(episode=7)


class Prices(PricedPlanner):
    def observe(self, state, episode):
        return super().observe(state, episode)._replace(multiplier=np.array([-1.0]))


class NoMultiplier(PricedPlanner):
    def init(self):
        return super().init().visits


class Raises(PricedPlanner):
    def observe(self, state, episode):
        if state.episode == 4:
            raise KeyError("lost")
        return super().observe(state, episode)


class Exits(PricedPlanner):
    def observe(self, state, episode):
        raise SystemExit(0)


class NotMade(PricedPlanner):
    def __init__(self, task):
        raise RuntimeError("first line\nsecond line")


def nothing(task):
    """Made nothing."""


@dataclass(frozen=True)
class Diary:
    """A state that no checkpoint can hold."""

    episode: int = 0
    multiplier: np.ndarray = field(default_factory=lambda: np.zeros(1))
    pages: tuple = ()


class Unstorable(PricedPlanner):
    def init(self):
        return Diary()

    def policy(self, state):
        return self.task.uniform

    def observe(self, state, episode):
        return Diary(state.episode + 1, state.multiplier, (*state.pages, "seen"))
