"""What the runs of slater.py say: tables and docs/figures/study-slater.png.

python benchmarks/studies/read_slater.py runs/studies
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from instances import optimum
from slater import PAIRS, tightened

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.figures.style import in_house_style
from cmdplab.files import read_npz
from cmdplab.theory.constants import constants, setting_of
from cmdplab.theory.potential import drift, potential
from cmdplab.theory.saddle import SaddlePoint, saddle_point
from cmdplab.types import Array

FIGURE = Path("docs") / "figures" / "study-slater.png"
BINDS = 0.01  # multipliers below it do not bind
SHOWN = (1.0, 0.0233, 0.001)  # slacks of the second table, nearest first


class Curve(NamedTuple):
    """Mistakes of one problem under one pair, medians over seeds."""

    constraints: int
    slack: float
    largest: float  # max_n lambda*^n
    epsilon: Array
    mistakes: Array
    judged: Array  # of the epsilons: between 3 tau_K lambda* and 0.3 lambda*


def curves(table: dict[str, Any], pair: tuple[float, float]) -> list[Curve]:
    """One for each number of constraints and slack."""
    own = (table["alpha_eta"] == pair[0]) & (table["alpha_tau"] == pair[1])
    last, epsilon = float(table["episodes"]), table["epsilon"]
    found = []
    for constraints in np.unique(table["constraints"]):
        for slack in np.unique(table["slack"])[::-1]:
            runs = own & (table["constraints"] == constraints) & (table["slack"] == slack)
            largest = float(table["lambda_star"][runs].max())
            mistakes = np.median(table["mistakes"][runs], axis=0)
            least = 3.0 * (last + 3.0) ** -pair[1] * largest
            judged = (epsilon >= least) & (epsilon <= 0.3 * largest) & (mistakes > 0)
            found.append(Curve(int(constraints), float(slack), largest, epsilon, mistakes, judged))
    return found


def spread(found: list[Curve], scale: dict[int, float], power: float) -> tuple[float, int]:
    """The largest ratio over problems of N(eps) (eps / s)^power at one eps / lambda*.

    scale : s of the n-th curve. Curves are compared where at least three of them are judged.
    """
    grid = np.geomspace(1e-3, 0.3, 60)
    heights = np.full((len(found), len(grid)), np.nan)
    for n, each in enumerate(found):
        x = np.log(each.epsilon[each.judged] / each.largest)
        if len(x) < 2:
            continue
        y = np.log(each.mistakes[each.judged]) + power * np.log(
            each.epsilon[each.judged] / scale[n]
        )
        order = np.argsort(x)
        inside = (np.log(grid) >= x.min()) & (np.log(grid) <= x.max())
        heights[n, inside] = np.interp(np.log(grid[inside]), x[order], y[order])
    enough = np.sum(np.isfinite(heights), axis=0) >= 3
    if not enough.any():
        return np.nan, 0
    apart = np.nanmax(heights[:, enough], axis=0) - np.nanmin(heights[:, enough], axis=0)
    return float(np.exp(apart.max())), int(np.isfinite(heights[:, enough]).any(axis=1).sum())


def over_saddle(curve: Curve, tau: float, last: float) -> tuple[Array, Array]:
    """The episode k at which the saddle point of tau_k errs by eps, and N(eps) over it.

    Not in the protocol: found after the data were seen.
    """
    problem = tightened(curve.constraints, curve.slack)[0]
    episodes = np.geomspace(30.0, last, 40)
    error, start = np.empty(len(episodes)), None
    for n, k in enumerate(episodes):
        saddle = saddle_point(problem, (k + 3.0) ** -tau, start=start)
        start, returns = saddle.multiplier, exact.returns(problem, saddle.policy)
        violation = float(np.max(problem.threshold - returns[1:]))
        error[n] = max(float(optimum(problem).value or 0.0) - float(returns[0]), violation)
    error = np.minimum.accumulate(error)
    inside = (curve.epsilon > 1.05 * error[-1]) & (curve.epsilon < error[0]) & (curve.mistakes > 0)
    at = np.interp(-np.log(curve.epsilon[inside]), -np.log(error), np.log(episodes))
    return np.exp(at), curve.mistakes[inside] / np.exp(at)


@cache
def saddle_at(constraints: int, slack: float, tau: float) -> tuple[CMDP, SaddlePoint]:
    """The problem with all four utilities, and its saddle point at a temperature."""
    whole = tightened(constraints, slack)[1]
    return whole, saddle_point(whole, tau)


def potentials(table: dict[str, Any]) -> None:
    """Print the potential, its drift and the terms of the recursion at k = 4^j."""
    print(
        "\n| pair | N | slack | k | Phi, policy | Phi, multiplier | eta tau Phi | drift | eta^2 C |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    slacks = np.unique(table["slack"])
    wanted = [float(slacks[np.argmin(abs(np.log(slacks / each)))]) for each in SHOWN]
    for place, run in enumerate(table["seen_run"]):
        pair = (float(table["alpha_eta"][run]), float(table["alpha_tau"][run]))
        constraints, slack = int(table["constraints"][run]), float(table["slack"][run])
        if table["seed"][run] != 0 or slack not in wanted:
            continue
        constant = constants(setting_of(tightened(constraints, slack)[0], slack)).combined()
        for moment in (4, 6, 8):
            k = int(table["seen_episode"][moment])
            eta, tau = ((k + 3.0) ** -each for each in pair)
            problem, saddle = saddle_at(constraints, slack, tau)
            after = saddle_point(problem, (k + 4.0) ** -pair[1], start=saddle.multiplier)
            log_policy = table["seen_log_policy"][moment, place]
            multiplier = table["seen_multiplier"][moment, place]
            phi = potential(problem, saddle, log_policy, multiplier)
            moved = drift(problem, saddle, after, log_policy, multiplier)
            print(
                f"| {pair[0]:.3g}, {pair[1]:.3g} | {constraints} | {slack:.3g} | 4^{moment + 2} "
                f"| {phi.policy:.2e} | {phi.multiplier:.2e} | {eta * tau * phi.total:.1e} "
                f"| {moved:+.1e} | {eta**2 * constant:.1e} |"
            )


def draw(panels: Any, found: list[Curve], pair: tuple[float, float], last: float) -> None:
    """Above: mistakes as the hypothesis scales them. Below: over the saddle point's episode."""
    medians = []
    for style, n in (("-", 1), ("--", 2), (":", 4)):
        for each in (c for c in found if c.constraints == n):
            look = {"color": f"{0.75 * (1.0 + np.log10(each.slack) / 3.0):.2f}", "lw": 1.0}
            height = each.mistakes * (each.epsilon / each.largest) ** (1.0 / pair[1])
            seen = each.mistakes > 0
            panels[0].plot(each.epsilon[seen] / each.largest, height[seen], style, **look)
            at, ratio = over_saddle(each, pair[1], last)
            panels[1].plot(at, ratio, style, **look)
            medians.append(float(np.median(ratio[at > last / 64.0])))
        panels[0].plot([], [], style, color="black", label=f"N = {n}")
    print(f"N(eps) over the saddle point's episode, k > K / 64, medians of the {len(medians)} "
          f"problems: {min(medians):.2f} to {max(medians):.2f}")  # fmt: skip
    panels[0].set_title(f"alpha_eta = {pair[0]}, alpha_tau = {pair[1]}", fontsize=10)
    panels[0].set(xlim=(1e-3, 10.0), ylim=(1e-3, 1e4), xlabel="epsilon / lambda*")
    panels[1].set(
        ylim=(0.1, 1e3), xlabel="episode k at which the saddle point of tau_k errs by epsilon"
    )
    for panel in panels:
        panel.axhline(1.0, color="0.5", lw=0.8)
        panel.set(xscale="log", yscale="log")
        in_house_style(panel)


def main(folder: Path) -> None:
    """Read, print, draw."""
    from matplotlib.figure import Figure

    table = read_npz(folder / "slater.npz")
    last = float(table["episodes"])
    print(f"{last:,.0f} episodes of {len(table['gap'])} runs")
    figure = Figure(figsize=(9.0, 7.0), layout="constrained")
    panels = figure.subplots(2, 2, sharey="row")
    for column, pair in enumerate(PAIRS):
        found = curves(table, pair)
        binding = [each for each in found if each.largest >= BINDS]
        print(f"\n({pair[0]}, {pair[1]}): {len(binding)} of {len(found)} problems bind")
        ends = [each.largest for each in binding]
        print(f"lambda* from {min(ends):.3g} to {max(ends):.3g}")
        own = {n: each.largest for n, each in enumerate(binding)}
        gap = {n: 5.0 / each.slack for n, each in enumerate(binding)}
        for name, scale in (("lambda*", own), ("H / b_gap", gap)):
            width, used = spread(binding, scale, 1.0 / pair[1])
            print(f"spread with {name}: {width:.3g} ({used} problems)")
        draw(panels[:, column], binding, pair, last)
    panels[0, 0].set_ylabel("N(eps) (eps / lambda*)^(1 / alpha_tau)")
    panels[1, 0].set_ylabel("N(eps) / k")
    panels[0, 0].legend(fontsize=8, frameon=False, title="darker: less slack", title_fontsize=8)
    figure.savefig(FIGURE, dpi=150)
    potentials(table)


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "runs/studies"))
