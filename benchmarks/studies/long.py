"""One long run on a very small instance, on one core: docs/studies/exponents.md.

    python benchmarks/studies/long.py --seed 0 --seconds 3600 --out runs/studies

X = 5, A = 3, H = 5, one binding constraint, the exponents of Corollary 4.2.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from instances import small
from together import Limits, Played, as_script, finished, octaves, options, play, save

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.solvers import solve_feasible
from cmdplab.types import Array

INSTANCE = 4  # lambda* = 0.72
GRID = octaves(8)


def main(arguments: list[str]) -> None:
    """Play one seed."""
    began = time.monotonic()
    parser = options("one long run of UOpt-RPGPD-corollary", 1_000_000_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.set_defaults(engine="cpu")
    given = parser.parse_args(arguments)
    episodes = min(given.episodes, 20_000) if given.small else given.episodes
    stamp: dict[str, Any] = {"seed": given.seed, "episodes": episodes}
    path = given.out / f"long-{given.seed}.npz"
    if finished(path, stamp):
        print(f"{path} is there")
        return
    problem = small(INSTANCE)
    solution = solve_feasible(problem)
    assert solution.value is not None
    row = algorithm("UOpt-RPGPD-corollary", "printed").with_settings(bonus_scale=1e-3)
    task = task_for(row, problem, solution)
    columns = {"lambda_star": np.asarray(solution.multiplier)}

    def write(table: dict[str, Array], states: list[list[Any]], whole: bool) -> None:
        save(path, stamp, table | columns, whole)

    limits = Limits(episodes, given.seconds, given.engine, given.precision)
    played = Played(problem, row, task, given.seed, solution.value)  # type: ignore[arg-type]
    play([played], limits, GRID, write, began)


if __name__ == "__main__":
    as_script(main)
