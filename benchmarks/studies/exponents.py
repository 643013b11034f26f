"""UOpt-RPGPD over pairs of exponents, on ten binding instances: docs/studies/exponents.md.

    python benchmarks/studies/exponents.py --engine gpu --seconds 520 --out runs/studies
    python benchmarks/studies/exponents.py --part 1/2 ...   # half of the pairs
    python benchmarks/studies/exponents.py --engine cpu --small --out /tmp/try

All runs of a part are one batch. What was reached is written every minute and at the time limit.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from instances import BINDING, one, optimum
from together import Limits, Played, as_script, finished, octaves, options, play, save

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.types import Array

PAIRS = (
    (0.53, 0.40),
    (0.55, 0.30),
    (0.55, 0.20),
    (0.60, 0.35),
    (0.60, 0.15),
    (0.70, 0.25),
    (0.70, 0.10),
    (11 / 14, 1 / 7),
    (0.85, 0.10),
    (0.50, 0.40),
    (0.45, 0.30),
    (0.40, 0.20),
    (0.30, 0.20),
    (0.30, 0.10),
    (0.30, 0.45),
    (0.80, 0.40),
)
SEEDS = 4
GRID = octaves(8)


def runs(
    pairs: tuple[tuple[float, float], ...], instances: tuple[int, ...], seeds: int, scale: float
) -> tuple[list[Played], dict[str, Array]]:
    """Every pair on every instance with every seed, and columns that say which is which."""
    base = algorithm("UOpt-RPGPD", "printed").with_settings(bonus_scale=scale)
    assert isinstance(base, PrimalDual)
    found, columns = [], []
    for pair in pairs:
        row = base.with_exponents(*pair)
        for instance in instances:
            problem = one(instance)
            solution = optimum(problem)
            assert solution.value is not None
            task = task_for(row, problem, solution)
            for seed in range(seeds):
                found.append(Played(problem, row, task, seed, solution.value))
                columns.append([*pair, instance, seed, float(solution.multiplier[0])])
    names = ("alpha_eta", "alpha_tau", "instance", "seed", "lambda_star")
    return found, dict(zip(names, np.array(columns).T, strict=True))


def main(arguments: list[str]) -> None:
    """Play one part of the pairs."""
    began = time.monotonic()
    parser = options("exponents of UOpt-RPGPD's last iterate", 10_000_000)
    parser.add_argument("--part", default="1/1", help="i/n: the i-th of n parts of the pairs")
    parser.add_argument("--bonus-scale", type=float, default=1e-3)
    given = parser.parse_args(arguments)
    part, parts = (int(each) for each in given.part.split("/"))
    pairs, instances, seeds, episodes = PAIRS[part - 1 :: parts], BINDING, SEEDS, given.episodes
    if given.small:
        pairs, instances, seeds, episodes = pairs[:2], instances[:2], 1, min(episodes, 20_000)
    stamp: dict[str, Any] = {"pairs": pairs, "instances": instances, "seeds": seeds}
    stamp |= {"episodes": episodes, "scale": given.bonus_scale, "precision": given.precision}
    path = given.out / f"exponents-{part}-of-{parts}.npz"
    if finished(path, stamp):
        print(f"{path} is there")
        return
    played, columns = runs(pairs, instances, seeds, given.bonus_scale)
    limits = Limits(episodes, given.seconds, given.engine, given.precision)

    def write(table: dict[str, Array], states: list[list[Any]], whole: bool) -> None:
        save(path, stamp, table | columns, whole)

    print(f"{len(played)} runs of {episodes:,} episodes", flush=True)
    play(played, limits, GRID, write, began)


if __name__ == "__main__":
    as_script(main)
