"""`make guarantees`: what Table 1's algorithms promise at scale 1, put to the test (minutes).

Coverage: in how many runs the true kernel ever leaves an algorithm's set, checked after every
episode, with the exact binomial interval of that frequency; and whether, inside the set, the
optimistic and pessimistic values of the policy played bracket the true ones.
Safety: OptPress-LP and DOPE, every episode of every run, and how long they stayed on the baseline.
Averages: how the error of averaged iterates falls with K on the true kernel.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np

from cmdplab import CMDP, solve
from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.families.primal_dual import PrimalDualState
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.solvers import policy_bounds
from cmdplab.statistics import binomial_interval

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from oracles import improve, plain, session

COVERED = ("OptCMDP", "OptDual-CMDP", "DOPE", "Online-CRL")
SAFE = ("OptPress-LP", "DOPE")
AVERAGED = ("OptPrimalDual-CMDP", "OPDOP")
AVERAGED_SEED = 3  # of a random problem (3, 2, 2, 1) whose constraint binds


def small() -> CMDP:
    """X = A = H = 2: action 0 pays, action 1 is useful; both states are visited often."""
    kernel = np.array([[[0.7, 0.3], [0.4, 0.6]], [[0.5, 0.5], [0.3, 0.7]]])
    reward = np.array([[[1.0, 0.0], [0.8, 0.1]], [[0.0, 1.0], [0.1, 0.9]]])
    return CMDP(kernel, reward, [0.6], 0, horizon=2, name="small")


def at_scale_one(name, episodes, **changes):
    row = replace(algorithm(name, "printed"), bonus_scale=1.0, margin_scale=1.0)
    return replace(row, tuned_for=episodes, **changes)


def coverage(name: str, runs: int, episodes: int) -> str:
    problem = small()
    row = at_scale_one(name, episodes)
    task = task_for(row, problem, solve(problem))
    learner = plain(row, task)

    def one(seed: int) -> tuple[bool, bool]:
        run, left, wrong = session("cpu", problem, row, task, seed), False, False
        for _ in range(episodes):
            run.play(1)
            state = run.state()
            box, _ = learner.model(state)
            low, high = box.lower, box.upper
            inside = bool(np.all((low <= problem.table) & (problem.table <= high)))
            left |= not inside
            if inside:
                truth = exact.returns(problem, state.policy)
                args = (box, problem.reward, state.policy, problem.start)
                wrong |= bool(np.any(policy_bounds(*args, "pessimistic") > truth + 1e-9))
                wrong |= bool(np.any(policy_bounds(*args, "optimistic") < truth - 1e-9))
        return left, wrong

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(one, range(runs)))
    left, wrong = (sum(each) for each in zip(*ends, strict=True))
    seen = binomial_interval(left, runs)
    return (
        f"{name:14} left its set in {left} of {runs} runs "
        f"(95 %: {seen.low:.4f} to {seen.high:.4f}; "
        f"allowed {row.delta:g}); bounds wrong inside the set: {wrong} runs"
    )


def safety(name: str, runs: int, episodes: int) -> str:
    problem = small()
    solution = solve(problem)
    row = at_scale_one(name, episodes)
    task = task_for(row, problem, solution)

    def one(seed: int) -> tuple[float, int, float]:
        run = session("cpu", problem, row, task, seed)
        returns = run.play(episodes).returns
        worst = float(np.max(problem.threshold[0] - returns[:, 1]))
        return worst, run.state().baseline_episodes, float(solution.value - returns[-1, 0])

    with ThreadPoolExecutor(2) as pool:
        ends = list(pool.map(one, range(runs)))
    worst, waits, gaps = (np.array(each) for each in zip(*ends, strict=True))
    return (
        f"{name:14} largest violation {worst.max():+.1e} in {runs} runs of {episodes:,} episodes; "
        f"{np.sum(waits < episodes)} left the baseline, after {np.median(waits):,.0f} episodes "
        f"(median; {waits.min():,} to {waits.max():,}); median final gap {np.median(gaps):.3f}, "
        f"of the baseline {solution.value - task.baseline.returns[0]:.3f}"
    )


def averages(name: str, lengths: list[int]) -> str:
    problem = random_problem(3, 2, 2, 1, seed=AVERAGED_SEED)
    solution = solve(problem)
    errors = []
    for episodes in lengths:
        row = replace(algorithm(name, "printed"), bonus_scale=1e-12, tuned_for=episodes)
        task = Task.of(problem, solution.slater_gap)
        state = PrimalDualState.initial(row, task)._replace(counts=problem.transition * 2.0**50)
        run = session("cpu", problem, row, task, 0, state)
        total = np.zeros(2)
        for _ in range(episodes):
            total += exact.returns(problem, run.state().policy)
            improve(run)
        mean = total / episodes
        errors.append((solution.value - mean[0], problem.threshold[0] - mean[1]))
    logs = np.log(np.max(np.abs(errors), axis=1))
    slope = np.polyfit(np.log(lengths), logs, 1)[0]
    last = (logs[-1] - logs[-2]) / np.log(lengths[-1] / lengths[-2])
    each = "; ".join(
        f"K = {K:,}: {g:+.1e}, {v:+.1e}" for K, (g, v) in zip(lengths, errors, strict=True)
    )
    slopes = f"fitted slope {slope:.2f}, last decade {last:.2f}"
    return f"{name:18} gap and violation of the average: {each}; {slopes}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the runs")
    quick = parser.parse_args().quick
    part = 10 if quick else 1
    for name in COVERED:
        print(coverage(name, 200 // part, 500 // part), flush=True)
    for name in SAFE:
        print(safety(name, 100 // part, 200_000), flush=True)
    for name in AVERAGED:
        lengths = [1000, 10_000] if quick else [1000, 10_000, 100_000]
        print(averages(name, lengths), flush=True)


if __name__ == "__main__":
    sys.exit(main())
