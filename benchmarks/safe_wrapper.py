"""The price of a coin: learners alone and inside Safe(...), their strong regret on three problems.

    python benchmarks/safe_wrapper.py --episodes 1000000 --seeds 5

prints regrets, local exponents, violations and the share of the safe policy, and draws
docs/figures/safe-wrapper.png. Wrapped learners are at scale 1 on their own box; learners inside
keep their own scales.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import cmdplab
from cmdplab.experiments.play import Run
from cmdplab.figures.style import in_house_style
from cmdplab.measures.safety import summary

PROBLEMS = ("three-state", "media-streaming", "cost-chain-3")
INSIDE = ("UOpt-RPGPD", "OptCMDP", "Triple-Q")
COLOURS = dict(zip(INSIDE, ("#0072b2", "#d55e00", "#009e73"), strict=True))
FIGURE = Path("docs") / "figures" / "safe-wrapper.png"

Runs = dict[tuple[str, str], list[Run]]


def played(episodes: int, seeds: int) -> Runs:
    """Every learner, alone and wrapped, on every problem."""
    found: Runs = {}
    for name in PROBLEMS:
        problem = cmdplab.make(name)
        solution = cmdplab.solve(problem)
        for each in INSIDE:
            for label in (each, f"Safe({each})"):
                row = cmdplab.algorithms.as_row(label).with_settings(tuned_for=episodes)
                jobs = [cmdplab.Job(row, seed) for seed in range(seeds)]
                found[name, label] = cmdplab.run_many(problem, jobs, episodes, solution=solution)
    return found


def exponent(run: Run) -> float:
    """Of the strong regret, from K / 4 to K: 1 is linear."""
    episode, regret = run.curves["episode"], run.curves["strong_regret"]
    quarter = float(np.interp(episode[-1] / 4.0, episode, regret))
    return float(np.log(regret[-1] / quarter) / np.log(4.0)) if quarter > 0.0 else 0.0


def printed(runs: Runs) -> None:
    """Print a line for each."""
    print(f"{'problem':18}{'algorithm':20}{'regret':>10}{'exponent':>10}{'violating':>11}", end="")
    print(f"{'largest':>10}{'safe policy':>13}{'last there':>12}{'us':>8}")
    for (problem, label), mine in runs.items():
        safe = [summary(run.curves, run.mistakes) for run in mine]
        regret = np.median([run.summary.strong_regret for run in mine])
        slope = np.median([exponent(run) for run in mine])
        violating = np.median([each.violating for each in safe if each])
        largest = max(each.largest for each in safe if each)
        shares = [each.baseline_share for each in safe if each and each.baseline_share is not None]
        left = [each.left_baseline for each in safe if each and each.left_baseline is not None]
        given = (
            f"{100.0 * np.median(shares):12.1f}%{np.median(left):12,.0f}" if shares else " " * 25
        )
        time = np.median([run.us_per_episode for run in mine])
        head = f"{problem:18}{label:20}{regret:10.0f}{slope:10.2f}{violating:11,.0f}"
        print(f"{head}{largest:10.2g}{given}{time:8.1f}")


def drawn(runs: Runs, episodes: int, seeds: int) -> None:
    """Draw strong regret against episodes: a panel for each problem, dashed inside a coin."""
    from matplotlib import pyplot

    figure, panels = pyplot.subplots(1, len(PROBLEMS), figsize=(10.5, 3.6), layout="constrained")
    for axes, problem in zip(panels, PROBLEMS, strict=True):
        for each in INSIDE:
            for label, dash in ((each, "-"), (f"Safe({each})", "--")):
                mine = runs[problem, label]
                regret = np.median([run.curves["strong_regret"] for run in mine], axis=0)
                axes.plot(mine[0].curves["episode"], regret, dash, color=COLOURS[each], label=label)
        k = np.array([1e2, float(episodes)])
        axes.plot(k, 3.0 * np.sqrt(k), color="0.6", lw=0.8)
        axes.annotate("√k", (k[1], 3.0 * np.sqrt(k[1])), color="0.4", fontsize=8)
        axes.set(xscale="log", yscale="log", title=problem, xlabel="episode")
        axes.set_ylim(bottom=1.0)
        in_house_style(axes)
    panels[0].set_ylabel("strong regret of the reward")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=6)
    figure.suptitle(f"The price of a coin: medians of {seeds} seeds, wrapped ones at scale 1")
    FIGURE.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(FIGURE, dpi=150)
    pyplot.close(figure)


def main() -> None:
    """Run, print and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--episodes", type=int, default=1_000_000)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    runs = played(given.episodes, given.seeds)
    printed(runs)
    drawn(runs, given.episodes, given.seeds)


if __name__ == "__main__":
    main()
