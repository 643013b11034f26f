"""`cmdplab run`."""

from __future__ import annotations

import math
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmdplab.cli.options import (
    AnyPreset,
    Epsilon,
    InstanceSeed,
    Json,
    OwnBonusScale,
    OwnMarginScale,
    Precision,
    PrecisionOption,
    ProblemArgument,
    Replanning,
    Tightening,
    TunedFor,
    errors,
    print_json,
    say,
    warn,
)
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.algorithms.row import Row
    from cmdplab.engines.choosing import Wanted
    from cmdplab.problem import CMDP


class RunEngine(StrEnum):
    """Where one run is played."""

    auto = "auto"
    cpu = "cpu"
    gpu = "gpu"
    host = "host"


class Rewards(StrEnum):
    """What a learner learns of rewards."""

    known = "known"
    bernoulli = "bernoulli"


def run_command(
    problem: ProblemArgument = "published",
    algorithm: Annotated[str, typer.Option(help="See `cmdplab list algorithms`.")] = "UOpt-RPGPD",
    preset: AnyPreset = None,
    episodes: Annotated[
        str, typer.Option(help="How many episodes, or `unlimited`: until stopped.")
    ] = "100000",
    seed: Annotated[int, typer.Option(help="Seed of the roll-outs.")] = 0,
    instance_seed: InstanceSeed = 0,
    bonus_scale: OwnBonusScale = None,
    margin_scale: OwnMarginScale = None,
    tuned_for: TunedFor = None,
    tightening: Tightening = None,
    epsilon: Epsilon = None,
    replan: Replanning = None,
    alpha_eta: Annotated[
        float | None, typer.Option(help="Exponent of the step size, in (0, 1].")
    ] = None,
    alpha_tau: Annotated[
        float | None, typer.Option(help="Exponent of the temperature, in (0, 1].")
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option(help="A .npy with the safe policy [H, X, A] to begin with.")
    ] = None,
    rewards: Annotated[
        Rewards, typer.Option(help="Told to the learner, or seen as samples of 0 and 1.")
    ] = Rewards.known,
    engine: Annotated[
        RunEngine,
        typer.Option(
            help="The cores, plain Python (host), a GPU, or `auto`: for one run the cores."
        ),
    ] = RunEngine.cpu,
    precision: PrecisionOption = Precision.float64,
    out: Annotated[
        Path | None, typer.Option(help="Keep a record there that can be resumed.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Let one algorithm learn one problem, measuring every episode exactly.

    With --out the run leaves manifest, curves and checkpoints, and survives being stopped: the same
    command, or `cmdplab resume DIR`, goes on to the last bit.
    """
    from cmdplab import algorithms, running
    from cmdplab.baselines import task_for
    from cmdplab.engines.choosing import Wanted
    from cmdplab.experiment import observed, single
    from cmdplab.formats import find
    from cmdplab.solvers import solve_feasible

    chosen = {
        "bonus_scale": bonus_scale,
        "margin_scale": margin_scale,
        "tuned_for": tuned_for,
        "tightening": tightening,
        "epsilon": epsilon,
        "replan": replan,
        "alpha_eta": alpha_eta,
        "alpha_tau": alpha_tau,
    }
    row = algorithms.algorithm(algorithm, preset.value if preset else None).overridden(chosen)
    if (alpha_eta, alpha_tau) != (None, None):
        warn(row.outside_theorem())
    number = _episodes(episodes)
    running.check_counts(1 if number is None else number, seed)
    cmdp = find(problem, instance_seed)
    solution = solve_feasible(cmdp)
    safe = None if baseline is None else _policy(baseline)
    task = task_for(row, cmdp, solution, safe, rewards.value)
    warn(row.beyond(number))
    place = _place(engine, Wanted(cmdp, row, task, number or math.inf, precision.value))
    if out is not None:
        if safe is not None:
            raise InputError("--out keeps records of runs from the default baseline only")
        if engine is RunEngine.host:
            raise InputError("--out keeps records of the engines cpu and gpu only")
        chosen |= {"rewards": observed(rewards.value), "precision": single(precision.value)}
        _recorded(out, cmdp, row, number, seed, chosen, place, as_json)
        return
    if number is None:
        raise InputError("an unlimited run needs --out, where it keeps its checkpoints")
    given: dict[str, Any] = {"engine": place, "precision": precision.value, "solution": solution}
    given |= {"baseline": safe, "rewards": rewards.value}
    _in_memory(cmdp, row, number, seed, given, as_json)


def _place(engine: RunEngine, run: Wanted) -> str:
    """The engine for one run; for `auto` it is said."""
    from cmdplab.engines.choosing import check_single, choose

    if engine is RunEngine.host:
        check_single(run.precision)
        return engine.value
    choice = choose(engine.value, [run], os.cpu_count() or 1)
    say(choice.sentence)
    return "gpu" if choice.on_gpu[0] else "cpu"


def _episodes(text: str) -> int | None:
    if text == "unlimited":
        return None
    try:
        return int(text.replace("_", "").replace(",", ""))
    except ValueError:
        raise InputError(f"episodes is {text!r}, neither a number nor `unlimited`") from None


def _policy(path: Path) -> Any:
    from cmdplab.reading import read_npy

    if path.suffix != ".npy":
        raise InputError(f"{path} cannot be read as a policy: save one array as .npy")
    return read_npy(path, "a policy")


def _in_memory(
    cmdp: CMDP,
    row: Row,
    episodes: int,
    seed: int,
    given: dict[str, Any],
    as_json: bool,
) -> None:
    from cmdplab import running
    from cmdplab.algorithms.row import SAFE_POLICY
    from cmdplab.cli.tables import print_runs
    from cmdplab.progress import shown

    with shown([running.Job(row, seed)], episodes, errors()) as progress:
        done = running.run(cmdp, row, episodes, seed, progress=progress, **given)
    if as_json:
        head = {"problem": cmdp.name, "algorithm": row.name, "preset": row.preset, "seed": seed}
        tail = {"multiplier": done.state.multiplier, "us_per_episode": done.us_per_episode}
        tail |= {"engine": given["engine"], "precision": given["precision"]}
        tail |= {"needs": row.needs, "heuristic": row.heuristic, "unverified": row.unverified}
        if SAFE_POLICY in row.needs:
            tail |= {"baseline_episodes": done.state.baseline_episodes}
        print_json(head | done.summary._asdict() | tail)
    else:
        title = f"{cmdp.name}, preset {row.preset}, seed {seed}, {episodes:,} episodes"
        print_runs([done], cmdp.horizon, title)


def _recorded(
    out: Path,
    cmdp: CMDP,
    row: Row,
    episodes: int | None,
    seed: int,
    chosen: dict[str, Any],
    engine: str,
    as_json: bool,
) -> None:
    from cmdplab.cli.sweeping import finish
    from cmdplab.experiment import RunSettings, fingerprint
    from cmdplab.progress import sweep_shown
    from cmdplab.sweeping import alone_in, do_missing

    settings = RunSettings(
        problem=cmdp.name,
        fingerprint=fingerprint(cmdp),
        algorithm=row.name,
        preset=row.preset,  # type: ignore[arg-type]
        episodes=episodes,
        seed=seed,
        **chosen,
    ).complete()
    work = alone_in(out, settings, cmdp)
    with sweep_shown(1, episodes, errors()) as tell:
        found = do_missing([work], 1, tell, engine=engine)
    finish(found, out, as_json)
