"""`cmdplab reproduce`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
    console,
    errors,
    print_json,
)


def reproduce_command(
    preset: PresetOption = Preset.released,
    episodes: EpisodesOfEach = 300_000,
    seeds: SeedsOfEach = 5,
    instance: Annotated[
        Instance | None,
        typer.Option(help="Default: published for --preset released, random for printed."),
    ] = None,
    instance_seed: InstanceSeed = 0,
    bonus_scale: BonusScale = 1e-3,
    algorithm: Annotated[
        list[str] | None, typer.Option(help="Only this one (repeat for more); default: all five.")
    ] = None,
    workers: Workers = None,
    out: Annotated[Path, typer.Option(help="Where the results go.")] = Path("runs/figure1"),
    as_json: Json = False,
) -> None:
    """Redraw the paper's Figure 1: five algorithms on one CMDP.

    Writes report.html, figure1.png and .pdf, curves.parquet, mistakes.parquet and summary.json, and
    prints a table that says what converged, what oscillates and by how much.
    """
    from cmdplab.algorithms import FIGURE_1
    from cmdplab.cli.tables import print_runs
    from cmdplab.progress import shown
    from cmdplab.reproduce import Reproduction, reproduce

    settings = Reproduction(
        preset=preset.value,
        instance=_instance(instance, preset),
        instance_seed=instance_seed,
        episodes=episodes,
        seeds=seeds,
        bonus_scale=bonus_scale,
        algorithms=tuple(algorithm or FIGURE_1),
        out=out,
    )
    with shown(settings.jobs(), episodes, errors()) as progress:
        runs, summary = reproduce(settings, progress, workers)
    if as_json:
        print_json("reproduce", summary)
        return
    over = f"medians over {seeds} seeds" if seeds > 1 else "one seed"
    print_runs(runs, settings.problem().horizon, f"{summary['instance']}, {preset.value}: {over}")
    console().print(
        f"open {out}/report.html; figure, curves and summary are there too", highlight=False
    )


def _instance(instance: Instance | None, preset: Preset) -> str:
    if instance is not None:
        return instance.value
    return "published" if preset is Preset.released else "random"
