"""What the measures cost: memory and seconds up to 1e8 episodes, and their share of an episode.

Synthetic returns, N = 1, in chunks of the size that a run of the paper's size has. The process's
peak memory counts the chunks too; `held` is what the measures keep, and what a checkpoint holds.

    python benchmarks/measures.py [--most 8]
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np
from timing import PAPER, random_problem, time_engine

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.learner import Chunk
from cmdplab.measures.measures import Measures

CHUNK = 25_000  # episodes: 0.2 s of the engine
HORIZON = PAPER[2]


def returns_of(first: int, episodes: int, rng: np.random.Generator) -> Chunk:
    """Gap and violation that fall like k^(-1/2) with noise, so that mistakes of all sizes occur."""
    k = np.arange(first, first + episodes, dtype=np.float64)
    error = (HORIZON / np.sqrt(k))[:, None] * rng.normal(1.0, 0.5, (episodes, 2))
    return Chunk(np.array([5.0, 5.0]) - error, rng.random((episodes, 1)))


def peak_megabytes() -> float:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1e6 if sys.platform == "darwin" else 1e3)


def held_megabytes(measures: Measures) -> float:
    return sum(array.nbytes for array in measures.arrays().values()) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--most", type=int, default=8, help="a power of ten, at least 6")
    most = parser.parse_args().most
    rng = np.random.default_rng(0)
    measures = Measures(5.0, np.array([5.0]), HORIZON)
    done, spent = 0, 0.0
    print(f"{'episodes':>12}{'held MB':>10}{'peak MB':>10}{'seconds':>10}{'us/episode':>12}")
    for power in range(6, most + 1):
        while done < 10**power:
            chunk = returns_of(done + 1, CHUNK, rng)
            began = time.perf_counter()
            measures.add(chunk)
            spent += time.perf_counter() - began
            done += CHUNK
        row = f"{done:12,}{held_megabytes(measures):10.2f}{peak_megabytes():10.1f}"
        print(f"{row}{spent:10.1f}{1e6 * spent / done:12.3f}", flush=True)
    engine = time_engine("cpu", algorithm("UOpt-RPGPD", "released"), random_problem(*PAPER))
    ours = 1e6 * spent / done
    share = ours / engine.us_per_episode
    print(
        f"\nan episode of the engine at X, A, H, N = {PAPER}: {engine.us_per_episode:.2f} us; "
        f"measures / engine = {share:.3f}"
    )


if __name__ == "__main__":
    main()
