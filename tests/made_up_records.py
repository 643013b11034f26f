"""A folder of records whose returns come from a formula: as real ones are, and written at once."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from cmdplab.algorithms import FIGURE_1, algorithm
from cmdplab.algorithms.learner import Chunk
from cmdplab.experiments.play import Run
from cmdplab.experiments.records.labels import by_label
from cmdplab.experiments.records.tables import put_runs
from cmdplab.files import sealed
from cmdplab.files.write import to_json
from cmdplab.measures.measures import Measures
from cmdplab.studies.conclusions import numbers_of

HORIZON, OPTIMUM = 10, 5.0


def simulated(name: str, seed: int, episodes: int, constraints: int = 1) -> Run:
    """A run whose returns come from a formula: measured as any other, and done at once."""
    rng = np.random.default_rng([seed, len(name), ord(name[0])])
    k = np.arange(1, episodes + 1)
    size = 3.0 / np.sqrt(k) + 0.2 * (len(name) % 3)
    waves = size * np.sin(k / (5.0 + len(name))) + 0.05 * rng.standard_normal(episodes)
    returns = np.column_stack([OPTIMUM - waves, *[2.0 + 0.5 * waves] * constraints])
    measures = Measures(OPTIMUM, np.full(constraints, 2.0), HORIZON)
    measures.add(Chunk(returns, np.tile(np.abs(waves)[:, None], (1, constraints))))
    row = replace(algorithm("UOpt-RPGPD"), name=name)
    return Run(row, seed, measures.summary(), measures.curves(), measures.mistakes(), None, 2.0)


def records(
    folder: Path,
    names: tuple[str, ...] = FIGURE_1,
    seeds: int = 3,
    episodes: int = 30_000,
    problem: str = "made up",
    constraints: int = 1,
) -> Path:
    """A folder as `reproduce` of version 0.1 left it."""
    folder.mkdir(parents=True, exist_ok=True)
    runs = [simulated(name, seed, episodes, constraints) for seed in range(seeds) for name in names]
    put_runs(runs, "curves", folder / "curves.parquet")
    put_runs(runs, "mistakes", folder / "mistakes.parquet")
    summary = {
        "preset": "released",
        "instance": problem,
        "episodes": episodes,
        "seeds": seeds,
        "bonus_scale": 1e-3,
        "optimum": OPTIMUM,
        "threshold": [2.0] * constraints,
        "algorithms": {name: numbers_of(mine) for name, mine in by_label(runs).items()},
    }
    (folder / "summary.json").write_text(sealed(to_json(summary)))
    return folder
