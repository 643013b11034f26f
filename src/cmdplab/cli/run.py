"""`cmdplab run`: one algorithm learns one problem."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from cmdplab.cli.options import (
    Finite,
    Precision,
    Preset,
    asked_with_horizon,
    chosen_settings,
    command,
    find_here,
)
from cmdplab.cli.output import Answer, errors, print_line, printing_aside, say, warn
from cmdplab.errors import InputError
from cmdplab.settings import Settings, without_none

if TYPE_CHECKING:
    from cmdplab.algorithms.row import Row
    from cmdplab.engines.choose import Wanted
    from cmdplab.experiments.play import Entry


RunEngine = Literal["auto", "cpu", "gpu", "host"]
Rewards = Literal["known", "bernoulli"]


@command(asked_with_horizon, chosen_settings, problem="published")
def run_command(
    cmdp: Finite,
    settings: Settings,
    algorithm: str = "UOpt-RPGPD",
    preset: Preset | None = None,
    episodes: str = "100000",
    seed: int = 0,
    baseline: Path | None = None,
    rewards: Rewards = "known",
    engine: RunEngine = "cpu",
    precision: Precision = "float64",
    out: Path | None = None,
) -> Answer:
    """Let one algorithm learn one problem, and measure every episode exactly.

    With --out the run leaves manifest, curves and checkpoints, and survives a stop: the same
    command, or `cmdplab resume DIR`, goes on to the last bit.
    """
    from cmdplab import algorithms
    from cmdplab.engines.choose import Wanted
    from cmdplab.experiments.play import Entry, check_counts

    find_here([algorithm])
    with printing_aside():
        plain = algorithms.as_row(algorithm, preset)
    algorithms.check_settings([plain], settings)
    row = plain.with_settings(**settings)
    if baseline is not None:
        _check_baseline(row, settings)
    if without_none(settings).keys() & {"alpha_eta", "alpha_tau"}:
        warn(row.outside_theorem())
    number = _episodes(episodes)
    check_counts(1 if number is None else number, seed)
    safe = None if baseline is None else _policy(baseline)
    entry = Entry.of(cmdp, row, seed, None, safe, rewards)
    warn(row.tuning_warning(number))
    place = _place(engine, Wanted(cmdp, row, entry.task, number or math.inf, precision))
    if out is None:
        if number is None:
            raise InputError("an unlimited run needs --out, where it keeps its checkpoints")
        return _in_memory(entry, number, place, precision)
    if safe is not None:
        raise InputError("--out keeps records of runs from the default baseline only")
    if engine == "host":
        raise InputError("--out keeps records of the engines cpu and gpu only")
    return _kept(entry, number, place, precision, rewards, out)


def _place(engine: str, run: Wanted) -> str:
    """Return the engine for one run; print the choice of `auto`."""
    from cmdplab.checks import check_single
    from cmdplab.engines.choose import choose

    if engine in ("cpu", "host"):
        check_single(run.precision)
        return engine
    choice = choose(engine, [run], os.cpu_count() or 1)
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


def _in_memory(entry: Entry, episodes: int, engine: str, precision: str) -> Answer:
    from cmdplab.cli.tables import print_runs
    from cmdplab.experiments.play import Job
    from cmdplab.experiments.progress import shown
    from cmdplab.experiments.run import play
    from cmdplab.studies.conclusions import safety_of

    cmdp, row, seed = entry.problem, entry.algorithm, entry.seed
    with printing_aside(), shown([Job(row, seed)], episodes, errors()) as on_progress:
        (done,) = play([entry], episodes, engine, precision, on_progress=on_progress)
    found: dict[str, Any] = {"folder": None, "status": "done", "of": episodes, "error": ""}
    found |= {"notes": [], **done.summary._asdict(), "us_per_episode": done.us_per_episode}
    found |= {"engine": engine, "precision": precision, "safety": safety_of([done])}
    title = f"{cmdp.name}, preset {row.preset}, seed {seed}, {episodes:,} episodes"
    value = _about(entry) | found | _state(row, done.state)
    return Answer("run", value, lambda: print_runs([done], title))


def _kept(
    entry: Entry, episodes: int | None, engine: str, precision: str, rewards: str, out: Path
) -> Answer:
    """Play a run in a folder; its JSON is that of a run in memory."""
    from cmdplab.cli.sweep import Given, carry_out, left, print_status
    from cmdplab.experiments import checkpoint, manifest
    from cmdplab.experiments.executors.worker import run_here
    from cmdplab.experiments.folder import alone_in, works_of
    from cmdplab.experiments.play import saved_state
    from cmdplab.experiments.progress import sweep_shown
    from cmdplab.experiments.records.load import recall
    from cmdplab.experiments.run_settings import RunSettings
    from cmdplab.measures.measures import Summary
    from cmdplab.studies.conclusions import safety_of

    row, seed = entry.algorithm, entry.seed
    kept = RunSettings.of(entry.problem, row, episodes, seed, rewards=rewards, precision=precision)
    if engine == "gpu":
        (status,) = carry_out(lambda: [alone_in(out, kept, entry)], Given(1, engine))
    else:
        work = alone_in(out, kept, entry)
        with printing_aside(), sweep_shown([work], errors()) as on_event:
            status = run_here(work, on_event)
    (work,) = works_of(out)
    record = manifest.read_if_good(work.folder)
    snapshot = checkpoint.find(work.folder).snapshot
    done = status.status == "done"
    found = dict.fromkeys(Summary._fields) | (record.summary if record is not None else {})
    found |= {"folder": str(work.folder), "episodes": status.episodes, "engine": engine}
    found |= {
        name: getattr(status, name) for name in ("status", "of", "error", "notes", "precision")
    }
    found |= {"us_per_episode": None if not status.rate else 1e6 / status.rate}
    found |= {"safety": safety_of([recall(work)]) if done else None}
    state = None if snapshot is None else saved_state(row, snapshot)

    def show() -> None:
        print_status([status], out)
        if done:
            print_line(f"see what they show: cmdplab report {out}")

    value = _about(entry) | found | _state(row, state)
    return Answer("run", value, show, *left([status], out))


def _about(entry: Entry) -> dict[str, Any]:
    row = entry.algorithm
    head = {"problem": entry.problem.name, "algorithm": row.name, "preset": row.preset}
    settings = {name: value for name, value in row.settings().items() if value is not None}
    claims = {"needs": list(row.needs), "heuristic": row.heuristic, "unverified": row.unverified}
    return head | {"seed": entry.seed, "settings": settings} | claims


def _state(row: Row, state: Any) -> dict[str, Any]:
    """Return the part of a learner's state for JSON; None stands for an unreadable state."""
    from cmdplab.algorithms.row import SAFE_POLICY

    played = state.baseline_episodes if state is not None and SAFE_POLICY in row.needs else None
    multiplier = None if state is None else state.multiplier
    return {"multiplier": multiplier, "baseline_episodes": played}
