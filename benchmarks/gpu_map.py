"""UOpt-RPGPD over its own settings: a heat map of 1,024 settings, four seeds each, a GPU launch.

    python benchmarks/gpu_map.py exponents            # alpha_eta by alpha_tau
    python benchmarks/gpu_map.py scales               # bonus scale by factor on the temperature
    python benchmarks/gpu_map.py exponents --draw     # the figure alone, from what is there

A map is cut into pieces of settings; a piece is written whole when it is done, and one that is
there is not run again. On one H200 a map of a million episodes takes some minutes. The outline is
the region of Theorem 4.1: 0 < alpha_tau < 0.5 < alpha_eta < 1, alpha_eta + alpha_tau < 1; in the
map of scales it is the one setting that the theorem speaks of, bonus scale 1 and factor 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.schedules import Power
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import session
from cmdplab.environments import make
from cmdplab.errors import InputError
from cmdplab.files import read_npz
from cmdplab.files.write import writable_folder, written_whole
from cmdplab.measures.measures import Measures
from cmdplab.measures.verdict import NEGATIVE_GAP
from cmdplab.solvers import solve_feasible
from cmdplab.types import Array

EPSILON = 0.1  # a mistake is an episode whose gap or violation is larger
FOUND = ("gap", "violation", "oscillation", "mistakes")
LABELS = ("optimality gap", "constraint violation", "swing of the gap", f"mistakes at {EPSILON:g}")
SCALES = ("reward", "utility missing", "reward, largest less smallest", "episodes")
SIGNED = (True, True, False, False)
LINEAR, FLOOR = 1e-3, 1e-5  # a signed scale is linear up to the first; others begin at the second


class Axes(NamedTuple):
    """A map: what varies along each axis, and the row of a pair of values."""

    names: tuple[str, str]
    logarithmic: bool
    values: Callable[[int], tuple[Array, Array]]
    row: Callable[[PrimalDual, float, float], PrimalDual]
    corners: tuple[tuple[float, float], ...]  # of what the theorem speaks of: a region or a point
    theorem: str  # that, in words


def exponents(side: int) -> tuple[Array, Array]:
    """Exponents of the step and of the temperature, the middles of `side` cells of (0, 1)."""
    middles = (np.arange(side) + 0.5) / side
    return middles, middles


def scales(side: int) -> tuple[Array, Array]:
    """Factors on the bonus, 1e-6 to 10, and on the temperature, 1e-3 to 10, in equal ratios."""
    return np.geomspace(1e-6, 10.0, side), np.geomspace(1e-3, 10.0, side)


def with_scales(row: PrimalDual, bonus: float, factor: float) -> PrimalDual:
    """The row with another factor on its bonus and on its temperature."""
    temperature = row.temperature
    assert isinstance(temperature, Power)
    return replace(row, bonus_scale=bonus, temperature=replace(temperature, scale=factor))


MAPS = {
    "exponents": Axes(
        ("alpha_eta", "alpha_tau"),
        False,
        exponents,
        PrimalDual.with_exponents,
        ((0.5, 0.0), (0.5, 0.5), (1.0, 0.0)),
        "the region of Theorem 4.1, within its three corners",
    ),
    "scales": Axes(
        ("bonus scale", "factor on the temperature"),
        True,
        scales,
        with_scales,
        ((1.0, 1.0),),
        "the theorem's setting: bonus scale 1, factor 1",
    ),
}

Judge = Callable[..., list[Measures]]


def on_cpu(
    problems: Sequence[CMDP],
    rows: Sequence[PrimalDual],
    tasks: Sequence[Task],
    seeds: Sequence[int],
    optima: Sequence[float],
    episodes: int,
    precision: str,
) -> list[Measures]:
    """The same runs one after the other on the CPU engine, in double precision."""
    found = []
    for problem, row, task, seed, optimum in zip(problems, rows, tasks, seeds, optima, strict=True):
        measures = Measures(optimum, problem.threshold, problem.horizon)
        measures.add(Chunk(*session("cpu", problem, row, task, seed).play(episodes)))
        found.append(measures)
    return found


def nothing(episodes: Array) -> Array:
    """No episode becomes a point of a curve: a map shows ends and counts only."""
    return np.zeros(len(episodes), dtype=bool)


def on_gpu(*given: Any) -> list[Measures]:
    """All runs side by side on the GPU engine."""
    from cmdplab.engines.gpu.batch import measure_many

    return measure_many(*given, keep=nothing)


ENGINES: dict[str, Judge] = {"gpu": on_gpu, "cpu": on_cpu}


def judged(measures: Measures) -> list[float]:
    """Gap and violation at the end, swing of the gap in the tail, mistakes at EPSILON."""
    summary, mistakes = measures.summary(), measures.mistakes()
    at = int(np.argmin(np.abs(np.log(mistakes["epsilon"] / EPSILON))))
    violation = summary.final_violation
    assert violation is not None
    return [summary.final_gap, violation, summary.tail_range, mistakes["either_mistakes"][at]]


def settings(axes: Axes, row: PrimalDual, side: int) -> list[PrimalDual]:
    """The rows of a map, the first axis outside."""
    first, second = axes.values(side)
    return [axes.row(row, float(a), float(b)) for a in first for b in second]


def fill(
    folder: Path,
    problem: CMDP,
    rows: Sequence[PrimalDual],
    seeds: int,
    episodes: int,
    piece: int,
    judge: Judge,
) -> None:
    """Run the pieces that are not there yet, each written whole: found [settings, seeds, 4].

    A piece carries the sizes it was made with: those of another map are refused.
    """
    stamp = np.array([len(rows), seeds, episodes, piece])
    solution = solve_feasible(problem)
    assert solution.value is not None
    for first in range(0, len(rows), piece):
        path = folder / f"piece-{first:05d}.npz"
        part = list(rows[first : first + piece])
        if path.exists():
            if read_npz(path)["stamp"].tolist() != stamp.tolist():
                raise InputError(f"{path} belongs to a map of other sizes: choose another --out")
            continue
        repeated = [row for row in part for _ in range(seeds)]
        tasks = {id(row): task_for(row, problem, solution) for row in part}
        count = len(repeated)
        found = judge(
            [problem] * count,
            repeated,
            [tasks[id(row)] for row in repeated],
            list(range(seeds)) * len(part),
            [solution.value] * count,
            episodes,
            "float32",
        )
        table = np.array([judged(each) for each in found]).reshape(len(part), seeds, len(FOUND))
        with written_whole(path) as temporary, temporary.open("wb") as stream:
            np.savez(stream, found=table, stamp=stamp)
        print(f"{path}: {len(part)} settings, {seeds} seeds", flush=True)


def gathered(folder: Path, side: int) -> Array:
    """[side, side, 4]: the median over seeds; refused while pieces are missing."""
    tables = [read_npz(path)["found"] for path in sorted(folder.glob("piece-*.npz"))]
    done = sum(len(each) for each in tables)
    if done != side * side:
        raise InputError(f"{folder} holds {done} of {side * side} settings")
    return np.asarray(np.median(np.concatenate(tables), axis=1).reshape(side, side, len(FOUND)))


def edges(values: Array, logarithmic: bool) -> Array:
    """The borders of cells around equally spaced values, or values in equal ratios."""
    places = np.log(values) if logarithmic else values
    half = (places[1] - places[0]) / 2.0
    borders = np.append(places - half, places[-1] + half)
    return np.exp(borders) if logarithmic else borders


def colours(values: Array, signed: bool) -> tuple[Any, str]:
    """Norm and colour map: a signed number has zero in white, the middle of a diverging scale."""
    from matplotlib.colors import LogNorm, SymLogNorm

    if signed:
        most = max(float(np.abs(values).max()), 10.0 * LINEAR)
        return SymLogNorm(LINEAR, vmin=-most, vmax=most), "RdBu_r"
    low = max(float(values.min()), FLOOR)
    return LogNorm(low, max(float(values.max()), 2.0 * low)), "viridis"


def draw(name: str, folder: Path, side: int, title: str) -> Path:
    """Four panels, the theorem's region outlined; what is negative is hatched, for eyes in grey."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    axes, table = MAPS[name], gathered(folder, side)
    borders = [edges(each, axes.logarithmic) for each in axes.values(side)]
    corners = np.array([*axes.corners, axes.corners[0]])
    figure = Figure(figsize=(11.0, 9.0), layout="constrained")
    for m, panel in enumerate(figure.subplots(2, 2).flat):
        values = table[..., m].T
        norm, map_ = colours(values, SIGNED[m])
        shown = values if SIGNED[m] else np.maximum(values, norm.vmin)
        mesh = panel.pcolormesh(*borders, shown, norm=norm, cmap=map_)
        figure.colorbar(mesh, ax=panel, label=SCALES[m])
        if SIGNED[m]:
            below = np.ma.masked_where(values > -LINEAR, values)
            striped: dict[str, Any] = {"edgecolor": "black", "linewidth": 0.0, "hatch": "///"}
            panel.pcolor(*borders, below, cmap=ListedColormap(["none"]), **striped)
        if axes.logarithmic:
            panel.set(xscale="log", yscale="log")
        look: dict[str, Any] = {"markersize": 12, "markeredgecolor": "k", "linewidth": 2.0}
        panel.plot(*corners.T, "*-", color="gold", label=axes.theorem, **look)
        panel.set(xlabel=axes.names[0], ylabel=axes.names[1], title=LABELS[m])
        panel.set(xlim=borders[0][[0, -1]], ylim=borders[1][[0, -1]])
    figure.legend(
        *panel.get_legend_handles_labels(), loc="outside lower center", frameon=False, fontsize=11
    )
    figure.suptitle(f"{title}\nhatched: below zero by more than {LINEAR:g}; {NEGATIVE_GAP}")
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=130)
    return path


def main(arguments: list[str]) -> None:
    """Run what is missing, then draw."""
    parser = argparse.ArgumentParser(description="heat maps of UOpt-RPGPD over its settings")
    parser.add_argument("map", choices=MAPS)
    parser.add_argument("--side", type=int, default=32, help="settings along each axis")
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--piece", type=int, default=1024, help="settings that are run at once")
    parser.add_argument("--preset", default="released")
    parser.add_argument("--environment", default="published")
    parser.add_argument("--engine", choices=ENGINES, default="gpu")
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--draw", action="store_true", help="draw only")
    parser.add_argument("--run", action="store_true", help="run only")
    given = parser.parse_args(arguments)
    folder = writable_folder(given.out or Path("runs") / f"map-{given.map}-{given.preset}")
    base = algorithm("UOpt-RPGPD", given.preset)
    assert isinstance(base, PrimalDual)
    problem = make(given.environment)
    rows = settings(MAPS[given.map], base, given.side)
    if not given.draw:
        sizes = (given.seeds, given.episodes, given.piece)
        fill(folder, problem, rows, *sizes, ENGINES[given.engine])
    if not given.run:
        title = f"UOpt-RPGPD, {given.preset}, {problem.name}, after {given.episodes:,} episodes"
        print(draw(given.map, folder, given.side, title))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"error: {error}")
