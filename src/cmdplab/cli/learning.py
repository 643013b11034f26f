"""`cmdplab reproduce` and `cmdplab run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cmdplab.cli.options import (
    BonusScale,
    Engine,
    Instance,
    InstanceSeed,
    Json,
    Preset,
    PresetOption,
    ProblemArgument,
    Workers,
    console,
    errors,
    print_json,
)

if TYPE_CHECKING:
    from cmdplab.running import Run


def reproduce_command(
    preset: PresetOption = Preset.released,
    episodes: Annotated[int, typer.Option(help="Episodes of each run.")] = 300_000,
    seeds: Annotated[int, typer.Option(help="Runs of each algorithm: seeds 0, 1, ...")] = 5,
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

    Writes figure1.png, figure1.pdf, curves.parquet and summary.json, and prints a table that says
    what converged, what oscillates and by how much.
    """
    from cmdplab.algorithms import FIGURE_1
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
        print_json(summary)
        return
    _print_runs(runs, f"{summary['instance']}, preset {preset.value}: medians over {seeds} seeds")
    console().print(f"figure, curves and summary are in {out}/", highlight=False)


def _instance(instance: Instance | None, preset: Preset) -> str:
    if instance is not None:
        return instance.value
    return "published" if preset is Preset.released else "random"


def _print_runs(runs: list[Run], title: str) -> None:
    import numpy as np

    from cmdplab.presenting import grid, number
    from cmdplab.verdict import verdict

    header = ["algorithm", "verdict", "gap", "viol.", "std", "regret+", "us"]
    rows = []
    for name in dict.fromkeys(run.algorithm.name for run in runs):
        mine = [run for run in runs if run.algorithm.name == name]
        horizon = mine[0].state.policy.shape[0]

        def middle(field: str, mine: list[Run] = mine) -> float | None:
            values = [getattr(run.summary, field) for run in mine]
            return None if values[0] is None else float(np.median(values))

        speed = float(np.median([run.us_per_episode for run in mine]))
        cells = [number(middle(f)) for f in ("final_gap", "final_violation", "tail_std")]
        words = verdict(mine[0].curves, horizon)
        rows.append([name, words, *cells, number(middle("strong_regret"), 0), number(speed, 1)])
    grid(console(), title, header, rows, left=2)
    console().print(
        "gap and violation of the last episode; std of the gap over the last 10,000; "
        "regret+: sum of positive gaps; us per episode, measures included; verdict on seed 0",
        style="dim",
        highlight=False,
    )


def run_command(
    problem: ProblemArgument = "published",
    algorithm: Annotated[str, typer.Option(help="See `cmdplab list algorithms`.")] = "UOpt-RPGPD",
    preset: PresetOption = Preset.released,
    episodes: Annotated[int, typer.Option(help="How many episodes.")] = 100_000,
    seed: Annotated[int, typer.Option(help="Seed of the roll-outs.")] = 0,
    instance_seed: InstanceSeed = 0,
    bonus_scale: BonusScale = 1e-3,
    alpha_eta: Annotated[
        float | None, typer.Option(help="Exponent of the step size, in (0, 1].")
    ] = None,
    alpha_tau: Annotated[
        float | None, typer.Option(help="Exponent of the temperature, in (0, 1].")
    ] = None,
    engine: Annotated[Engine, typer.Option(help="Compiled, or plain Python.")] = Engine.cpu,
    out: Annotated[
        Path | None, typer.Option(help="Write curves.parquet and summary.json there.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Let one algorithm learn one problem, measuring every episode exactly."""
    from dataclasses import replace

    from cmdplab import algorithms, environments, running
    from cmdplab.files import writable_folder, written_whole
    from cmdplab.progress import shown
    from cmdplab.solvers import solve_feasible

    row = replace(algorithms.algorithm(algorithm, preset.value), bonus_scale=bonus_scale)
    row = row.with_exponents(alpha_eta, alpha_tau)
    if (alpha_eta, alpha_tau) != (None, None) and row.outside_theorem():
        errors().print(f"warning: {row.outside_theorem()}", highlight=False, soft_wrap=True)
    running.check_counts(episodes, seed)
    cmdp = environments.find(problem, instance_seed)
    solution = solve_feasible(cmdp)
    if out is not None:
        writable_folder(out)
    with shown([running.Job(row, seed)], episodes, errors()) as progress:
        done = running.run(
            cmdp,
            row,
            episodes,
            seed,
            engine=engine.value,
            solution=solution,
            progress=progress,
        )
    result = {
        "problem": cmdp.name,
        "algorithm": row.name,
        "preset": row.preset,
        "seed": seed,
        **done.summary._asdict(),
        "multiplier": done.state.multiplier,
        "us_per_episode": done.us_per_episode,
    }
    if out is not None:
        from cmdplab.presenting import to_json
        from cmdplab.records import write_curves

        write_curves([done], out / "curves.parquet")
        with written_whole(out / "summary.json") as temporary:
            temporary.write_text(to_json(result) + "\n")
    if as_json:
        print_json(result)
    else:
        _print_runs([done], f"{cmdp.name}, preset {row.preset}, seed {seed}, {episodes:,} episodes")
