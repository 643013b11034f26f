"""Animate the price and the violation of two learners on the problem of the paper's figure.

No-regularization runs in a loop around the optimum, and UOpt-RPGPD approaches it. The episodes of
the frames grow by a constant factor, and each frame shows the last third of the episodes played.

    python benchmarks/animation.py [--out docs/figures/oscillation.gif] [--episodes 30000]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib
import numpy as np

matplotlib.use("agg")
import matplotlib.pyplot as plt
from matplotlib.animation import FuncAnimation, PillowWriter

import cmdplab
from cmdplab.figures.palette import looks

NAMES = ("No-regularization", "UOpt-RPGPD")
FRAMES, FRAMES_A_SECOND, FIRST = 120, 15, 100


def main() -> None:
    """Play both learners, and write the animation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/figures/oscillation.gif"))
    parser.add_argument("--episodes", type=int, default=30_000)
    asked = parser.parse_args()
    problem = cmdplab.make("published")
    optimum = cmdplab.solve(problem)
    curves = [cmdplab.run(problem, name, asked.episodes, solution=optimum).curves for name in NAMES]
    figure, axes = plt.subplots(figsize=(6.0, 4.2), dpi=100, layout="constrained")
    seen = [one["violation"][one["episode"] > FIRST / 2] for one in curves]
    largest = 1.1 * max(np.abs(one).max() for one in seen)
    axes.set(xlim=(-0.05, 2.3), ylim=(-largest, largest))
    axes.set(xlabel="price of the constraint (multiplier)", ylabel="violation (reward per episode)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.axhline(0.0, color="0.75", lw=0.8)
    axes.plot(optimum.multiplier, 0.0, "*", color="black", ms=11)
    axes.annotate("optimum", (optimum.multiplier[0], 0.0), (6, 8), textcoords="offset points")
    pairs = [
        (axes.plot([], [], lw=1.4, color=look.colour, label=name)[0],
         axes.plot([], [], marker, color=look.colour, ms=7)[0])
        for name, look, marker in zip(NAMES, looks(NAMES).values(), "so", strict=True)
    ]  # fmt: skip
    axes.legend(loc="lower right", bbox_to_anchor=(1.0, 1.0), ncols=2, frameon=False)
    title = axes.set_title("", loc="left", fontsize=11)

    def draw(frame: int) -> None:
        episodes = int(FIRST * (asked.episodes / FIRST) ** (frame / (FRAMES - 1)))
        title.set_text(f"episode {episodes:,}")
        for (line, dot), one in zip(pairs, curves, strict=True):
            shown = (one["episode"] <= episodes) & (one["episode"] >= 2 / 3 * episodes)
            price, violation = one["multiplier_1"][shown], one["violation"][shown]
            line.set_data(price, violation)
            dot.set_data(price[-1:], violation[-1:])

    asked.out.parent.mkdir(parents=True, exist_ok=True)
    FuncAnimation(figure, draw, FRAMES).save(asked.out, PillowWriter(fps=FRAMES_A_SECOND))
    print(f"{asked.out}: {FRAMES} frames, {asked.out.stat().st_size / 1e3:,.0f} kB")


if __name__ == "__main__":
    main()
