"""Frequencies of the failure events of Appendix H.1, over runs at the theory's bonus scale, 1.

The events say "in some episode". They must be evaluated after every episode, which no record holds,
so that the runs are played here. The file keeps the first episode of each event for each seed. A
second call continues behind the last seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.task import Task
from cmdplab.checks import whole_number
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import session
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.errors import InputError
from cmdplab.experiments.experiment import first_complaint
from cmdplab.experiments.play import check_counts
from cmdplab.experiments.run_settings import fingerprint
from cmdplab.files import read_json, sealed, unsealed
from cmdplab.files.write import to_json, writable_folder, write_text
from cmdplab.formats import find
from cmdplab.solvers import solve_feasible
from cmdplab.statistics import Frequency, binomial_interval
from cmdplab.theory.events import Failures, happened, shares, union_shares

NAME = "failure_events.json"
SMALL = "small"  # the name of a random CMDP with two states, two actions and two steps
SEEDS, EPISODES = 500, 600
SAVE_EVERY = 20  # runs
MOST_COUNTS = 1 << 22  # doubles checked together: 32 MiB

OnProgress = Callable[[int, int], None]  # runs done, runs in all
Settings = dict[str, Any]  # all that the events of a seed depend on
First = tuple[int | None, int | None, int | None]  # episodes, in the order of `Failures`


class EventTally(NamedTuple):
    """One event over all runs, beside the probability that the paper allows it."""

    event: str
    frequency: Frequency
    lemma: float  # the share of delta that Lemma H.1 prints
    against_lemma: str
    union_bound: float  # the share that a union bound gives
    against_union_bound: str


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    settings: Settings
    runs: int
    events: list[dict[str, Any]]
    first: list[First]


def problem_of(what: str, seed: int = 0) -> CMDP:
    """Return an environment by name, a .npz file, or `small`; `seed` chooses a random instance."""
    if what == SMALL:
        whole_number("the instance seed", seed)
        return replace(random_problem(2, 2, 2, 1, seed, 1.0), name=f"{SMALL} (seed {seed})")
    return find(what, seed)


def failure_events(
    problem: CMDP,
    folder: Path,
    *,
    seeds: int = SEEDS,
    episodes: int = EPISODES,
    delta: float = 0.1,
    on_progress: OnProgress = lambda done, of: None,
) -> list[EventTally]:
    """Play UOpt-RPGPD as printed on the seeds 0, 1, ..., and count the events; write the file.

    Runs in the folder's file are not played again. A file with other settings is refused.
    """
    if seeds < 1:
        raise InputError(f"seeds is {seeds}, not a positive number")
    check_counts(episodes, 0)
    row = replace(algorithm("UOpt-RPGPD", "printed"), bonus_scale=1.0, delta=delta)
    task = task_for(row, problem, solve_feasible(problem))
    settings = {
        "problem": problem.name,
        "fingerprint": fingerprint(problem),
        "states": problem.states,
        "algorithm": row.name,
        "preset": row.preset,
        "bonus_scale": row.bonus_scale,
        "delta": row.delta,
        "episodes": episodes,
    }
    path = writable_folder(folder) / NAME
    first = _known(path, settings, seeds)
    try:
        for seed in range(len(first), seeds):
            on_progress(seed, seeds)
            first.append(first_failures(problem, row, task, seed, episodes))
            if len(first) % SAVE_EVERY == 0:
                _write(path, settings, first)
    finally:
        if first:
            _write(path, settings, first)
    on_progress(seeds, seeds)
    return tallies(first, settings)


def first_failures(problem: CMDP, row: Row, task: Task, seed: int, episodes: int) -> First:
    """Return the first episode after which each event had happened; None if it never happened."""
    run = session("cpu", problem, row, task, seed)
    size = problem.horizon * problem.states**2 * problem.actions
    chunk = min(episodes, max(1, MOST_COUNTS // size))
    occupancy = np.zeros((problem.horizon, problem.states, problem.actions))
    seen = np.zeros((0, len(Failures._fields)), bool)
    while len(seen) < episodes:
        counts, occupancies = [], []
        for _ in range(min(chunk, episodes - len(seen))):
            occupancy = occupancy + exact.occupancy(problem, run.state().policy)
            run.play(1)
            counts.append(run.state().counts)
            occupancies.append(occupancy)
        asked = np.array(counts), problem.table, np.array(occupancies), row.delta
        seen = np.vstack([seen, happened(*asked)])
    kernel, visits, l1 = (int(np.argmax(c)) + 1 if c.any() else None for c in seen.T)
    return kernel, visits, l1


def tallies(first: Sequence[First], settings: Settings) -> list[EventTally]:
    """Return each event and the union of all three, with exact binomial intervals of level 0.95."""
    table = np.array([[episode is not None for episode in run] for run in first])
    hits = [*table.sum(axis=0), table.any(axis=1).sum()]
    delta = settings["delta"]
    printed = [*shares(settings["states"], delta), delta]
    union = [*union_shares(delta), delta]
    tallied = []
    for event, n, a, b in zip((*Failures._fields, "any"), hits, printed, union, strict=True):
        frequency = binomial_interval(int(n), len(first))
        answers = _against(frequency, a), _against(frequency, b)
        tallied.append(EventTally(event, frequency, a, answers[0], b, answers[1]))
    return tallied


def _against(frequency: Frequency, share: float) -> str:
    """Return the side of the share on which the interval lies, or `undecided`."""
    if frequency.high <= share:
        return "below"
    return "above" if frequency.low > share else "undecided"


def _known(path: Path, settings: Settings, seeds: int) -> list[First]:
    if not path.exists():
        return []
    values = unsealed(read_json(path), path, NAME)
    try:
        record = _Record.model_validate(values)
    except ValidationError as error:
        raise InputError(f"{path} holds no failure events: {first_complaint(error)}") from None
    for what in settings | record.settings:
        theirs, ours = record.settings.get(what), settings.get(what)
        if theirs != ours:
            raise InputError(
                f"{path} holds runs with {what} {theirs}, not {ours}: choose another --out"
            )
    if len(record.first) > seeds:
        raise InputError(
            f"{path} holds {len(record.first)} runs, more than {seeds}: choose another --out"
        )
    if record.runs != len(record.first):
        raise InputError(f"{path} says {record.runs} runs and holds {len(record.first)}")
    for seed, run in enumerate(record.first):
        for event, episode in zip(Failures._fields, run, strict=True):
            if episode is not None and not 1 <= episode <= settings["episodes"]:
                raise InputError(
                    f"{path} holds an impossible run: seed {seed} has the event {event} in episode "
                    f"{episode} of {settings['episodes']}"
                )
    return list(record.first)


def _write(path: Path, settings: Settings, first: Sequence[First]) -> None:
    content = {
        "settings": settings,
        "runs": len(first),
        "events": tallies(first, settings),
        "first": first,
    }
    write_text(path, sealed(to_json(content)) + "\n")
