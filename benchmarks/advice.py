"""Which algorithm gathers the best data? Exact gaps of the last policy and of the plan, live.

    python benchmarks/advice.py [--episodes 1000 5000] [--seeds 2] [--only media-streaming ...]

Every problem is played as an environment, so that the learner knows no kernel; afterwards both
policies are judged exactly. A score is what a policy lacks of the optimum, plus what it misses of
the thresholds at the optimal prices (at least 1), as a share of what separates the optimum from the
worst policy. `docs/which-algorithm.md` has the table, and `cmdplab advise` its rules.
"""

from __future__ import annotations

import argparse
import time

import gymnasium
import numpy as np

import cmdplab
import cmdplab.gym
from cmdplab.cmdp.exact import greedy, returns
from cmdplab.cmdp.policy import fitted
from cmdplab.formats.gymnasium import from_gymnasium

OURS = ("media-streaming", "inventory", "cost-chain-3", "river-swim", "three-state")
ALGORITHMS = ("UOpt-RPGPD", "OptCMDP", "OptPress-PD", "Triple-Q")


def outside(name: str):
    """FrozenLake and CliffWalking: (environment, problem, what `learn` is told)."""
    if name == "FrozenLake":
        env = gymnasium.make("FrozenLake-v1", max_episode_steps=10**6)
        holes = (env.unwrapped.desc.ravel() == b"H").astype(float)
        told = {"horizon": 20, "budget": 0.3, "cost": lambda s, a, y, *rest: holes[y]}
    else:
        env = gymnasium.make("CliffWalking-v1", max_episode_steps=10**6)
        beside = np.arange(48) // 12 == 2
        told = {"horizon": 30, "budget": 3.0, "cost": lambda s, a, y, *rest: float(beside[y])}
        told["reward_range"] = (-100.0, 0.0)
    keep = {k: v for k, v in told.items() if k != "reward_range"}
    return env, from_gymnasium(env, rescale=True, **keep).problem, told


def score(problem, optimum, worst: float, policy) -> float:
    """What is lacking of the optimum, thresholds at their prices, as a share of the range."""
    found = returns(problem, fitted(problem, policy))
    short = np.maximum(problem.threshold - found[1:], 0.0)
    price = np.maximum(optimum.multiplier, 1.0)
    lacking = max(optimum.value - found[0], 0.0) + float(price @ short)
    return lacking / max(optimum.value - worst, 1e-12)


def main() -> None:
    """Print a line for each problem, algorithm and number of episodes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--episodes", type=int, nargs="+", default=[1000, 5000])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--only", nargs="+", default=[*OURS, "FrozenLake", "CliffWalking"])
    parser.add_argument("--algorithms", nargs="+", default=list(ALGORITHMS))
    given = parser.parse_args()
    print("problem, algorithm, episodes: score of the last policy, of the plan; ms an episode")
    for name in given.only:
        if name in OURS:
            env = gymnasium.make(cmdplab.gym.identifier(name))
            problem, told = env.unwrapped.problem, {}
        else:
            env, problem, told = outside(name)
        optimum = cmdplab.solve(problem)
        worst = -greedy(problem, -problem.reward[0])[0]
        for row in given.algorithms:
            gap = {"slater_gap": optimum.slater_gap} if row == "OptPress-PD" else {}
            for episodes in given.episodes:
                scores, began = [], time.process_time()
                for seed in range(given.seeds):
                    learned = cmdplab.learn(
                        env, row, episodes=episodes, evaluate=0, seed=seed, **told, **gap
                    )
                    plan = learned.planned.policy if learned.planned else learned.last
                    scores.append([score(problem, optimum, worst, p) for p in (learned.last, plan)])
                spent = 1e3 * (time.process_time() - began) / episodes / given.seeds
                last, planned = np.mean(scores, axis=0)
                print(
                    f"{name}, {row}, {episodes}: {last:.3f}, {planned:.3f}; {spent:.2f}", flush=True
                )


if __name__ == "__main__":
    main()
