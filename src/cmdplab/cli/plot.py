"""`cmdplab report`, the page about a folder; `plot`, one figure at column width."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from cmdplab.cli.options import command, find_here
from cmdplab.cli.output import Answer, errors, of_file, print_line, warn
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.experiments.work import Work

Line = Literal["median", "mean"]
PORTRAITS = ("entropy", "occupancy")
"""Drawings of a policy, for which a run is played again."""


@command()
def report_command(
    folder: Path,
    out: Path | None = None,
) -> Answer:
    """Write one HTML page about a folder: verdicts, curves, mistakes for every epsilon, settings.

    The page opens offline. Beside it, the table as summary.tex (booktabs) and summary.csv.
    """
    from cmdplab.report import gather, write_report, write_tables

    found = gather(folder)
    page = write_report(folder, out, found)
    tables = write_tables(folder, page.parent, found)
    if found.troubles:
        count = len(found.troubles)
        runs = "one run is" if count == 1 else f"{count} runs are"
        warn(f"{runs} not as planned; the page names them")
    written = {"page": str(page), "tables": [str(each) for each in tables]}
    return Answer("report", written, lambda: print_line(str(page), soft_wrap=True))


@command()
def plot_command(
    folder: Path,
    kind: str,
    out: Path | None = None,
    environment: str | None = None,
    line: Line = "median",
    algorithm: list[str] | None = None,
) -> Answer:
    """Draw one figure for a paper from records.

    A line for each algorithm over its seeds; the light shade holds every episode. From six seeds
    on, a darker shade is a 95 % band of the line: at all its points at once where the seeds
    suffice, else at each point on its own; the legend says which. Of a sweep the finished runs are
    drawn; over several instances each counts once, by its median.

    Records hold no policies: for entropy and occupancy the first run of each algorithm is played
    again. entropy: how random the policy is where it goes, from 1 (uniform) to 0 (deterministic),
    and the temperature that keeps it so. occupancy: how often each state is visited at each step,
    by the learned policy and by an optimal one, on one colour scale.
    """
    from cmdplab.figures.plots import plot

    target = out if out is not None else folder / f"{kind}.pdf"
    if kind in PORTRAITS:
        return of_file("plot", _portrait(folder, kind, target, environment, algorithm or []))
    path, notes = plot(folder, kind, target, environment, line)
    for note in notes:
        warn(note)
    return of_file("plot", path, notes)


def _portrait(
    folder: Path, kind: str, path: Path, environment: str | None, learners: list[str]
) -> Path:
    """Play the first run of each algorithm again and draw its policy, which no record holds."""
    from cmdplab.experiments.folder import check_learners, works_to_play
    from cmdplab.experiments.play import Job
    from cmdplab.experiments.progress import shown
    from cmdplab.experiments.work import Entries
    from cmdplab.figures import portraits
    from cmdplab.figures.style import check_suffix
    from cmdplab.files.write import writable_folder

    check_suffix(path)
    find_here(learners)
    works = first_of_each(works_to_play(folder, learners), environment, folder)
    if kind == "occupancy" and len(works) > 1:
        raise InputError(
            f"an occupancy is drawn of one algorithm, and {folder} has {len(works)}: give the "
            f"folder of a run, for instance {works[0].folder}"
        )
    check_learners(works)
    writable_folder(path.parent)  # known before the runs, not after them
    known = Entries()
    runs = [(known.of(work), work.settings.episodes or 0) for work in works]
    entry, episodes = runs[0]
    row, name, seed = entry.algorithm, entry.problem.name, entry.seed
    with shown([Job(each.algorithm, each.seed) for each, _ in runs], episodes, errors()) as note:
        if kind == "occupancy":
            portrait = portraits.occupancy_portrait(entry, episodes, note)
            title = f"{name}: {row.name} ({row.preset})\nseed {seed}, {episodes:,} episodes"
            return portraits.draw_occupancy(portrait, title, path)
        curves = [portraits.entropy_curve(*each, on_progress=note) for each in runs]
    for each, _ in runs:
        warn(portraits.no_temperature(each.algorithm))
    presets = " and ".join(sorted({each.algorithm.preset for each, _ in runs}))
    return portraits.draw_entropy(curves, f"{name}, {presets}, seed {seed}", path)


def first_of_each(works: list[Work], environment: str | None, folder: Path) -> list[Work]:
    """Return the first run of each algorithm on the one problem that is drawn."""
    from cmdplab.figures.sources import chosen

    problem = chosen(environment, [work.settings.problem for work in works], folder)
    mine = [each for each in works if each.settings.problem == problem]
    if any(each.settings.episodes is None for each in mine):
        raise InputError(f"{folder} has runs without end: their last policy is not known")
    first: dict[str, Work] = {}
    for each in mine:
        if each.settings.fingerprint == mine[0].settings.fingerprint:
            first.setdefault(each.label, each)
    return list(first.values())
