"""`make bench`: sizes on the CPU, plain NumPy, and the ratios that matter."""

from __future__ import annotations

import argparse
import json
import platform
import time
from pathlib import Path

import numpy as np
from numpy_reference import NumpyUOpt
from timing import PAPER, Timing, benchmark, random_problem


def time_numpy(seconds: float = 2.0) -> Timing:
    X, A, H, N = PAPER
    learner = NumpyUOpt(random_problem(*PAPER), seed=0)
    learner.play(20)
    slices = []
    for _ in range(5):
        began = time.perf_counter()
        learner.play(int(seconds / 5 / 8e-4))
        slices.append((time.perf_counter() - began) / int(seconds / 5 / 8e-4))
    return Timing("numpy", "UOpt-RPGPD", X, A, H, N, 1, 1e6 * float(np.median(slices)))


def processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="only the paper's size")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    timings = list(benchmark(arguments.quick))
    timings.insert(1, time_numpy())
    if arguments.json:
        print(json.dumps([each._asdict() for each in timings], indent=2))
        return
    print(f"{processor()}, Python {platform.python_version()}, NumPy {np.__version__}, float64\n")
    print(
        f"{'engine':8}{'algorithm':22}{'X':>5}{'A':>4}{'H':>4}{'N':>3}{'runs':>6}{'us/episode':>13}"
    )
    for t in timings:
        sizes = f"{t.states:5}{t.actions:4}{t.horizon:4}{t.constraints:3}{t.runs:6}"
        print(f"{t.engine:8}{t.algorithm:22}{sizes}{t.us_per_episode:13.2f}")
    ours, plain = timings[0].us_per_episode, timings[1].us_per_episode
    two = next(t for t in timings if t.runs == 2).us_per_episode
    print(f"\nplain NumPy / ours            {plain / ours:6.0f}")
    print(f"two runs / one run, throughput {ours / two:5.2f}")
    large = [t for t in timings if t.states == 100]
    if large:
        per_cell = large[0].us_per_episode / ours * (PAPER[0] / 100) ** 2
        print(f"time per H X^2 A, X = 100 / 30 {per_cell:5.2f}")


if __name__ == "__main__":
    main()
