"""No violation at scale 1? Every episode of many runs, and when a learner leaves its safe policy.

    python benchmarks/safety.py --seeds 200 --episodes 100000 --workers 16 --out safety.json
    python benchmarks/safety.py --read safety.json

Each run is a line of OUT.jsonl, so that a second call goes on where the first one stopped; at the
end OUT has a summary for each algorithm and problem: in how many runs some episode violated, with
the exact binomial interval of that frequency, the largest shortfall, the episodes on the safe
policy and the first one off it. A coin counts by its probability: an episode is off the safe policy
where that is below one. It violates where its exact utility misses the threshold by more than 1e-9.
Needs numpy, scipy and numba only.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.row import Row
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import session
from cmdplab.environments import make
from cmdplab.solvers import solve
from cmdplab.statistics import binomial_interval


def small() -> CMDP:
    """X = A = H = 2: action 0 pays, action 1 is useful; no first step alone meets the threshold."""
    kernel = np.array([[[0.7, 0.3], [0.4, 0.6]], [[0.5, 0.5], [0.3, 0.7]]])
    reward = np.array([[[1.0, 0.0], [0.8, 0.1]], [[0.0, 1.0], [0.1, 0.9]]])
    return CMDP(kernel, reward, [1.2], 0, horizon=2, name="small")


def at_scale_one(name: str) -> Row:
    """The printed row at the scale of the theory."""
    return replace(algorithm(name, "printed"), bonus_scale=1.0, margin_scale=1.0)


# What is put to the test. A wrapped learner is one more line.
ALGORITHMS: dict[str, Callable[[], Row]] = {
    "OPSE": lambda: at_scale_one("OPSE"),
    "Safe(UOpt-RPGPD)": lambda: at_scale_one("Safe(UOpt-RPGPD)"),
    "Safe(OptCMDP)": lambda: at_scale_one("Safe(OptCMDP)"),
}
PROBLEMS: dict[str, Callable[[], CMDP]] = {
    "small": small,
    "opse-streaming": lambda: make("opse-streaming"),
}

CHUNK = 10_000
TOLERANCE = 1e-9  # of a violation: rounding is none


def one(job: tuple[str, str, int, int]) -> dict[str, Any]:
    """One run, judged episode by episode."""
    name, where, seed, episodes = job
    problem = PROBLEMS[where]()
    solution = solve(problem)
    row = replace(ALGORITHMS[name](), tuned_for=episodes)
    task = task_for(row, problem, solution)
    played = session("cpu", problem, row, task, seed)
    violations, first, largest, on_safe, off_safe, gap = 0, None, 0.0, 0.0, None, 0.0
    began = time.process_time()
    for done in range(0, episodes, CHUNK):
        chunk = played.play(min(CHUNK, episodes - done))
        returns, share = chunk.returns, chunk.on_baseline
        short = np.max(problem.threshold - returns[:, 1:], axis=1)
        bad = np.flatnonzero(short > TOLERANCE)
        violations += len(bad)
        first = done + int(bad[0]) + 1 if first is None and len(bad) else first
        largest = max(largest, float(short.max()))
        on_safe += float(share.sum())
        others = np.flatnonzero(share < 1.0)
        off_safe = done + int(others[0]) + 1 if off_safe is None and len(others) else off_safe
        gap = float(solution.value - returns[:, 0].mean())
    return {
        "algorithm": name,
        "problem": where,
        "seed": seed,
        "episodes": episodes,
        "violations": violations,
        "first_violation": first,
        "largest_shortfall": largest,
        "on_safe_policy": on_safe,
        "first_off_safe_policy": off_safe,
        "last_gap": gap,
        "us_per_episode": 1e6 * (time.process_time() - began) / episodes,
    }


def key(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["algorithm"], run["problem"], run["seed"], run["episodes"]


def summary(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """Of the runs of one algorithm on one problem."""
    violated = sum(run["violations"] > 0 for run in runs)
    seen = binomial_interval(violated, len(runs))
    left = sorted(run["first_off_safe_policy"] for run in runs if run["first_off_safe_policy"])
    return {
        "algorithm": runs[0]["algorithm"],
        "problem": runs[0]["problem"],
        "runs": len(runs),
        "episodes": runs[0]["episodes"],
        "runs_that_violated": violated,
        "interval_95": [seen.low, seen.high],
        "violating_episodes": sum(run["violations"] for run in runs),
        "largest_shortfall": max(run["largest_shortfall"] for run in runs),
        "runs_that_left": len(left),
        "left_at": [left[0], left[len(left) // 2], left[-1]] if left else None,
        "on_safe_policy_median": float(np.median([run["on_safe_policy"] for run in runs])),
        "last_gap_median": float(np.median([run["last_gap"] for run in runs])),
        "us_per_episode_median": float(np.median([run["us_per_episode"] for run in runs])),
    }


def said(each: dict[str, Any]) -> str:
    low, high = each["interval_95"]
    left = "never left the safe policy"
    if each["left_at"]:
        first, middle, last = each["left_at"]
        left = (
            f"{each['runs_that_left']} left the safe policy, at episode {middle:,} "
            f"(median; {first:,} to {last:,}), and played it {each['on_safe_policy_median']:,.0f} "
            "times"
        )
    return (
        f"{each['algorithm']} on {each['problem']}: {each['runs_that_violated']} of {each['runs']} "
        f"runs of {each['episodes']:,} episodes violated (95 %: {low:.4f} to {high:.4f}); {left}; "
        f"gap of the last episodes {each['last_gap_median']:.4f}; "
        f"{each['us_per_episode_median']:.1f} us an episode"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--episodes", type=int, default=20_000)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--algorithms", nargs="*", default=[*ALGORITHMS], choices=[*ALGORITHMS])
    parser.add_argument("--out", type=Path, default=Path("safety.json"))
    parser.add_argument("--read", type=Path, help="only print this summary")
    given = parser.parse_args()
    if given.read:
        print("\n".join(said(each) for each in json.loads(given.read.read_text())))
        return
    lines = given.out.with_suffix(".jsonl")
    text = lines.read_text() if lines.exists() else ""
    done = [json.loads(line) for line in text.splitlines() if line.endswith("}")]
    finished = {key(each) for each in done}
    jobs = [
        (name, where, seed, given.episodes)
        for name in given.algorithms
        for where in PROBLEMS
        for seed in range(given.seeds)
        if (name, where, seed, given.episodes) not in finished
    ]
    if jobs:
        one((*jobs[0][:3], 10))  # compiles once, before the workers start
    context = multiprocessing.get_context("spawn")
    with context.Pool(given.workers) as pool, lines.open("a") as file:
        file.write("\n" if text and not text.endswith("\n") else "")
        for run in pool.imap_unordered(one, jobs):
            done.append(run)
            file.write(json.dumps(run) + "\n")
            file.flush()
    groups: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for run in done:
        if run["episodes"] == given.episodes and run["seed"] < given.seeds:
            groups.setdefault((run["algorithm"], run["problem"]), []).append(run)
    summaries = [summary(each) for each in groups.values()]
    given.out.write_text(json.dumps(summaries, indent=1) + "\n")
    print("\n".join(said(each) for each in summaries))


if __name__ == "__main__":
    main()
