"""`cmdplab sweep`, `resume`, `status` and `export`: experiments that survive."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmdplab.cli.options import (
    Engine,
    EngineOption,
    Json,
    Workers,
    console,
    errors,
    print_json,
    say,
)
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.experiment import RunSettings
    from cmdplab.status import RunStatus


MOST_ROWS = 200  # of a table of runs: nobody reads more


class Format(StrEnum):
    """What `export` writes."""

    csv = "csv"
    parquet = "parquet"
    netcdf = "netcdf"


Folder = Annotated[Path, typer.Argument(help="The folder of an experiment, or of one run.")]
Every = Annotated[float, typer.Option(help="Seconds between two checkpoints of a run.")]
Ray = Annotated[
    str | None,
    typer.Option(
        help="Run on the Ray cluster at this address (host:port, auto); alone: on a local one."
    ),
]


def sweep_command(
    file: Annotated[Path, typer.Argument(help="An experiment: docs/experiments.md.")],
    out: Annotated[Path | None, typer.Option(help="Default: runs/NAME of the experiment.")] = None,
    change: Annotated[
        list[str] | None, typer.Option("--set", help="Change a key, e.g. episodes=1000.")
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list the runs.")] = False,
    workers: Workers = None,
    engine: EngineOption = Engine.cpu,
    ray: Ray = None,
    checkpoint_every: Every = 30.0,
    as_json: Json = False,
) -> None:
    """Run an experiment: problems x algorithms x seeds, over all cores, on a GPU or on Ray.

    Running it again does only what is missing. Ctrl-C finishes the current chunks and checkpoints;
    the same command, or `cmdplab resume`, goes on from there to the last bit.
    """
    from cmdplab.experiment import problems, read_experiment, resolve
    from cmdplab.progress import sweep_shown
    from cmdplab.sweeping import sweep

    experiment = read_experiment(file, change)
    folder = out if out is not None else Path("runs") / experiment.name
    runs = resolve(experiment, problems(experiment, file.parent))
    if dry_run:
        _print_plan([each.model_dump() | {"folder": each.folder} for each in runs], as_json)
        return
    with (
        _executor(ray, engine) as executor,
        sweep_shown(len(runs), _episodes(runs), errors()) as tell,
    ):
        found = sweep(
            experiment,
            folder,
            base=file.parent,
            workers=workers,
            tell=tell,
            every=checkpoint_every,
            engine=engine.value,
            say=say,
            executor=executor,
        )
    finish(found, folder, as_json)


def resume_command(
    folder: Folder,
    workers: Workers = None,
    engine: EngineOption = Engine.cpu,
    ray: Ray = None,
    checkpoint_every: Every = 30.0,
    as_json: Json = False,
) -> None:
    """Go on with every run of a folder that is not done, from its checkpoint."""
    from cmdplab.progress import sweep_shown
    from cmdplab.sweeping import do_missing, works_of

    works = works_of(folder)
    every_run = [work.settings for work in works]
    with (
        _executor(ray, engine) as executor,
        sweep_shown(len(works), _episodes(every_run), errors()) as tell,
    ):
        given = (engine.value, say, executor)
        found = do_missing(works, workers, tell, checkpoint_every, *given)
    finish(found, folder, as_json)


def status_command(folder: Folder, as_json: Json = False) -> None:
    """What is done, running, interrupted, failed or missing, how far, and how fast."""
    from cmdplab.index import statuses
    from cmdplab.sweeping import works_of

    found = statuses(works_of(folder))
    if as_json:
        print_json(found)
    else:
        _print_status(found, folder)


def export_command(
    folder: Folder,
    to: Annotated[Format, typer.Option(help="The format.")] = Format.csv,
    out: Annotated[Path | None, typer.Option(help="Default: all-curves.FORMAT there.")] = None,
) -> None:
    """Write the curves of every run of a folder into one file."""
    from cmdplab.loading import export

    suffix = {"csv": "csv", "parquet": "parquet", "netcdf": "nc"}[to.value]
    target = out if out is not None else folder / f"all-curves.{suffix}"
    print(export(folder, to.value, target))


def _episodes(runs: list[RunSettings]) -> int | None:
    """How long the longest run is; None if one has no end."""
    lengths = [each.episodes for each in runs]
    return None if None in lengths else max(n for n in lengths if n is not None)


@contextmanager
def _executor(ray: str | None, engine: Engine) -> Iterator[Any]:
    if ray is None:
        yield None
        return
    if engine is not Engine.cpu:
        raise InputError(f"--ray runs on the cores of a cluster: --engine {engine} is for here")
    from cmdplab.on_ray import ray_executor

    with ray_executor(None if ray == "local" else ray) as execute:
        yield execute


def finish(found: list[RunStatus], folder: Path, as_json: bool) -> None:
    """Print where every run stands; exit code 0 only when all are done."""
    if as_json:
        print_json(found)
    else:
        _print_status(found, folder)
    statuses = {each.status for each in found}
    if "failed" in statuses:
        raise typer.Exit(1)
    if statuses != {"done"}:
        left = {each.precision for each in found if each.status != "done"}
        more = " --engine gpu" if "float32" in left else ""
        errors().print(f"not done yet; go on with: cmdplab resume {folder}{more}", highlight=False)
        raise typer.Exit(130 if statuses & {"interrupted", "missing"} else 1)


def _print_plan(rows: list[dict[str, Any]], as_json: bool) -> None:
    from cmdplab.presenting import grid

    if as_json:
        print_json(rows)
        return
    shown = ("folder", "problem", "algorithm", "preset", "episodes", "seed")
    cells = [[str(row[name]) for name in shown] for row in rows]
    grid(console(), f"{len(rows)} runs", shown, cells, left=4)


def _shown(found: list[RunStatus]) -> list[RunStatus]:
    """The runs of a table: all, or of many the first that need a look."""
    if len(found) <= MOST_ROWS:
        return found
    first = ("failed", "damaged", "running", "interrupted", "missing")
    undone = [s for s in found if s.status != "done"]
    return sorted(undone, key=lambda s: first.index(s.status))[:MOST_ROWS]


def _print_status(found: list[RunStatus], folder: Path) -> None:
    from cmdplab.presenting import grid, number

    header = ["run", "algorithm", "status", "episodes", "1/s", "gap", "viol."]
    rows, shown = [], _shown(found)
    for s in shown:
        far = f"{s.episodes:,}" + (f"/{s.of:,}" if s.of and s.of != s.episodes else "")
        rate = "–" if s.rate is None else f"{s.rate:,.0f}"
        cells = [far, rate, number(s.gap, 3), number(s.violation, 3)]
        rows.append([s.folder, s.algorithm, s.status, *cells])
    if rows:
        grid(console(), str(folder), header, rows, left=3)
    counts = {
        status: sum(s.status == status for s in found) for status in {s.status for s in found}
    }
    words = ", ".join(f"{n} {status}" for status, n in sorted(counts.items()))
    console().print(words, highlight=False)
    if len(shown) < len(found):
        rest = f"{len(found) - len(shown):,} of {len(found):,} runs are not listed"
        console().print(f"{rest}: --json lists all", highlight=False)
    for s in shown:
        last = s.error.strip().splitlines()[-1:]
        for words in (*s.notes, *last):
            console().print(f"{s.folder}: {words}", highlight=False, soft_wrap=True)
