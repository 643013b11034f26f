"""Runs on a GPU through the public functions: how long they take as a whole, and when they pay.

    python benchmarks/gpu_runs.py public     # `run_many`, 10^5 episodes a run: two minutes
    python benchmarks/gpu_runs.py long       # 4,096 runs of 10^6 episodes in float32: four minutes
    python benchmarks/gpu_runs.py crossing   # GPU against all cores, over sizes and runs
    python benchmarks/gpu_runs.py sweep      # 1,024 recorded runs, checkpoints and tables included

`playing` is what the runs say of themselves (`Run.seconds`, exact returns and measures of every
episode included); `whole` is the call from its start to the list of finished runs with their
curves: starting the device, loading kernels, fetching. Kernels are compiled once for each size and
precision and kept on disk; a small run comes first.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator

from timing import random_problem, time_engine

from cmdplab import CMDP, algorithm, make, run_many
from cmdplab.experiments.run import jobs
from cmdplab.solvers import solve_feasible

ROW = algorithm("UOpt-RPGPD", "released")
HEADER = "| runs | episodes | precision | playing, million/s | whole, million/s | whole, s |"
RULE = "|---|---|---|---|---|---|"
CROSSING = ((5, 2, 5, 1), (10, 3, 10, 1), (30, 3, 10, 1), (100, 3, 10, 1))  # X, A, H, N
SECONDS = 2.0  # of measuring the cores, for each size


def line(runs: int, episodes: int, precision: str) -> str:
    """One call of `run_many` at the paper's size."""
    problem = make("published")
    solution = solve_feasible(problem)
    began = time.perf_counter()
    given = {"engine": "gpu", "precision": precision, "solution": solution}
    done = run_many(problem, jobs([ROW], runs), episodes, **given)
    whole = time.perf_counter() - began
    total = runs * episodes / 1e6
    playing = sum(run.seconds for run in done)
    rates = f"{total / playing:.1f} | {total / whole:.1f} | {whole:.1f}"
    return f"| {runs:,} | {episodes:,} | {precision} | {rates} |"


def public() -> Iterator[str]:
    """Both precisions, many runs and few."""
    for precision in ("float32", "float64"):
        line(64, 100, precision)  # compiles, or finds what was compiled
    yield f"{HEADER}\n{RULE}"
    for precision in ("float32", "float64"):
        for runs in (64, 4096):
            yield line(runs, 100_000, precision)


def long() -> Iterator[str]:
    """The study that the engine is for."""
    line(64, 100, "float32")
    yield f"{HEADER}\n{RULE}"
    yield line(4096, 1_000_000, "float32")


def crossing() -> Iterator[str]:
    """Episodes a second of all cores, and of the GPU for so many runs a core, in float64."""
    cores = os.cpu_count() or 1
    shares = (1, 4, 16, 64)
    names = " | ".join(f"GPU, {each * cores} runs" for each in shares)
    yield f"| X, A, H, N | {cores} cores | {names} |\n|---|---|{'---|' * len(shares)}"
    for sizes in CROSSING:
        problem = random_problem(*sizes)
        cpu = 1.0 / time_engine("cpu", ROW, problem, cores, SECONDS).us_per_episode
        gpu = [gpu_rate(problem, each * cores) for each in shares]
        rates = " | ".join(f"{each:.2f}" for each in (cpu, *gpu))
        yield f"| {', '.join(map(str, sizes))} | {rates} |"


def gpu_rate(problem: CMDP, runs: int) -> float:
    """Million episodes a second while playing."""
    solution, episodes = solve_feasible(problem), 4000
    given = {"engine": "gpu", "solution": solution}
    run_many(problem, jobs([ROW], runs), 10, **given)
    done = run_many(problem, jobs([ROW], runs), episodes, **given)
    return runs * episodes / 1e6 / sum(run.seconds for run in done)


def sweep() -> Iterator[str]:
    """Recorded runs: the time that checkpoints, tables and manifests take beside the playing."""
    from cmdplab.experiments.experiment import parse_experiment
    from cmdplab.experiments.status import RunStatus
    from cmdplab.experiments.sweep import sweep as swept

    values = {
        "name": "gpu",
        "episodes": 100_000,
        "seeds": 1024,
        "problems": [{"environment": "published"}],
        "algorithms": [{"name": ROW.name, "preset": ROW.preset}],
    }
    line(64, 100, "float64")
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        found: list[RunStatus] = swept(parse_experiment(values, "here"), folder, engine="gpu")
        whole = time.perf_counter() - began
        begun = time.perf_counter()
        swept(parse_experiment(values, "here"), folder, engine="gpu")
        again = time.perf_counter() - begun
    done = sum(each.status == "done" for each in found)
    playing = sum(each.episodes / each.rate for each in found if each.rate)
    yield f"{done} runs of 100,000 episodes, float64: {whole:.1f} s, {playing:.1f} of them playing"
    yield f"to find that all is done: {again:.1f} s"


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    each.__name__: each for each in (public, long, crossing, sweep)
}


def main(parts: list[str]) -> None:
    """Print the chosen parts, line by line."""
    from cmdplab.engines.gpu.device import missing

    if missing():
        sys.exit(missing())
    for part in parts:
        print(f"\n## {part}\n", flush=True)
        for text in PARTS[part]():
            print(text, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="+", choices=PARTS, help="what to measure")
    main(parser.parse_args().parts)
