"""`bonus_scale="auto"` against fixed scales: final strong regret of three seeds, rewards observed.

    python benchmarks/auto_scale.py [ROW] [EPISODES] [design]

Designed on `DESIGN`; the twelve of `HELD_OUT` were named before any of them was run. One of them,
three-state-uniform, turned out to have rewards that depend on the step, which cannot be pooled:
such are left out, and as many of `RESERVE` take their places, in its order. The learner is that of
`learn`: counts pooled over the steps, a planner replans by doubling.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace

import numpy as np

import cmdplab
from cmdplab.algorithms.baselines import check_stationary, task_for
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.random import random_problem
from cmdplab.engines.families import session
from cmdplab.live.scales import BEGINNING, FIRST, SCALES, strong_regret, tournament
from cmdplab.solvers import solve_feasible

SEEDS = 3
DESIGN = ("media-streaming", "three-state", "river-swim")
HELD_OUT = (
    "inventory",
    "inventory-corrected",
    "three-state-uniform",
    "cliff",
    "six-state",
    "cost-chain-3",
    "cost-chain-11",
    "river-swim-osband",
    "paradox",
    "random 6 3 5",
    "random 10 2 8",
    "random 15 4 6",
)

RESERVE = ("random 20 3 10", "random 8 5 12", "random 12 3 15", "random 5 2 20")


def stationary(name: str) -> bool:
    """Whether the steps of an environment are alike."""
    row = cmdplab.algorithm("UOpt-RPGPD").with_settings(dynamics="stationary")
    try:
        check_stationary(row, made(name), "bernoulli")
    except cmdplab.InputError:
        return False
    return True


def held_out() -> tuple[str, ...]:
    """The twelve."""
    return tuple([each for each in (*HELD_OUT, *RESERVE) if stationary(each)][: len(HELD_OUT)])


def made(name: str) -> CMDP:
    """An environment; a random one has stationary rewards, too."""
    if not name.startswith("random"):
        return cmdplab.make(name)
    X, A, H = map(int, name.split()[1:])
    base = random_problem(X, A, H, 1, seed=11, stationary=True)
    return replace(base, reward=np.repeat(base.reward[:, :1], H, axis=1))


def fixed(problem: CMDP, row: Row, task: Task, episodes: int, seed: int) -> np.ndarray:
    """Returns of all episodes at the row's scale."""
    return session("cpu", problem, row, task, seed).play(episodes).returns


def chosen(problem: CMDP, row: Row, task: Task, episodes: int, seed: int) -> tuple:
    """Returns of all episodes, and the scales that tournaments chose on the way."""
    row = row.with_settings(bonus_scale=BEGINNING)
    run, done, found, scales = session("cpu", problem, row, task, seed), 0, [], []
    ends = [FIRST << j for j in range(40) if FIRST << j < episodes]
    for end in (*ends, episodes):
        found.append(run.play(end - done).returns)
        done, state = end, run.state()
        if end < episodes:
            choice = tournament(row, task, state.counts, state.reward_sums, end, seed)
            scales.append(choice.scale)
            changed = row.with_settings(bonus_scale=choice.scale)
            run = session("cpu", problem, changed, task, seed, state)
    return np.concatenate(found), scales


def main(name: str, episodes: int, names: tuple[str, ...], tell: Callable[..., None]) -> None:
    """Print regrets and their ratio to the best fixed scale's."""
    row = cmdplab.algorithm(name).with_settings(dynamics="stationary")
    if row.reads("replan"):
        row = row.with_settings(replan="doubling")
    within = 0
    for each in names:
        problem = made(each)
        solution = solve_feasible(problem)
        task = task_for(row, problem, solution, rewards="bernoulli")
        judged = [solution.value, problem.threshold]
        rows = [row.with_settings(bonus_scale=scale) for scale in SCALES]
        regrets, ours, scales = np.zeros(len(SCALES)), 0.0, []
        for seed in range(SEEDS):
            for i, one in enumerate(rows):
                regrets[i] += strong_regret(fixed(problem, one, task, episodes, seed), *judged)
            returns, scales = chosen(problem, row, task, episodes, seed)
            ours += strong_regret(returns, *judged)
        regrets, ours, best = regrets / SEEDS, ours / SEEDS, min(regrets) / SEEDS
        within += ours <= 2.0 * best
        shown = " ".join(f"{r:9.1f}" for r in regrets)
        steps = " ".join(f"{s:g}" for s in scales)
        tell(f"{each:20} fixed {shown}  auto {ours:9.1f}  ratio {ours / best:5.2f}  [{steps}]")
    tell(f"{name}: within a factor two of the best fixed scale on {within} of {len(names)}")


if __name__ == "__main__":
    cmdplab.quiet()
    given = sys.argv[1:]
    which = DESIGN if "design" in given else held_out()
    numbers = [int(each) for each in given if each.isdigit()]
    rows = [each for each in given if not each.isdigit() and each != "design"]
    main((rows or ["OptCMDP"])[0], (numbers or [2000])[0], which, lambda s: print(s, flush=True))
