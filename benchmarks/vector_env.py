"""64 copies of a problem in Gymnasium: one after the other in a Python loop, and as a vector."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import gymnasium
import numpy as np

from cmdplab.environments import make
from cmdplab.gym import ProblemEnv, ProblemVectorEnv, identifier

NAME = "published"
COPIES = 64
ROUNDS = 25  # all take turns, so that other load slows all


def loop_episode(envs: list[gymnasium.Env], actions: list[int], horizon: int) -> None:
    for env in envs:
        env.reset()
    for _ in range(horizon):
        for env, action in zip(envs, actions, strict=True):
            env.step(action)


def vector_episode(env: ProblemVectorEnv, actions: np.ndarray, horizon: int) -> None:
    env.reset()
    for _ in range(horizon):
        env.step(actions)


def seconds(episode: Callable[[], None], episodes: int) -> float:
    began = time.perf_counter()
    for _ in range(episodes):
        episode()
    return (time.perf_counter() - began) / episodes


def main() -> None:
    problem = make(NAME)
    actions, H = np.arange(COPIES) % problem.actions, problem.horizon
    vector = ProblemVectorEnv(problem, COPIES)
    bare = [ProblemEnv(problem) for _ in range(COPIES)]
    wrapped = [gymnasium.make(identifier(NAME)) for _ in range(COPIES)]
    ways = {
        "vector": (partial(vector_episode, vector, actions, H), 50),
        "loop over ProblemEnv": (partial(loop_episode, bare, actions.tolist(), H), 2),
        "loop over gymnasium.make": (partial(loop_episode, wrapped, actions.tolist(), H), 2),
    }
    for episode, _ in ways.values():
        episode()  # compiled, checked and warm
    rounds = [[seconds(*way) for way in ways.values()] for _ in range(ROUNDS)]
    taken = np.median(rounds, axis=0) / H
    print(f"{COPIES} copies of {NAME}: microseconds for a step of all, resets included\n")
    for way, each in zip(ways, taken, strict=True):
        print(f"{way:26}{1e6 * each:9.1f}{each / taken[0]:8.1f} x")


if __name__ == "__main__":
    main()
