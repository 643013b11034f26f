"""What learning costs beside the environment's own loop, on FrozenLake: CPU time, one process.

    python benchmarks/live.py [EPISODES]

The bare loop plays random actions in the same environment. An environment that is slower than this
one, as most are, hides the rest.
"""

from __future__ import annotations

import sys
import time

import gymnasium

import cmdplab

HORIZON = 20
ROWS = ("UOpt-RPGPD", "OptCMDP", "Triple-Q")


def energy(state, action, next_state, reward, info):
    """A cost for half of the actions."""
    return 0.25 if action in (1, 2) else 0.0


def bare(env, episodes: int) -> tuple[float, int]:
    """CPU seconds and steps of episodes of random actions, drawn beforehand."""
    actions = [int(each) for each in env.np_random.integers(0, 4, HORIZON)]
    steps, began = 0, time.process_time()
    for _ in range(episodes):
        env.reset()
        for action in actions:
            _, _, ended, cut, _ = env.step(action)
            steps += 1
            if ended or cut:
                break
    return time.process_time() - began, steps


class Counted(gymnasium.Wrapper):
    """Counts steps."""

    steps = 0

    def step(self, action):
        """Play one action."""
        self.steps += 1
        return self.env.step(action)


def learning(env, name: str, episodes: int) -> tuple[float, int]:
    """CPU seconds and steps of learning, without the evaluation but for two episodes."""
    told = {"horizon": HORIZON, "cost": energy, "budget": 0.4, "evaluate": 2}
    cmdplab.learn(env, name, episodes=2, **told)  # compiles, or loads what was compiled
    env.steps = 0
    began = time.process_time()
    cmdplab.learn(env, name, episodes=episodes, **told)
    return time.process_time() - began, env.steps


def main(episodes: int) -> None:
    """Print microseconds of a step, with and without learning, and their ratio."""
    cmdplab.quiet()
    env = Counted(gymnasium.make("FrozenLake-v1"))
    seconds, steps = bare(env, episodes)
    alone = 1e6 * seconds / steps
    print(f"{'bare loop':12} {alone:6.1f} us a step")
    for name in ROWS:
        seconds, steps = learning(env, name, episodes)
        each = 1e6 * seconds / steps
        print(f"{name:12} {each:6.1f} us a step, {each / alone:.1f} times the bare loop")


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 5000)
