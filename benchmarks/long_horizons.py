"""How far apart primal and dual are at long horizons, relative to H.

    python benchmarks/long_horizons.py 39

makes so many random problems of each size, H = 50 to 400 with one to three constraints.
"""

from __future__ import annotations

import argparse

import numpy as np

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.solvers import Box, Solution, largest_margin, solve

HORIZONS = (50, 100, 200, 400)


def problem_of(horizon: int, constraints: int, seed: int) -> CMDP:
    """Stationary, with many nearly equal actions; thresholds between uniform play and the most."""
    rng = np.random.default_rng((horizon, constraints, seed))
    X, A = (int(i) for i in rng.integers((3, 2), (11, 5)))
    kernel = rng.dirichlet(np.full(X, float(rng.choice([0.05, 0.3, 1.0]))), (X, A))
    reward = rng.random((1 + constraints, X, A))
    if rng.random() < 0.5:
        reward = np.round(2.0 * reward) / 2.0
    free = CMDP(kernel, reward, np.zeros(constraints), 0, horizon=horizon)
    widest = largest_margin(Box.of(free), free.reward, free.threshold, 0).policy
    most, even = (
        exact.returns(free, each)[1:] for each in (widest, np.full(widest.shape, 1.0 / A))
    )
    share = float(rng.choice([0.3, 0.7, 0.95, 0.999]))
    threshold = np.minimum(even, most) + share * np.maximum(most - even, 0.0)
    return CMDP(kernel, reward, threshold, 0, horizon=horizon)


def distance(problem: CMDP, found: Solution) -> float:
    """The certificate with the shortfall of the policy, priced by the multipliers, per step."""
    short = np.maximum(problem.threshold - exact.returns(problem, found.policy)[1:], 0.0)
    return float(abs(found.dual - found.primal) + found.multiplier @ short) / problem.horizon


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=5, help="problems of each size")
    count = parser.parse_args().count
    print(
        f"{'H':>5}{'N':>3}{'problems':>10}{'above 1e-9 H':>14}{'above 1e-9':>12}"
        f"{'worst / H':>12}{'median / H':>12}"
    )
    for horizon in HORIZONS:
        for constraints in (1, 2, 3):
            problems = [problem_of(horizon, constraints, seed) for seed in range(count)]
            gaps = np.array([distance(each, solve(each)) for each in problems])
            above = f"{(gaps > 1e-9).sum():14}{(gaps * horizon > 1e-9).sum():12}"
            cells = f"{above}{gaps.max():12.1e}{np.median(gaps):12.1e}"
            print(f"{horizon:5}{constraints:3}{count:10}{cells}", flush=True)


if __name__ == "__main__":
    main()
