"""How much the scale of bonuses and margins matters: every algorithm at 1, 0.1, 0.01 and 0.001.

Prints final gap and violation, and the sum of strong regret and strong violation regret per
episode, medians over two seeds. This is how the default scales were chosen (ours, not the papers'):
docs/algorithms/scales.md holds a run of it.
"""

from __future__ import annotations

import argparse

import numpy as np

from cmdplab import Job, make, run_many, solve
from cmdplab.studies.predefined import Comparison

SCALES = (1.0, 0.1, 0.01, 0.001)
NAMES = (
    *("OptCMDP", "OptCMDP-bonus", "OptDual-CMDP", "Online-CRL", "OptPress-LP", "DOPE:printed"),
    *("OptPress-PD", "OPDOP", "OptPrimalDual-CMDP:printed", "Regularized-PD", "Triple-Q:printed"),
    *("UOpt-RPGPD:printed", "UOpt-RPGPD:released"),
)


def line(problem_name: str, name: str, episodes: int) -> str:
    problem = make(problem_name)
    solution = solve(problem)
    cells = []
    for scale in SCALES:
        settings = Comparison(
            algorithms=(name,), bonus_scale=scale, margin_scale=scale, episodes=episodes
        )
        todo = [Job(settings.rows()[0], seed) for seed in range(2)]
        ends = [run.summary for run in run_many(problem, todo, episodes, solution=solution)]
        gap, violation = (
            np.median([getattr(end, field) for end in ends])
            for field in ("final_gap", "final_violation")
        )
        lost = np.median([end.strong_regret + end.strong_violation_regret for end in ends])
        cells.append(f"{gap:+.2f} {violation:+.2f} **{lost / episodes:.2f}**")
    return f"| {problem_name} | {name} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=30_000)
    parser.add_argument("problems", nargs="*", default=["media-streaming", "inventory"])
    given = parser.parse_args()
    print(f"| problem | algorithm | {' | '.join(f'scale {s:g}' for s in SCALES)} |")
    print("|---|---|" + "---|" * len(SCALES))
    for problem in given.problems:
        for name in NAMES:
            print(line(problem, name, given.episodes), flush=True)


if __name__ == "__main__":
    main()
