"""What the maps of stability.py say: tables and docs/figures/study-stability.png.

python benchmarks/studies/read_stability.py runs/studies
"""

from __future__ import annotations

import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from stability import axes, problems

from cmdplab.cmdp.problem import CMDP
from cmdplab.figures.style import in_house_style
from cmdplab.files import read_npz
from cmdplab.theory.saddle import coupling, largest_step, saddle_point
from cmdplab.types import Array

FIGURE = Path("docs") / "figures" / "study-stability.png"
SETTLES, NEITHER, SWINGS = 0, 1, 2
BINS = (0.0, 0.5, 0.95, 1.05, 2.0, np.inf)
WORDS = ("below 0.5", "0.5 to 0.95", "0.95 to 1.05", "1.05 to 2", "above 2")


def labels(table: dict[str, Any]) -> Array:
    """[R]: what the range of the violation does over the last two octaves, as the protocol says."""
    moved = table["violation_max"] - table["violation_min"]
    before, last = moved[:, -2], moved[:, -1]
    settles = last <= np.maximum(1e-3, 0.8 * before)
    swings = (last > 0.01) & (last > 0.9 * before)
    return np.where(settles, SETTLES, np.where(swings, SWINGS, NEITHER))


def boundary(problem: CMDP, temperatures: Array) -> Array:
    """The largest stable step for every temperature."""
    found, start = [], None
    for tau in temperatures[::-1]:  # from high to low: each starts the next
        saddle = saddle_point(problem, float(tau), start=start)
        found.append(largest_step(problem, saddle))
        start = saddle.multiplier
    return np.array(found[::-1])


def judged(label: Array, steps: Array, largest: Array) -> Array:
    """[bins, 3]: right, wrong and neither, by the step over the largest stable one."""
    ratio = (steps[:, None] / largest[None, :]).ravel()
    found = np.zeros((len(BINS) - 1, 3), dtype=int)
    for n, (low, high) in enumerate(pairwise(BINS)):
        own = label[(ratio >= low) & (ratio < high)]
        right = SETTLES if (low + min(high, 10.0)) / 2.0 < 1.0 else SWINGS
        wrong = SWINGS if right == SETTLES else SETTLES
        found[n] = [np.sum(own == right), np.sum(own == wrong), np.sum(own == NEITHER)]
    return found


def slow(
    table: dict[str, Any], label: Array, steps: Array, temperatures: Array, largest: Array
) -> Array:
    """[2]: runs that swing below 0.95 of the boundary, and those of them too slow to tell.

    Too slow: `growth` to the power of an octave of K / 2 episodes is above 0.8. With the largest
    stable step s, C = 2 tau / s - tau^2.
    """
    eta, tau = steps[:, None], temperatures[None, :]
    c = 2.0 * tau / largest - tau**2
    squared = (1.0 - eta * tau) ** 2 + eta**2 * c
    over_octave = np.clip(squared, 0.0, 1.0).ravel() ** (int(table["episodes"]) / 4.0)
    wrong = (label == SWINGS) & ((eta / largest).ravel() < 0.95)
    return np.array([wrong.sum(), (wrong & (over_octave > 0.8)).sum()])


def main(folder: Path) -> None:
    """Read, print, draw."""
    from matplotlib.colors import ListedColormap
    from matplotlib.figure import Figure

    steps, temperatures = axes(32)
    figure = Figure(figsize=(11.0, 4.6), layout="constrained")
    panels = figure.subplots(2, 6, sharex=True, sharey=True)
    shades = ListedColormap(["white", "0.75", "0.35"])
    for row, kernel in enumerate(("known", "learner")):
        print(f"\n| {kernel} kernel | C at tau = 0.01 | {' | '.join(WORDS)} |")
        print("|---|---|---|---|---|---|---|")
        total, late = np.zeros((len(WORDS), 3), dtype=int), np.zeros(2, dtype=int)
        for panel, (name, problem) in zip(panels[row], problems().items(), strict=True):
            table = read_npz(folder / f"{kernel}-printed-{name}.npz")
            label, largest = labels(table), boundary(problem, temperatures)
            counted = judged(label, steps, largest)
            total += counted
            late += slow(table, label, steps, temperatures, largest)
            c = coupling(problem, saddle_point(problem, 0.01))
            cells = " | ".join(f"{r} / {w} / {n}" for r, w, n in counted)
            print(f"| {name} | {c:.3g} | {cells} |")
            panel.pcolormesh(
                temperatures, steps, label.reshape(32, 32), cmap=shades, vmin=0, vmax=2
            )
            panel.plot(temperatures, largest, color="black", lw=1.5)
            panel.set(xscale="log", yscale="log", ylim=(steps[0], steps[-1]))
            if row == 0:
                panel.set_title(f"N = {problem.constraints}, C = {c:.2g}", fontsize=9)
            in_house_style(panel)
        cells = " | ".join(f"{r} / {w} / {n}" for r, w, n in total)
        print(f"| all | | {cells} |")
        outside = total[[0, 1, 3, 4]].sum(axis=0)
        share = outside[0] / outside[:2].sum()
        print(f"\nright, of those labelled, outside 0.95 to 1.05: {share:.4f}")
        print(f"swing although stable: {late[0]}; of them too slow to tell: {late[1]}")
    for row, words in enumerate(("known kernel", "learner")):
        panels[row, 0].set_ylabel(f"{words}\nstep eta")
    for panel in panels[1]:
        panel.set_xlabel("temperature tau")
    figure.savefig(FIGURE, dpi=150)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/studies"))
