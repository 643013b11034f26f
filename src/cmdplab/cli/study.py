"""`cmdplab reproduce` and `compare`: the predefined studies."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from cmdplab.cli.options import Engine, Precision, Preset, command, find_here, split
from cmdplab.cli.output import Answer, printing_aside, warn

Instance = Literal["published", "random"]


@command()
def reproduce_command(
    preset: Preset = "released",
    episodes: int = 300_000,
    seeds: int = 5,
    instance: Instance | None = None,
    instance_seed: int = 0,
    bonus_scale: float = 1e-3,
    algorithm: list[str] | None = None,
    workers: int | None = None,
    out: Path = Path("runs/figure1"),
) -> Answer:
    """Redraw the paper's Figure 1: five algorithms on one CMDP.

    Writes report.html, figure1.png and .pdf, curves.parquet, mistakes.parquet and summary.json, and
    prints a table that says what converged, what oscillates and by how much. Interrupted, the same
    command, or `cmdplab resume DIR`, goes on to the last bit.
    """
    from cmdplab.algorithms import FIGURE_1
    from cmdplab.cli.sweep import Given, carry_out, finish
    from cmdplab.studies.predefined import Reproduction, prepared

    published = instance == "published" if instance else preset == "released"
    study = Reproduction(
        preset=preset,
        problem="published" if published else f"random-{preset}",
        instance_seed=instance_seed,
        episodes=episodes,
        seeds=seeds,
        bonus_scale=bonus_scale,
        algorithms=tuple(algorithm or FIGURE_1),
        out=out,
    )
    done = carry_out(lambda: prepared(study), Given(workers))
    return finish(done, study.folder, "reproduce")


@command()
def compare_command(
    problem: str = "media-streaming",
    episodes: int = 100_000,
    seeds: int = 5,
    algorithms: list[str] | None = None,
    preset: Preset | None = None,
    bonus_scale: float | None = None,
    margin_scale: float | None = None,
    tuned_for: int | None = None,
    versus: str | None = None,
    instance_seed: int = 0,
    workers: int | None = None,
    engine: Engine = "cpu",
    precision: Precision = "float64",
    out: Path | None = None,
) -> Answer:
    """Compare the algorithms of Table 1 on one problem, with common random numbers on every seed.

    Writes report.html, compare.png and .pdf, curves.parquet and summary.json, and prints final gap,
    violation, strong and weak regret of both, microseconds per episode, and what each must be told.
    Interrupted, the same command, or `cmdplab resume DIR`, goes on to the last bit.
    """
    asked = dict(locals())
    for name in ("algorithms", "workers", "engine"):
        del asked[name]
    from cmdplab.algorithms import check_settings
    from cmdplab.cli.sweep import Given, carry_out, finish
    from cmdplab.experiments.records.labels import too_few_seeds
    from cmdplab.studies.predefined import Comparison, prepared

    if algorithms is not None:
        asked["algorithms"] = tuple(split(algorithms))
        find_here(asked["algorithms"])
    study = Comparison(**asked)
    with printing_aside():
        rows = study.rows()
        study.versus_label()  # refuses one that is not among them
    check_settings(rows, {"margin_scale": margin_scale, "tuned_for": tuned_for})
    if versus is not None:
        warn(too_few_seeds(len(rows), seeds))
    for row in rows:
        warn(row.tuning_warning(episodes))
    done = carry_out(lambda: prepared(study, engine), Given(workers, engine))
    return finish(done, study.folder, "compare")
