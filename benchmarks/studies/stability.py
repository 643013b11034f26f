"""Fixed steps and temperatures, 32 x 32 of them, on six instances: docs/studies/stability.md.

    python benchmarks/studies/stability.py known --episodes 65536 --out runs/studies   # the cores
    python benchmarks/studies/stability.py learner --engine gpu --seconds 540 --out runs/studies
    python benchmarks/studies/stability.py known --engine cpu --small --out /tmp/try

A map is one file. On the card the four maps with one constraint are one batch.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from instances import one, optimum, several
from together import Limits, Played, as_script, finished, octaves, options, play, save

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.families.primal_dual import PrimalDual, PrimalDualState
from cmdplab.algorithms.schedules import Constant
from cmdplab.cmdp.problem import CMDP
from cmdplab.types import Array

ONE = (37, 27, 11, 38)  # C = 0.44, 0.21, 0.052, 0.0021 at tau = 0.01
SEVERAL = ((0, 2), (1, 3))  # seed and number of constraints; all of them bind
KNOWN = 1e9  # visits to every pair, as if the kernel were known
NO_BONUS = 1e-12
GRID = octaves(1)


def axes(side: int) -> tuple[Array, Array]:
    """Steps, 1e-3 to 1.5, and temperatures, 1e-3 to 1, in equal ratios.

    Beyond eta tau = 2 the logarithms of the policy grow without end, whatever C is.
    """
    return np.geomspace(1e-3, 1.5, side), np.geomspace(1e-3, 1.0, side)


def problems() -> dict[str, CMDP]:
    """The six instances by name."""
    singles = {f"one-{seed}": one(seed) for seed in ONE}
    return singles | {f"several-{seed}-{n}": several(seed, n) for seed, n in SEVERAL}


def known_state(problem: CMDP, played: Played) -> PrimalDualState:
    """The uniform policy, and counts so large that the estimate is the kernel."""
    kernel = np.broadcast_to(problem.table, (problem.horizon, *problem.table.shape[-3:]))
    return PrimalDualState.initial(played.row, played.task)._replace(
        counts=np.round(KNOWN * kernel)
    )


def runs(problem: CMDP, side: int, known: bool, preset: str) -> list[Played]:
    """One run for every step (outside) and temperature (inside)."""
    base = algorithm("UOpt-RPGPD", preset)
    assert isinstance(base, PrimalDual)
    if known:
        base = base.with_settings(bonus_scale=NO_BONUS)
    solution = optimum(problem)
    assert solution.value is not None
    found = []
    for step in map(float, axes(side)[0]):
        for temperature in map(float, axes(side)[1]):
            eta, tau = Constant(step), Constant(temperature)
            row = replace(base, policy_step=eta, dual_step=eta, temperature=tau)
            task = task_for(row, problem, solution)
            each = Played(problem, row, task, 0, solution.value)
            found.append(each._replace(state=known_state(problem, each)) if known else each)
    return found


def batches(names: Sequence[str], engine: str) -> Iterator[list[str]]:
    """On the card, maps of one size together; else one after the other."""
    singles = [name for name in names if name.startswith("one-")]
    if engine == "gpu" and singles:
        yield singles
        names = [name for name in names if name not in singles]
    yield from ([name] for name in names)


def main(arguments: list[str]) -> None:
    """Play the maps that are not there."""
    began = time.monotonic()
    parser = options("fixed steps and temperatures", 1 << 20)
    parser.add_argument("kernel", choices=("known", "learner"))
    parser.add_argument("--side", type=int, default=32)
    parser.add_argument("--maps", nargs="*", default=None, help="names; all unless told")
    parser.add_argument("--preset", default="printed")
    parser.set_defaults(engine=None)
    given = parser.parse_args(arguments)
    known = given.kernel == "known"
    engine = given.engine or ("cpu" if known else "gpu")
    side, episodes, chosen = given.side, given.episodes, given.maps or list(problems())
    if given.small:
        side, episodes, chosen = 4, min(episodes, 1 << 12), chosen[:1]
    stamp: dict[str, Any] = {"kernel": given.kernel, "side": side, "episodes": episodes}
    stamp |= {"preset": given.preset, "precision": given.precision}
    paths = {name: given.out / f"{given.kernel}-{given.preset}-{name}.npz" for name in chosen}
    missing = [name for name in chosen if not finished(paths[name], stamp)]
    for names in batches(missing, engine):
        played = [each for n in names for each in runs(problems()[n], side, known, given.preset)]
        limits = Limits(episodes, given.seconds, engine, given.precision)

        def write(
            table: dict[str, Array],
            states: list[list[Any]],
            whole: bool,
            names: Sequence[str] = tuple(names),
        ) -> None:
            for n, name in enumerate(names):
                part = slice(n * side * side, (n + 1) * side * side)
                curves = {
                    key: value[part] if value.ndim > 1 else value for key, value in table.items()
                }
                for dropped in ("mistakes", "last_mistake", "epsilon"):
                    curves.pop(dropped)
                save(paths[name], stamp, curves, whole)

        print(f"{', '.join(names)}: {len(played)} runs of {episodes:,} episodes", flush=True)
        play(played, limits, GRID, write, began)


if __name__ == "__main__":
    as_script(main)
