"""`cmdplab reproduce` and `cmdplab run`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.algorithms.primal_dual import PrimalDual
    from cmdplab.problem import CMDP
    from cmdplab.running import Run
    from cmdplab.solvers import Solution


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
    over = f"medians over {seeds} seeds" if seeds > 1 else "one seed"
    _print_runs(runs, f"{summary['instance']}, preset {preset.value}: {over}")
    console().print(f"figure, curves and summary are in {out}/", highlight=False)


def _instance(instance: Instance | None, preset: Preset) -> str:
    if instance is not None:
        return instance.value
    return "published" if preset is Preset.released else "random"


def _print_runs(runs: list[Run], title: str) -> None:
    import numpy as np

    from cmdplab.presenting import grid, number
    from cmdplab.verdict import common_verdict

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
        words = common_verdict([run.curves for run in mine], horizon)
        rows.append([name, words, *cells, number(middle("strong_regret"), 0), number(speed, 1)])
    grid(console(), title, header, rows, left=2)
    console().print(
        "gap and violation of the last episode; std of the gap over the last 10,000; "
        "regret+: sum of positive gaps; us per episode, measures included",
        style="dim",
        highlight=False,
    )
    doubtful = {run.algorithm.name: run.algorithm.unverified for run in runs}
    for name, what in doubtful.items():
        if what:
            console().print(f"{name}: constants [unverified]: {what}", highlight=False)


def run_command(
    problem: ProblemArgument = "published",
    algorithm: Annotated[str, typer.Option(help="See `cmdplab list algorithms`.")] = "UOpt-RPGPD",
    preset: PresetOption = Preset.released,
    episodes: Annotated[
        str, typer.Option(help="How many episodes, or `unlimited`: until stopped.")
    ] = "100000",
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
        Path | None, typer.Option(help="Keep a record there that can be resumed.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Let one algorithm learn one problem, measuring every episode exactly.

    With --out the run leaves manifest, curves and checkpoints, and survives being stopped: the same
    command, or `cmdplab resume DIR`, goes on to the last bit.
    """
    from dataclasses import replace

    from cmdplab import algorithms, environments, running
    from cmdplab.solvers import solve_feasible

    row = replace(algorithms.algorithm(algorithm, preset.value), bonus_scale=bonus_scale)
    row = row.with_exponents(alpha_eta, alpha_tau)
    if (alpha_eta, alpha_tau) != (None, None) and row.outside_theorem():
        errors().print(f"warning: {row.outside_theorem()}", highlight=False, soft_wrap=True)
    number = _episodes(episodes)
    running.check_counts(1 if number is None else number, seed)
    cmdp = environments.find(problem, instance_seed)
    solution = solve_feasible(cmdp)
    if out is not None:
        if engine is not Engine.cpu:
            raise InputError("--out keeps records of the cpu engine only")
        chosen = {"bonus_scale": bonus_scale, "alpha_eta": alpha_eta, "alpha_tau": alpha_tau}
        _recorded(out, cmdp, row, number, seed, chosen, as_json)
        return
    if number is None:
        raise InputError("an unlimited run needs --out, where it keeps its checkpoints")
    _in_memory(cmdp, row, number, seed, engine.value, solution, as_json)


def _episodes(text: str) -> int | None:
    if text == "unlimited":
        return None
    try:
        return int(text.replace("_", "").replace(",", ""))
    except ValueError:
        raise InputError(f"episodes is {text!r}, neither a number nor `unlimited`") from None


def _in_memory(
    cmdp: CMDP,
    row: PrimalDual,
    episodes: int,
    seed: int,
    engine: str,
    solution: Solution,
    as_json: bool,
) -> None:
    from cmdplab import running
    from cmdplab.progress import shown

    with shown([running.Job(row, seed)], episodes, errors()) as progress:
        done = running.run(
            cmdp, row, episodes, seed, engine=engine, solution=solution, progress=progress
        )
    if as_json:
        head = {"problem": cmdp.name, "algorithm": row.name, "preset": row.preset, "seed": seed}
        tail = {"multiplier": done.state.multiplier, "us_per_episode": done.us_per_episode}
        print_json(head | done.summary._asdict() | tail)
    else:
        _print_runs([done], f"{cmdp.name}, preset {row.preset}, seed {seed}, {episodes:,} episodes")


def _recorded(
    out: Path,
    cmdp: CMDP,
    row: PrimalDual,
    episodes: int | None,
    seed: int,
    chosen: dict[str, Any],
    as_json: bool,
) -> None:
    from cmdplab.cli.sweeping import finish
    from cmdplab.experiment import RunSettings, fingerprint
    from cmdplab.progress import sweep_shown
    from cmdplab.sweeping import do_missing, single

    settings = RunSettings(
        problem=cmdp.name,
        fingerprint=fingerprint(cmdp),
        algorithm=row.name,
        preset=row.preset,  # type: ignore[arg-type]
        episodes=episodes,
        seed=seed,
        **chosen,
    ).complete()
    work = single(out, settings, cmdp)
    with sweep_shown(1, episodes, errors()) as tell:
        found = do_missing([work], 1, tell)
    finish(found, out, as_json)
