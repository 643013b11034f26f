"""What the runs of exponents.py and long.py say: tables and docs/figures/study-exponents.png.

python benchmarks/studies/read_exponents.py runs/studies
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from exponents import PAIRS
from instances import BINDING, one, optimum, small

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.figures.style import in_house_style
from cmdplab.files import read_npz
from cmdplab.theory.saddle import saddle_point
from cmdplab.types import Array

FIGURE = Path("docs") / "figures" / "study-exponents.png"
CONTROLS = ((0.30, 0.45), (0.80, 0.40))  # outside the hypothesis
SUPPORTED, REFUTED = 0.03, 0.05


class Saddle(NamedTuple):
    """The regularised saddle point's own errors."""

    error: float  # max(gap, violation)
    violation: float


class Result(NamedTuple):
    """Of one pair, over instances."""

    pair: tuple[float, float]
    local: Array  # [3, instances], the local exponent up to K / 4, K / 16, K / 64
    saddle: Array  # [instances], that of the saddle points, up to K / 4
    ratio: Array  # [instances], violation / (tau lambda*) at K
    saddle_ratio: Array  # [instances]


def envelope(table: dict[str, Any]) -> Array:
    """E [R, points]: the largest gap or violation from each point to the end."""
    error = np.maximum(table["gap_max"], table["violation_max"]).astype(np.float64)
    return np.asarray(np.maximum.accumulate(error[:, ::-1], axis=1)[:, ::-1])


def local(episode: Array, curve: Array, end: float) -> float:
    """log_4 (E(end / 4) / E(end))."""
    at = np.interp(np.log([end / 4.0, end]), np.log(episode), np.log(np.maximum(curve, 1e-12)))
    return float((at[0] - at[1]) / np.log(4.0))


@cache
def saddle_of(problem: CMDP, tau: float) -> Saddle:
    """Errors of the exact saddle point at a temperature."""
    returns = exact.returns(problem, saddle_point(problem, tau).policy)
    violation = float(np.max(problem.threshold - returns[1:]))
    return Saddle(
        max(float(optimum(problem).value or 0.0) - float(returns[0]), violation), violation
    )


def result(table: dict[str, Any], pair: tuple[float, float]) -> Result:
    """Medians over seeds, instance by instance."""
    tails, episode, last = envelope(table), table["episode"], float(table["episodes"])
    own = (table["alpha_eta"] == pair[0]) & (table["alpha_tau"] == pair[1])
    slopes, theirs, ratios, saddle_ratios = [], [], [], []
    for instance in BINDING:
        runs, problem = np.flatnonzero(own & (table["instance"] == instance)), one(instance)
        ends = [last / 4.0, last / 16.0, last / 64.0]
        slopes.append([np.median([local(episode, tails[r], end) for r in runs]) for end in ends])
        before, after = (saddle_of(problem, (k + 3.0) ** -pair[1]) for k in (last / 16, last / 4))
        theirs.append(np.log(before.error / after.error) / np.log(4.0))
        scale = (last + 3.0) ** -pair[1] * float(table["lambda_star"][runs[0]])
        ratios.append(np.median(table["violation"][runs, -1]) / scale)
        saddle_ratios.append(saddle_of(problem, (last + 3.0) ** -pair[1]).violation / scale)
    return Result(pair, np.array(slopes).T, *map(np.array, (theirs, ratios, saddle_ratios)))


def interval(values: Array) -> tuple[float, float]:
    """The second and the ninth of ten: they hold the median with probability 0.978."""
    ordered = np.sort(values)
    return float(ordered[1]), float(ordered[-2])


def decision(found: Result) -> str:
    """As the protocol says."""
    low, high = interval(found.local[0])
    predicted = float(np.median(found.saddle))
    away = max(low - predicted, predicted - high, 0.0)
    return "supported" if away <= SUPPORTED else "refuted" if away > REFUTED else "undecided"


def trace(results: list[Result]) -> tuple[float, float]:
    """The coefficient of (alpha_eta - 1/2) / 2 beside the saddle point's exponent, and its error.

    Least squares over the pairs of the hypothesis, the error by a jackknife over instances.
    """
    inside = [each for each in results if each.pair not in CONTROLS]

    def coefficient(kept: Array) -> float:
        columns = [(1.0, np.median(r.saddle[kept]), (r.pair[0] - 0.5) / 2.0) for r in inside]
        measured = [float(np.median(r.local[0, kept])) for r in inside]
        return float(np.linalg.lstsq(np.array(columns), np.array(measured), rcond=None)[0][2])

    n = len(BINDING)
    left_out = np.array([coefficient(np.delete(np.arange(n), i)) for i in range(n)])
    error = float(np.sqrt((n - 1) / n * np.sum((left_out - left_out.mean()) ** 2)))
    return coefficient(np.arange(n)), error


def rows(results: list[Result]) -> None:
    """Print the table of the page."""
    print("| alpha_eta, alpha_tau | theorem | saddle points | measured, up to K/4 | K/16 | K/64 | "
          "less the saddle points' | violation / (tau lambda*) | saddle points | |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for found in results:
        eta, tau = found.pair
        low, high = interval(found.local[0])
        middle = np.median(found.local, axis=1)
        theorem = min((eta - 0.5) / 2.0, tau)
        apart = found.local[0] - found.saddle
        less, more = interval(apart)
        print(
            f"| {eta:.3g}, {tau:.3g} | {f'{theorem:.3f}' if theorem > 0 else '-'} "
            f"| {np.median(found.saddle):.3f} | **{middle[0]:.3f}** [{low:.3f}, {high:.3f}] "
            f"| {middle[1]:.3f} | {middle[2]:.3f} "
            f"| {np.median(apart):+.3f} [{less:+.3f}, {more:+.3f}] | {np.median(found.ratio):.2f} "
            f"| {np.median(found.saddle_ratio):.2f} | {decision(found)} |"
        )


def long_runs(folder: Path) -> None:
    """Print the local exponents of the long runs, quadrupling by quadrupling."""
    for path in sorted(folder.glob("long-*.npz")):
        table = read_npz(path)
        tail, last = envelope(table)[0], float(table["episodes"])
        ends = [last / 4.0**j for j in range(1, 7)]
        slopes = ", ".join(f"{local(table['episode'], tail, end):.4f}" for end in ends)
        scale = (last + 3.0) ** (-1.0 / 7.0) * float(table["lambda_star"][0])
        print(f"{path.stem}: {last:.3g} episodes, local exponents {slopes};", end=" ")
        print(f"violation / (tau lambda*) {table['violation'][0, -1] / scale:.4f}")
    problem = small(4)
    ends = [last / 4.0**j for j in range(1, 7)]
    saddles = [
        np.log(saddle_of(problem, (e / 4 + 3) ** (-1 / 7)).error
               / saddle_of(problem, (e + 3) ** (-1 / 7)).error) / np.log(4.0)
        for e in ends
    ]  # fmt: skip
    print("saddle points:", ", ".join(f"{each:.4f}" for each in saddles))


def draw(table: dict[str, Any], results: list[Result]) -> None:
    """Measured against predicted exponents, and violation / (tau lambda*) along the runs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 4.0), layout="constrained")
    left, right = figure.subplots(1, 2)
    for found in results:
        low, high = interval(found.local[0])
        x, y = float(np.median(found.saddle)), float(np.median(found.local[0]))
        control = found.pair in CONTROLS
        inside = found.pair[0] > 0.5 and sum(found.pair) < 1.0
        mark = "x" if control else "o" if inside else "s"
        face = "white" if mark == "s" else "black"
        left.errorbar(
            x, y, [[y - low], [high - y]], fmt=mark, color="black", mfc=face, ms=5, lw=0.8
        )
    ends = [0.1, 0.5]
    left.plot(ends, ends, color="0.5", lw=1.0)
    left.annotate("measured = predicted", (0.3, 0.3), (0.31, 0.22), color="0.35", fontsize=8)
    theorem = [(min((e - 0.5) / 2, t), float(np.median(r.saddle))) for r in results
               for e, t in [r.pair] if e > 0.5 and r.pair not in CONTROLS]  # fmt: skip
    left.plot([x for _, x in theorem], [y for y, _ in theorem], "_", color="0.5", ms=9)
    left.set(xlabel="exponent of the saddle points of tau_k", ylabel="exponent of the last iterate")
    for name, mark, face in (("inside the theorem's region", "o", "black"),
                             ("outside it, inside the hypothesis", "s", "white"),
                             ("controls", "x", "black")):  # fmt: skip
        left.plot([], [], mark, color="black", mfc=face, ms=5, label=name)
    left.plot([], [], "_", color="0.5", ms=9, label="what the theorem allows")
    left.legend(fontsize=8, frameon=False, loc="upper left")
    shown = {(0.53, 0.40): "-", (0.70, 0.25): "--", (11 / 14, 1 / 7): "-.", (0.85, 0.10): ":"}
    for pair, style in shown.items():
        own = (table["alpha_eta"] == pair[0]) & (table["alpha_tau"] == pair[1])
        tau = (table["episode"] + 3.0) ** -pair[1]
        ratio = table["violation"][own] / (tau * table["lambda_star"][own][:, None])
        name = f"({pair[0]:.3g}, {pair[1]:.3g})"
        right.plot(
            table["episode"], np.median(ratio, axis=0), style, color="black", lw=1.2, label=name
        )
    right.axhline(1.0, color="0.5", lw=1.0)
    right.set(xscale="log", xlim=(1e3, None), ylim=(-0.5, 4.0), xlabel="episode k",
              ylabel="violation / (tau_k lambda*)")  # fmt: skip
    right.legend(fontsize=8, frameon=False, title="(alpha_eta, alpha_tau)", title_fontsize=8)
    for axes in (left, right):
        in_house_style(axes)
    figure.savefig(FIGURE, dpi=150)


def main(folder: Path) -> None:
    """Read, print, draw."""
    table = read_npz(folder / "exponents-1-of-1.npz")
    print(f"{int(table['episodes']):,} episodes of {len(table['gap'])} runs\n")
    results = [result(table, pair) for pair in PAIRS]
    rows(results)
    coefficient, error = trace(results)
    print(
        f"\ncoefficient of (alpha_eta - 1/2) / 2: {coefficient:+.3f}, standard error {error:.3f}\n"
    )
    long_runs(folder)
    draw(table, results)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/studies"))
