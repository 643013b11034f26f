"""`cmdplab sweep`, `resume`, `status` and `export`: experiments that survive."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from cmdplab.cli.options import Engine, command, find_here
from cmdplab.cli.output import Answer, errors, of_file, print_line, print_rows, printing_aside, say
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.experiments.status import RunStatus
    from cmdplab.experiments.work import Work


MOST_ROWS = 200  # of a table of runs: nobody reads more
Format = Literal["csv", "parquet", "netcdf"]


class Given(NamedTuple):
    """Workers, engine, cluster and seconds between checkpoints."""

    workers: int | None = None
    engine: str = "cpu"
    ray: str | None = None
    every: float = 30.0


def means(
    workers: int | None = None,
    engine: Engine = "cpu",
    ray: str | None = None,
    checkpoint_every: float = 30.0,
) -> Given:
    """Return workers, engine, cluster and seconds between checkpoints."""
    return Given(workers, engine, ray, checkpoint_every)


@command(means)
def sweep_command(
    how: Given,
    file: Path,
    out: Path | None = None,
    change: list[str] | None = None,
    dry_run: bool = False,
) -> Answer:
    """Run an experiment: problems x algorithms x seeds, over all cores, on a GPU or on Ray.

    Running it again does only what is missing. Ctrl-C finishes the current chunks and checkpoints;
    the same command, or `cmdplab resume`, goes on from there to the last bit.
    """
    from cmdplab.experiments.experiment import problems, read_experiment, resolve, row_to_list
    from cmdplab.experiments.folder import works_for
    from cmdplab.experiments.sweep import prepare

    experiment = read_experiment(file, change)
    folder = out if out is not None else Path("runs") / experiment.name
    found = problems(experiment, file.parent)
    if dry_run:
        return _plan(works_for(folder, resolve(experiment, found, row_to_list)))
    find_here(each.name for each in experiment.algorithms)
    done = carry_out(lambda: prepare(experiment, found, folder, how.engine), how)
    return finish(done, folder, "sweep")


@command(means)
def resume_command(how: Given, folder: Path, algorithm: list[str] | None = None) -> Answer:
    """Go on with every run of a folder that is not done, from its checkpoint."""
    from cmdplab.experiments.folder import works_to_play

    learners = algorithm or []
    find_here(learners)
    done = carry_out(lambda: works_to_play(folder, learners), how)
    return finish(done, folder, "resume")


@command()
def status_command(folder: Path) -> Answer:
    """Print for every run if it is done, running, interrupted, failed or missing, and its speed."""
    from cmdplab.experiments.folder import works_of
    from cmdplab.experiments.status import statuses

    found = statuses(works_of(folder))
    return Answer("status", {"runs": found}, lambda: print_status(found, folder))


@command()
def export_command(
    folder: Path,
    to: Format = "csv",
    out: Path | None = None,
) -> Answer:
    """Write the curves of every run of a folder into one file."""
    from cmdplab.experiments.records.load import export

    suffix = "nc" if to == "netcdf" else to
    target = out if out is not None else folder / f"all-curves.{suffix}"
    return of_file("export", export(folder, to, target))


def carry_out(plan: Callable[[], list[Work]], how: Given) -> list[RunStatus]:
    """Play the missing runs of a plan, and show their progress."""
    from cmdplab.experiments.play import check_workers
    from cmdplab.experiments.progress import sweep_shown
    from cmdplab.experiments.sweep import check_every, do_missing

    check_workers(how.workers)
    check_every(how.every)
    with printing_aside(), _executor(how.ray, how.engine) as executor:
        works = plan()
        with sweep_shown(works, errors()) as on_event:
            rest = (how.every, how.engine, say, executor)
            return do_missing(works, how.workers, on_event, *rest)


@contextmanager
def _executor(ray: str | None, engine: str) -> Iterator[Any]:
    if ray is None:
        yield None
        return
    if engine != "cpu":
        raise InputError(f"--ray runs on the cores of a cluster: --engine {engine} is for here")
    from cmdplab.experiments.executors.ray import ray_executor

    with ray_executor(None if ray == "local" else ray) as execute:
        yield execute


def finish(found: list[RunStatus], folder: Path, schema: str) -> Answer:
    """Return the status of every run, or the results of a finished study; exit 0 if all are done.

    If nothing but learners from outside failed, a comparison shows the other algorithms.
    """
    from cmdplab.cli.tables import print_study
    from cmdplab.experiments.folder import study_in
    from cmdplab.studies.conclusions import broken_alone, conclude

    study = study_in(folder)
    done = {each.status for each in found} == {"done"}
    concluded = None
    if study and (done or broken_alone(found)):
        concluded = conclude(folder, broken_alone(found))
        if done:
            runs, summary = concluded
            return Answer(study, summary, lambda: print_study(runs, summary, folder))

    def show() -> None:
        print_status(found, folder)
        if concluded:
            print_study(*concluded, folder)
        if done:
            print_line(f"see what they show: cmdplab report {folder}")

    return Answer(schema, {"runs": found}, show, *left(found, folder))


def left(found: list[RunStatus], folder: Path) -> tuple[str, int]:
    """Return the command that goes on with runs, and the exit code: above 0 unless all are done.

    The code is 2 if nothing but learners from outside failed: these are bad input.
    """
    from cmdplab.algorithms.custom import CUSTOM

    if failed := {each.preset for each in found if each.status == "failed"}:
        return "", 2 if failed == {CUSTOM} else 1
    undone = [each for each in found if each.status != "done"]
    if not undone:
        return "", 0
    more = " --engine gpu" if any(each.precision == "float32" for each in undone) else ""
    for name in dict.fromkeys(each.algorithm for each in undone if each.preset == CUSTOM):
        more += f" --algorithm {name}" * (":" in name)
    asked = {s.status for s in undone if not s.error}  # a run that was killed says how
    code = 130 if asked & {"interrupted", "missing"} else 1
    return f"not done yet; go on with: cmdplab resume {folder}{more}", code


def _plan(works: list[Work]) -> Answer:
    rows = [
        work.settings.model_dump() | {"folder": work.folder.name, "label": work.label}
        for work in works
    ]

    def show() -> None:
        print_rows(
            f"{len(works)} runs",
            "PlannedRun",
            "label preset problem seed episodes",
            rows,
            episodes=lambda run: f"{run['episodes']:,}" if run["episodes"] else "unlimited",
        )

    return Answer("sweep-plan", {"runs": rows}, show)


def _shown(found: list[RunStatus]) -> list[RunStatus]:
    """Return the runs of a table: all, or of many the first that are not done."""
    if len(found) <= MOST_ROWS:
        return found
    first = ("failed", "damaged", "running", "interrupted", "missing")
    undone = [s for s in found if s.status != "done"]
    return sorted(undone, key=lambda s: first.index(s.status))[:MOST_ROWS]


def _far(run: RunStatus) -> str:
    of = f"/{run.of:,}" if run.of and run.of != run.episodes else ""
    return f"{run.episodes:,}{of}"


def print_status(found: list[RunStatus], folder: Path) -> None:
    """Print the status of every run, with what tells it from the others."""
    problems = {s.problem for s in found}
    several = len(problems) > 1  # a problem that all share is named in the title
    title = str(folder) if several else f"{folder}: {problems.pop()}"
    columns = f"label {'problem ' * several}status seed episodes rate gap violation"
    if shown := _shown(found):
        print_rows(title, "RunStanding", columns, shown, episodes=_far)
    counts = Counter(s.status for s in found)
    words = ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))
    print_line(words)
    if len(shown) < len(found):
        rest = f"{len(found) - len(shown):,} of {len(found):,} runs are not listed"
        print_line(f"{rest}: --json lists all")
    for s in shown:
        last = s.error.strip().splitlines()[-1:]
        for words in (*s.notes, *last):
            place = f"{s.label} on {s.problem}, seed {s.seed} ({s.folder})"
            print_line(f"{place}: {words}", soft_wrap=True)
