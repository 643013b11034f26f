"""Sweeps: the runs of an experiment in one folder, played by worker processes or an executor.

The folder DIR holds DIR/experiment.json, DIR/problems/FINGERPRINT.npz and DIR/runs/HASH-SEED/ with
manifest.json, curves.parquet, mistakes.parquet, checkpoint.npz. Only missing runs are played.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from cmdplab.checks import check_single
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError, check_installed
from cmdplab.experiments.durable import CHECKPOINT_EVERY
from cmdplab.experiments.executors.local import run_locally
from cmdplab.experiments.executors.worker import Interrupt, signals
from cmdplab.experiments.experiment import Experiment, problems, resolve
from cmdplab.experiments.folder import Folder, Study, add_runs, check_learners, earlier
from cmdplab.experiments.status import Index, RunStatus, with_end
from cmdplab.experiments.work import Event, OnEvent, Work

NOTED_AT_ONCE = 50  # runs that enter the index together

Executor = Callable[[list[Work], OnEvent, Interrupt, float], None]


def sweep(
    experiment: Experiment,
    out: str | Path,
    *,
    base: str | Path = ".",
    workers: int | None = None,
    on_event: OnEvent = lambda event: None,
    every: float = CHECKPOINT_EVERY,
    engine: str = "cpu",
    on_message: Callable[[str], None] = lambda sentence: None,
    executor: Executor | None = None,
) -> list[RunStatus]:
    """Play the missing runs of an experiment in the folder `out`. Return the status of each run.

    base : the folder of the problem files. every : seconds between checkpoints. executor : a
    function that plays the runs, for instance on Ray. The engine "gpu" plays runs in batches. The
    engine "auto" does so for long and many runs, and passes a sentence about its choice to
    `on_message`. After Ctrl-C every run finishes its chunk and writes a checkpoint.
    """
    from cmdplab.experiments.play import check_workers

    check_workers(workers)
    check_every(every)
    works = prepare(experiment, problems(experiment, Path(base)), Path(out), engine)
    return do_missing(works, workers, on_event, every, engine, on_message, executor)


def prepare(
    experiment: Experiment,
    found: dict[str, CMDP],
    folder: Path,
    engine: str = "cpu",
    study: Study | None = None,
    versus: str | None = None,
) -> list[Work]:
    """Check an experiment on the problems `found`, list its runs in `folder`, return their works.

    found : the problems by fingerprint. versus : the label that a comparison compares with.
    """
    # Half a second, for which `status` has no use.
    from cmdplab.engines.choose import choose
    from cmdplab.experiments.play import Entry
    from cmdplab.solvers import solve_feasible

    check_installed("pyarrow")
    runs = resolve(experiment, found)
    asked = Folder(study=study, versus=versus, experiment=experiment, runs=runs)
    earlier(asked, folder)  # refuses before anything is solved
    solutions = {mark: solve_feasible(problem) for mark, problem in found.items()}
    entries: dict[str, Entry] = {}
    for kind, run in {run.kind: run for run in runs}.items():
        mark, row = run.fingerprint, run.row_to_play(given=True)
        entries[kind] = Entry.of(found[mark], row, 0, solutions[mark], None, experiment.rewards)
    length, precision = runs[0].episodes, experiment.precision
    choose(engine, [each.wanted(length, precision) for each in entries.values()], 1)  # refuses
    works = add_runs(asked, found, folder)
    return [work._replace(given=True, entry=entries[work.settings.kind]) for work in works]


def do_missing(
    works: list[Work],
    workers: int | None = None,
    on_event: OnEvent = lambda event: None,
    every: float = CHECKPOINT_EVERY,
    engine: str = "cpu",
    on_message: Callable[[str], None] = lambda sentence: None,
    executor: Executor | None = None,
) -> list[RunStatus]:
    """Play the works that are not done, by worker processes or the executor. Return all statuses.

    For the arguments see `sweep`.
    """
    from cmdplab.experiments.play import check_workers

    check_installed("pyarrow")
    check_workers(workers)
    check_every(every)
    if engine != "cpu":
        if executor is not None:
            raise InputError(f"the engine {engine} is for the local machine only")
        from cmdplab.experiments.executors.gpu import gpu_executor  # numba-cuda is an extra

        executor = gpu_executor(engine, workers, on_message)
    ends: dict[str, Event] = {}
    known, by_name = Index(works), {work.folder.name: work for work in works}
    states = [known.status(work) for work in works]
    known.save()
    young: list[Work] = []  # ended too recently for the index

    def note(event: Event) -> None:
        if event.ended:
            ends[event.folder] = event
            young.append(by_name[event.folder])
            if len(young) >= 2 * NOTED_AT_ONCE:
                for _ in range(NOTED_AT_ONCE):
                    known.status(young.pop(0))
                known.save()
        on_event(event)

    missing = [w for w, state in zip(works, states, strict=True) if state.status != "done"]
    if engine == "cpu":
        for work in missing:
            check_single(work.settings.precision or "float64")
    check_learners(missing)
    undone = {work.folder for work in missing}
    for work in works:
        if work.folder not in undone:
            on_event(Event(work.folder.name, "done"))
    with signals() as interrupt:
        if missing and executor is not None:
            executor(missing, note, interrupt, every)
        elif missing:
            run_locally(missing, workers or os.cpu_count() or 1, note, interrupt, every)
    found = [with_end(known.status(work), ends.get(work.folder.name)) for work in works]
    known.save()
    return found


def check_every(every: float) -> None:
    """Refuse a negative or infinite time between checkpoints. every : seconds."""
    if not 0.0 <= every < float("inf"):
        raise InputError(f"checkpoint-every is {every:g}, not a finite number of seconds >= 0")
