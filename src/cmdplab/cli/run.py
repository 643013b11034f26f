"""`cmdplab run`: one algorithm learns one problem."""

from __future__ import annotations

import math
import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cmdplab.cli.options import (
    AlgorithmOption,
    AnyPreset,
    Finite,
    Json,
    Precision,
    PrecisionOption,
    asked_with_horizon,
    chosen_settings,
    count,
    find_here,
    given,
    option,
)
from cmdplab.cli.output import errors, print_json, print_line, printing_aside, say, warn
from cmdplab.errors import InputError
from cmdplab.settings import Settings, without_none

if TYPE_CHECKING:
    from cmdplab.algorithms.row import Row
    from cmdplab.cmdp.problem import CMDP
    from cmdplab.engines.choose import Wanted
    from cmdplab.experiments.play import Entry
    from cmdplab.experiments.status import RunStatus
    from cmdplab.experiments.work import Work


RunEngine = StrEnum("RunEngine", ("auto", "cpu", "gpu", "host"))
"""Where one run is played."""


class Rewards(StrEnum):
    """The learner's knowledge of rewards; a class, so that its values have their type."""

    known = "known"
    bernoulli = "bernoulli"


@given(asked_with_horizon, problem="published")
@given(chosen_settings)
def run_command(
    settings: Settings,
    cmdp: Finite,
    algorithm: AlgorithmOption = "UOpt-RPGPD",
    preset: AnyPreset = None,
    episodes: Annotated[
        str, option("How many, such as 100000 or 1e5, or `unlimited`: until stopped.")
    ] = "100000",
    seed: Annotated[int, count("Seed of the roll-outs.")] = 0,
    baseline: Annotated[
        Path | None, option("A .npy with the safe policy [H, X, A] to begin with.")
    ] = None,
    rewards: Annotated[
        Rewards, option("Told to the learner, or seen as samples of 0 and 1.")
    ] = Rewards.known,
    engine: Annotated[
        RunEngine,
        option("The cores, plain Python (host), a GPU, or `auto`: for one run the cores."),
    ] = RunEngine.cpu,
    precision: PrecisionOption = Precision.float64,
    out: Annotated[Path | None, option("Keep a record there that can be resumed.")] = None,
    as_json: Json = False,
) -> None:
    """Let one algorithm learn one problem, and measure every episode exactly.

    With --out the run leaves manifest, curves and checkpoints, and survives a stop: the same
    command, or `cmdplab resume DIR`, goes on to the last bit.
    """
    from cmdplab import algorithms
    from cmdplab.cli.sweep import SEE, Given, carry_out, leave, print_status
    from cmdplab.engines.choose import Wanted
    from cmdplab.experiments.folder import alone_in, works_of
    from cmdplab.experiments.play import Entry, check_counts
    from cmdplab.experiments.run_settings import RunSettings

    find_here([algorithm])
    with printing_aside():
        plain = algorithms.as_row(algorithm, preset.value if preset else None)
    algorithms.check_settings([plain], settings)
    row = plain.with_settings(**settings)
    if baseline is not None:
        _check_baseline(row, settings)
    if without_none(settings).keys() & {"alpha_eta", "alpha_tau"}:
        warn(row.outside_theorem())
    number = _episodes(episodes)
    check_counts(1 if number is None else number, seed)
    safe = None if baseline is None else _policy(baseline)
    entry = Entry.of(cmdp, row, seed, None, safe, rewards.value)
    warn(row.tuning_warning(number))
    place = _place(engine, Wanted(cmdp, row, entry.task, number or math.inf, precision.value))
    if out is not None:
        if safe is not None:
            raise InputError("--out keeps records of runs from the default baseline only")
        if engine is RunEngine.host:
            raise InputError("--out keeps records of the engines cpu and gpu only")
        kept = RunSettings.of(
            cmdp, row, number, seed, rewards=rewards.value, precision=precision.value
        )
        if place == "gpu":
            done = carry_out(lambda: [alone_in(out, kept, entry)], Given(1, place))
        else:
            done = [_here(alone_in(out, kept, entry))]
        if as_json:
            about = _about(cmdp, row, seed) | {"engine": place}
            print_json("run", about | _from_record(works_of(out)[0], done[0], row))
        else:
            print_status(done, out)
        leave(done, out)
        if not as_json:
            print_line(SEE.format(out))
        return
    if number is None:
        raise InputError("an unlimited run needs --out, where it keeps its checkpoints")
    _in_memory(entry, number, place, precision.value, as_json)


def _place(engine: RunEngine, run: Wanted) -> str:
    """Return the engine for one run; print the choice of `auto`."""
    from cmdplab.checks import check_single
    from cmdplab.engines.choose import choose

    if engine in (RunEngine.cpu, RunEngine.host):
        check_single(run.precision)
        return engine.value
    choice = choose(engine.value, [run], os.cpu_count() or 1)
    say(choice.sentence)
    return "gpu" if choice.on_gpu[0] else "cpu"


def _episodes(text: str) -> int | None:
    if text == "unlimited":
        return None
    from cmdplab.checks import written_number

    try:
        return written_number(text)
    except ValueError:
        raise InputError(f"episodes is {text!r}, neither a whole number nor `unlimited`") from None


def _check_baseline(row: Row, settings: Settings) -> None:
    """Refuse a safe policy that nobody would play."""
    from cmdplab.algorithms import ALGORITHMS
    from cmdplab.algorithms.row import SAFE_POLICY

    if SAFE_POLICY not in row.needs:
        names = dict.fromkeys(r.name for r in ALGORITHMS.values() if SAFE_POLICY in r.needs)
        raise InputError(f"{row.name} begins without --baseline: {', '.join(names)} have one")
    if settings.get("tightening") is not None:
        raise InputError("--tightening makes the default baseline, which --baseline replaces")


def _policy(path: Path) -> Any:
    from cmdplab.files import read_npy

    if path.suffix != ".npy":
        raise InputError(f"{path} cannot be read as a policy: save one array as .npy")
    return read_npy(path, "a policy")


def _here(work: Work) -> RunStatus:
    from cmdplab.experiments.executors.worker import run_here
    from cmdplab.experiments.progress import sweep_shown

    with printing_aside(), sweep_shown([work], errors()) as on_event:
        return run_here(work, on_event)


def _in_memory(entry: Entry, episodes: int, engine: str, precision: str, as_json: bool) -> None:
    from cmdplab.cli.tables import print_runs
    from cmdplab.experiments.play import Job
    from cmdplab.experiments.progress import shown
    from cmdplab.experiments.run import play
    from cmdplab.studies.conclusions import safety_of

    cmdp, row, seed = entry.problem, entry.algorithm, entry.seed
    with printing_aside(), shown([Job(row, seed)], episodes, errors()) as on_progress:
        (done,) = play([entry], episodes, engine, precision, on_progress=on_progress)
    if as_json:
        found: dict[str, Any] = {"folder": None, "status": "done", "of": episodes}
        found |= {"error": "", "notes": []} | done.summary._asdict()
        found |= {"us_per_episode": done.us_per_episode}
        found |= {"engine": engine, "precision": precision}
        found["safety"] = safety_of([done])
        print_json("run", _about(cmdp, row, seed) | found | _state(row, done.state))
    else:
        title = f"{cmdp.name}, preset {row.preset}, seed {seed}, {episodes:,} episodes"
        print_runs([done], cmdp.horizon, title)


def _about(cmdp: CMDP, row: Row, seed: int) -> dict[str, Any]:
    """Return the settings and claims of a run, which are known before it begins."""
    head = {"problem": cmdp.name, "algorithm": row.name, "preset": row.preset, "seed": seed}
    settings = {name: value for name, value in row.settings().items() if value is not None}
    claims = {"heuristic": row.heuristic, "unverified": row.unverified}
    return head | {"settings": settings, "needs": list(row.needs)} | claims


def _state(row: Row, state: Any) -> dict[str, Any]:
    """Return the part of a learner's state for JSON; None stands for an unreadable state."""
    from cmdplab.algorithms.row import SAFE_POLICY

    played = state.baseline_episodes if state is not None and SAFE_POLICY in row.needs else None
    multiplier = None if state is None else state.multiplier
    return {"multiplier": multiplier, "baseline_episodes": played}


def _from_record(work: Work, status: RunStatus, row: Row) -> dict[str, Any]:
    """Return the JSON of a recorded run, equal to that of a run in memory."""
    from cmdplab.experiments import checkpoint, manifest
    from cmdplab.experiments.play import saved_state
    from cmdplab.experiments.records.load import recall
    from cmdplab.measures.measures import Summary
    from cmdplab.studies.conclusions import safety_of

    record = manifest.read_if_good(work.folder)
    summary = dict.fromkeys(Summary._fields) | (record.summary if record is not None else {})
    snapshot = checkpoint.find(work.folder).snapshot
    state = None if snapshot is None else saved_state(row, snapshot)
    found: dict[str, Any] = {"folder": str(work.folder), "status": status.status, "of": status.of}
    found |= {"error": status.error, "notes": status.notes, "precision": status.precision}
    found |= {"us_per_episode": None if not status.rate else 1e6 / status.rate}
    done = status.status == "done"
    found["safety"] = safety_of([recall(work)]) if done else None
    return summary | {"episodes": status.episodes} | found | _state(row, state)
