"""OPSE and Ghosh-Zhou-Shroff: what an episode costs, and the ordering of the paper's figure.

    python benchmarks/softmax_search.py cost      # CPU time beside UOpt-RPGPD's, in one process
    python benchmarks/softmax_search.py figure    # streaming, 10 seeds x 10,010 episodes, as there

`cost`: the paper's published instance, X = 30, A = 3, H = 10, dense. `released` searches with 20
or 21 passes an episode, `printed` with up to 25; at scale 1e-9 it always needs all of them.
`figure`: regret, violation and episodes on the safe policy, mean over the seeds of
`opse-streaming-random`; regret and violation sum positive parts, as the official code does.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace

import numpy as np

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.row import Row
from cmdplab.engines.families import session
from cmdplab.environments import make
from cmdplab.solvers import solve

AT = (100, 1000, 10_010)


def cost(slices: int = 7, episodes: int = 500) -> None:
    """Microseconds an episode: the median of slices that take turns."""
    problem = make("published")
    solution = solve(problem)
    opse = algorithm("OPSE", "printed")
    rows: dict[str, Row] = {
        "UOpt-RPGPD, released": algorithm("UOpt-RPGPD", "released"),
        "OPSE, released": algorithm("OPSE", "released"),
        "OPSE, printed, scale 1": opse,
        "OPSE, printed, scale 1e-9": replace(opse, bonus_scale=1e-9, margin_scale=1e-9),
        "Ghosh-Zhou-Shroff, released": algorithm("Ghosh-Zhou-Shroff", "released"),
    }
    played = {}
    for name, row in rows.items():
        played[name] = session("cpu", problem, row, task_for(row, problem, solution), 0)
        played[name].play(episodes)
    took: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(slices):
        for name, each in played.items():
            began = time.process_time()
            each.play(episodes)
            took[name].append(1e6 * (time.process_time() - began) / episodes)
    first = float(np.median(took["UOpt-RPGPD, released"]))
    for name, each in took.items():
        middle = float(np.median(each))
        print(f"{name:30}{middle:9.1f} us an episode {middle / first:6.1f} times UOpt-RPGPD's")


def figure(seeds: int, episodes: int) -> None:
    """The ordering of the official figure on streaming."""
    at = [k for k in AT if k <= episodes]
    print(f"{'':30}" + "".join(f"{k:>12,}" for k in at))
    for name in ("OPSE", "Ghosh-Zhou-Shroff"):
        row = algorithm(name, "released")
        regret, violation, safe = [], [], []
        for seed in range(seeds):
            problem = make("opse-streaming-random", seed)
            solution = solve(problem)
            played = session("cpu", problem, row, task_for(row, problem, solution), seed)
            returns = played.play(episodes).returns
            short = np.maximum(problem.threshold[0] - returns[:, 1], 0.0)
            # A rounding of the exact returns is no violation.
            violation.append(np.cumsum(np.where(short > 1e-12, short, 0.0)))
            regret.append(np.cumsum(np.maximum(solution.value - returns[:, 0], 0.0)))
            safe.append(played.state().baseline_episodes)
        for what, curves in (("regret", regret), ("violation", violation)):
            mean = np.mean(curves, axis=0)
            print(f"{name + ', ' + what:30}" + "".join(f"{mean[k - 1]:12.2f}" for k in at))
        print(f"{name + ', safe policy':30}{np.mean(safe):12.1f} episodes of {episodes:,}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=("cost", "figure"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--episodes", type=int, default=10_010)
    given = parser.parse_args()
    cost() if given.what == "cost" else figure(given.seeds, given.episodes)


if __name__ == "__main__":
    main()
