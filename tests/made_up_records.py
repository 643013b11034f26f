"""A folder of records whose returns come from a formula: as real ones are, and written at once."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from cmdplab.algorithms import FIGURE_1, algorithm, is_own
from cmdplab.algorithms.custom import recorded
from cmdplab.algorithms.learner import Chunk
from cmdplab.cmdp.problem import CMDP
from cmdplab.experiments import checkpoint, manifest
from cmdplab.experiments.durable import CURVES, FILES, MISTAKES
from cmdplab.experiments.experiment import Experiment
from cmdplab.experiments.folder import Folder, add_runs
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.play import Run
from cmdplab.experiments.records.labels import by_label
from cmdplab.experiments.records.tables import put_runs
from cmdplab.experiments.run_settings import RunSettings, fingerprint
from cmdplab.files import file_digest, sealed
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
    row = algorithm(name) if is_own(name) else recorded(name)
    return Run(row, seed, measures.summary(), measures.curves(), measures.mistakes(), None, 2.0)


def records(
    folder: Path,
    names: tuple[str, ...] = FIGURE_1,
    seeds: int = 3,
    episodes: int = 30_000,
    problem: str = "made up",
    constraints: int = 1,
) -> Path:
    """A folder as `reproduce` leaves it, but for the figure and the page."""
    reward = np.full((1 + constraints, 1, 1), OPTIMUM / HORIZON)  # one state: the optimum is 5
    kernel, threshold = np.ones((1, 1, 1)), np.full(constraints, 2.0)
    cmdp = CMDP(kernel, reward, threshold, horizon=HORIZON, name=problem)
    runs = [simulated(name, seed, episodes, constraints) for name in names for seed in range(seeds)]
    settings = [RunSettings.of(cmdp, run.algorithm, episodes, run.seed) for run in runs]
    asked = {"name": "made-up", "episodes": episodes, "seeds": seeds, "preset": "released"}
    asked |= {"problems": [{"file": "made-up.npz"}], "algorithms": [{"name": n} for n in names]}
    experiment = Experiment.model_validate(asked)
    listed = Folder(study="reproduce", experiment=experiment, runs=settings)
    for work, run in zip(add_runs(listed, {fingerprint(cmdp): cmdp}, folder), runs, strict=True):
        work.folder.mkdir()
        put_runs([run], "curves", work.folder / CURVES)
        put_runs([run], "mistakes", work.folder / MISTAKES)
        checkpoint.save(work.folder, {"episode": np.array(episodes)})
        summary = run.summary._asdict()
        done = {"episodes": episodes, "summary": summary, "seconds": run.seconds}
        believed(work.folder, Manifest(settings=work.settings, status="done", **done))
    put_runs(runs, "curves", folder / CURVES)
    put_runs(runs, "mistakes", folder / MISTAKES)
    numbers = {name: numbers_of(mine) for name, mine in by_label(runs).items()}
    (folder / "summary.json").write_text(sealed(to_json({"algorithms": numbers})))
    return folder


def believed(folder: Path, record: Manifest | None = None) -> None:
    """Have the manifest of a finished run say that its files are what was written."""
    record = record or manifest.read(folder)
    assert record is not None
    record.sha256 = {name: file_digest(folder / name) for name in FILES}
    manifest.write(folder, record)
