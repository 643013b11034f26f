"""`cmdplab reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cmdplab.cli.options import (
    BonusScale,
    EpisodesOfEach,
    Instance,
    InstanceSeed,
    Json,
    Preset,
    PresetOption,
    SeedsOfEach,
    Workers,
    option,
)


def reproduce_command(
    preset: PresetOption = Preset.released,
    episodes: EpisodesOfEach = 300_000,
    seeds: SeedsOfEach = 5,
    instance: Annotated[
        Instance | None, option("Default: published for --preset released, random for printed.")
    ] = None,
    instance_seed: InstanceSeed = 0,
    bonus_scale: BonusScale = 1e-3,
    algorithm: Annotated[
        list[str] | None, option("Only this one (repeat for more); default: all five.")
    ] = None,
    workers: Workers = None,
    out: Annotated[Path, option("Where the results go.")] = Path("runs/figure1"),
    as_json: Json = False,
) -> None:
    """Redraw the paper's Figure 1: five algorithms on one CMDP.

    Writes report.html, figure1.png and .pdf, curves.parquet, mistakes.parquet and summary.json, and
    prints a table that says what converged, what oscillates and by how much. Interrupted, the same
    command, or `cmdplab resume DIR`, goes on to the last bit.
    """
    from cmdplab.algorithms import FIGURE_1
    from cmdplab.cli.sweep import Given, carry_out, finish
    from cmdplab.studies.predefined import Reproduction, prepared

    study = Reproduction(
        preset=preset.value,
        problem=_problem(instance, preset),
        instance_seed=instance_seed,
        episodes=episodes,
        seeds=seeds,
        bonus_scale=bonus_scale,
        algorithms=tuple(algorithm or FIGURE_1),
        out=out,
    )
    done = carry_out(lambda: prepared(study), Given(workers))
    finish(done, study.folder, "reproduce", as_json)


def _problem(instance: Instance | None, preset: Preset) -> str:
    """The published CMDP, or a random one with the rewards of the preset."""
    usual = Instance.published if preset is Preset.released else Instance.random
    return "published" if (instance or usual) is Instance.published else f"random-{preset}"
