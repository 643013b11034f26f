"""`make failure-events`: how often the events of the paper's Appendix H.1 happen, at scale 1.

UOpt-RPGPD as printed on a small CMDP, every event asked after every episode, many seeds: the
observed frequency with its exact binomial interval, beside the share of delta that Lemma H.1 gives
each event (as printed, and as a union bound gives it).
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial

import numpy as np
from guarantees import small

from cmdplab import exact, solve
from cmdplab.algorithms import algorithm
from cmdplab.baselines import task_for
from cmdplab.engines import session
from cmdplab.statistics import binomial_interval
from cmdplab.theory.events import Failures, failures, shares, union_shares


def events_of(seed: int, episodes: int) -> list[bool]:
    """Whether each event ever happened in one run."""
    problem = small()
    row = replace(algorithm("UOpt-RPGPD", "printed"), bonus_scale=1.0)
    run = session("cpu", problem, row, task_for(row, problem, solve(problem)), seed)
    occupancies = np.zeros((problem.horizon, problem.states, problem.actions))
    happened = np.zeros(3, bool)
    for _ in range(episodes):
        occupancies += exact.occupancy(problem, run.state().policy)
        run.play(1)
        state = run.state()
        happened |= failures(state.counts, problem.transition, occupancies, row.delta)
    return happened.tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=500)
    parser.add_argument("--episodes", type=int, default=1000)
    given = parser.parse_args()
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(partial(events_of, episodes=given.episodes), range(given.runs)))
    table = np.array(found)
    problem, delta = small(), 0.1
    printed, union = shares(problem.states, delta), union_shares(delta)
    print(f"{given.runs} runs of {given.episodes:,} episodes, delta = {delta:g}")
    for name, column, a, b in zip(Failures._fields, table.T, printed, union, strict=True):
        f = binomial_interval(int(column.sum()), given.runs)
        print(f"{name:7} {f.successes} runs: {f.middle:.4f} [{f.low:.4f}, {f.high:.4f}]; "
              f"lemma {a:.4f}, union bound {b:.4f}")  # fmt: skip
    f = binomial_interval(int(table.any(axis=1).sum()), given.runs)
    print(
        f"any     {f.successes} runs: {f.middle:.4f} [{f.low:.4f}, {f.high:.4f}]; delta {delta:g}"
    )


if __name__ == "__main__":
    main()
