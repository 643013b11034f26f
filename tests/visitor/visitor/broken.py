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


class SameState(PricedPlanner):
    def observe(self, state, episode):
        return state


class NotAnArray(PricedPlanner):
    def policy(self, state):
        class Tensor:
            def __array__(self, *given, **named):
                raise RuntimeError("on another device")

        return Tensor()


class NoProperty(PricedPlanner):
    def init(self):
        class Odd:
            episode = 0

            @property
            def multiplier(self):
                raise ValueError("none yet")

        return Odd()


class Chatty(PricedPlanner):
    """Keeps the contract, and prints."""

    def policy(self, state):
        print("{ thinking")
        return super().policy(state)


class InPlace(PricedPlanner):
    """Keeps one array of prices, and writes the number of episodes into it."""

    def observe(self, state, episode):
        state.multiplier[:] = state.episode + 1
        return super().observe(state, episode)._replace(multiplier=state.multiplier)


def nothing(task):
    """Made nothing."""


@dataclass(frozen=True)
class Diary:
    """A state that no checkpoint can hold."""

    episode: int = 0
    multiplier: np.ndarray = field(default_factory=lambda: np.zeros(1))
    pages: tuple = ()


@dataclass(frozen=True)
class Half:
    """A state that can be stored, but not made again from what is stored."""

    episode: int = 0
    multiplier: np.ndarray = field(default_factory=lambda: np.zeros(1))
    more: float = field(init=False, default=0.0)


class NotMadeAgain(PricedPlanner):
    def init(self):
        return Half()

    def policy(self, state):
        return self.task.uniform

    def observe(self, state, episode):
        return Half(state.episode + 1)


class Unstorable(PricedPlanner):
    def init(self):
        return Diary()

    def policy(self, state):
        return self.task.uniform

    def observe(self, state, episode):
        return Diary(state.episode + 1, state.multiplier, (*state.pages, "seen"))
