"""Environments that can only be played, for tests of live learning."""

from __future__ import annotations

from types import SimpleNamespace


def discrete(n, start=0):
    return SimpleNamespace(n=n, start=start)


class Walk:
    """States 5, 6, 7; action 2 goes one up, action 1 stays; beyond 7 the episode ends.

    A step up pays 1 and costs 1; staying is free. Nothing is random.
    """

    observation_space = discrete(3, 5)
    action_space = discrete(2, 1)
    spec = SimpleNamespace(id="Walk-v0")

    def __init__(self, starts=(5,)):
        self.starts, self.resets, self.seeds = starts, 0, []

    def reset(self, *, seed=None):
        self.seeds.append(seed)
        self.at = self.starts[self.resets % len(self.starts)]
        self.resets += 1
        return self.at, {}

    def step(self, action):
        up = int(action) - 1
        assert up in (0, 1)
        self.at += up
        return min(self.at, 7), float(up), self.at > 7, False, {"cost": up, "utilities": [1 - up]}


class Lever(Walk):
    """One state: action 1 pays 1 and costs 1, action 0 does nothing. It never ends by itself.

    Over H steps with budget B <= H the optimum is B, with the multiplier 1.
    """

    observation_space = discrete(1)
    action_space = discrete(2)
    pays = (0.0, 1.0)
    costs = (0.0, 1.0)

    def reset(self, *, seed=None):
        return 0, {}

    def step(self, action):
        return 0, self.pays[action], False, False, {"cost": self.costs[action]}
