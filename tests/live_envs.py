"""Environments that can only be played, and counted episodes, for tests of live learning."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
from conftest import random_problem

import cmdplab
from cmdplab.live.codes import Whole
from cmdplab.live.model.experience import Experience
from cmdplab.live.signals import Scale, Setup, unread
from cmdplab.live.spaces import Spaces


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


def world(problem, start=0):
    """The setup of a problem whose utilities are observed as they are, in [0, 1]."""
    spaces = Spaces(Whole(problem.states), Whole(problem.actions))
    names = ("reward", *(f"utility {n + 1}" for n in range(problem.constraints)))
    ends = np.zeros(len(names)), np.ones(len(names))
    return Setup(spaces, problem.horizon, start, unread, Scale(*ends), names)


def sampled(problem, policy, episodes, rng, noisy=False, counts=()):
    """Episodes of a problem, counted; rewards are 0 or 1 with their means where they are noisy."""
    seen = Experience(problem.states, problem.actions, len(problem.reward))
    H, A = problem.horizon, problem.actions
    for _ in range(episodes):
        x, states, actions, signals = problem.start, [], [], []
        for h in range(H):
            a = rng.choice(A, p=policy[h, x])
            r = problem.reward[:, h, x, a]
            states.append(x)
            actions.append(a)
            signals.append((rng.random(len(r)) < r).astype(float) if noisy else r)
            x = rng.choice(problem.states, p=problem.table[h, x, a])
        for each in (seen, *counts):
            each.add(np.array(states), np.array(actions), None, np.array(signals).T)
    return seen


def stationary(X=4, A=2, H=5, N=1, seed=0):
    """A random problem that is the same at every step, and is told so by its kernel."""
    made = random_problem(X, A, H, N, seed=seed)
    reward = np.repeat(made.reward[:, :1], H, axis=1)
    return cmdplab.CMDP(made.table[0], reward, made.threshold, 0)
