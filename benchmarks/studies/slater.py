"""One CMDP whose thresholds approach what can just be met: docs/studies/slater.md.

    python benchmarks/studies/slater.py --engine gpu --seconds 200 --out runs/studies
    python benchmarks/studies/slater.py --engine cpu --small --out /tmp/try

All runs are one batch: those with fewer constraints carry utilities with threshold 0.
"""

from __future__ import annotations

import time
from functools import cache
from typing import Any

import numpy as np
from instances import first, free, optimum, with_thresholds
from together import Limits, Played, as_script, finished, octaves, options, play, save

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.task import Task, told_gap
from cmdplab.cmdp.problem import CMDP
from cmdplab.types import Array

INSTANCE, MOST = 0, 4
CONSTRAINTS = (1, 2, 4)
SLACKS = np.geomspace(1.0, 1e-3, 12)
PAIRS = ((0.53, 0.4), (0.7, 0.25))
SEEDS = 10
PHOTOGRAPHED = 2  # seeds whose policies are kept
GRID = octaves(8)


@cache
def reach(constraints: int) -> float:
    """t_N: the most that the first N utilities reach at once; for N = 1 the frontier's end."""
    return told_gap(optimum(first(free(INSTANCE, MOST), constraints)).slater_gap)


def tightened(constraints: int, slack: float) -> tuple[CMDP, CMDP]:
    """Thresholds t_N - slack: the problem with its N utilities alone, and the one with all four.

    The other utilities have the threshold 0, which every policy meets: their multipliers stay 0.
    """
    problem = free(INSTANCE, MOST)
    threshold = np.zeros(MOST)
    threshold[:constraints] = reach(constraints) - slack
    whole = with_thresholds(problem, threshold)
    return first(whole, constraints), whole


def runs(seeds: int, slacks: Array) -> tuple[list[Played], dict[str, Array]]:
    """Every pair, number of constraints, slack and seed, and columns that say which is which."""
    base = algorithm("UOpt-RPGPD", "printed")
    assert isinstance(base, PrimalDual)
    found, columns = [], []
    for constraints in CONSTRAINTS:
        for slack in slacks:
            alone, whole = tightened(constraints, float(slack))
            solution = optimum(alone)
            assert solution.value is not None
            multipliers = np.zeros(MOST)
            multipliers[:constraints] = solution.multiplier
            task = Task.of(whole, solution.slater_gap)
            for pair in PAIRS:
                row = base.with_exponents(*pair)
                for seed in range(seeds):
                    found.append(Played(whole, row, task, seed, solution.value))
                    columns.append([*pair, constraints, slack, seed, *multipliers])
    table = np.array(columns).T
    names = ("alpha_eta", "alpha_tau", "constraints", "slack", "seed")
    return found, dict(zip(names, table[:5], strict=True)) | {"lambda_star": table[5:].T}


def photographs(states: list[list[Any]], which: Array) -> dict[str, Array]:
    """Of some runs, [moments, runs, ...]: what the potential is made of."""
    chosen = [[moment[int(b)] for b in which] for moment in states]
    if not chosen:
        return {}
    return {
        "seen_run": which,
        "seen_episode": np.array([moment[0].episode for moment in chosen]),
        "seen_log_policy": np.array([[each.log_policy for each in moment] for moment in chosen]),
        "seen_multiplier": np.array([[each.multiplier for each in moment] for moment in chosen]),
    }


def main(arguments: list[str]) -> None:
    """Play everything as one batch."""
    began = time.monotonic()
    given = options("a Slater gap that goes to zero", 3_000_000).parse_args(arguments)
    seeds, slacks, episodes = SEEDS, SLACKS, given.episodes
    if given.small:
        seeds, slacks, episodes = 1, SLACKS[::6], min(episodes, 20_000)
    stamp: dict[str, Any] = {"seeds": seeds, "slacks": slacks.tolist(), "episodes": episodes}
    stamp |= {"precision": given.precision}
    path = given.out / "slater.npz"
    if finished(path, stamp):
        print(f"{path} is there")
        return
    played, columns = runs(seeds, slacks)
    which = np.flatnonzero(columns["seed"] < PHOTOGRAPHED)
    moments = tuple(4**j for j in range(2, 12) if 4**j <= episodes)
    limits = Limits(episodes, given.seconds, given.engine, given.precision, moments)

    def write(table: dict[str, Array], states: list[list[Any]], whole: bool) -> None:
        save(path, stamp, table | columns | photographs(states, which), whole)

    print(f"{len(played)} runs of {episodes:,} episodes", flush=True)
    play(played, limits, GRID, write, began)


if __name__ == "__main__":
    as_script(main)
