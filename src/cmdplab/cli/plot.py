"""`cmdplab report`, the page about a folder; `plot` and `portrait`, one figure at column width."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cmdplab.cli.options import (
    AnyPreset,
    InstanceSeed,
    Json,
    OwnBonusScale,
    ProblemArgument,
    argument,
    count,
    find_here,
    option,
)
from cmdplab.cli.output import errors, print_file, print_json, warn
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.algorithms.row import Row
    from cmdplab.cmdp.problem import CMDP


Line = StrEnum("Line", ("median", "mean"))
"""What the lines of `plot` are, over seeds."""
Portrayed = StrEnum("Portrayed", ("entropy", "occupancy"))
"""Drawings of `portrait`."""


def report_command(
    folder: Annotated[Path, argument("What `reproduce`, `compare`, `sweep` or `run --out` wrote.")],
    out: Annotated[Path | None, option("The page; default: report.html in the folder.")] = None,
    as_json: Json = False,
) -> None:
    """Write one HTML page about a folder: verdicts, curves, mistakes for every epsilon, settings.

    The page opens offline. Beside it, the table as summary.tex (booktabs) and summary.csv.
    """
    from cmdplab.report import gather, write_report, write_tables

    found = gather(folder)
    page = write_report(folder, out, found)
    tables = write_tables(folder, page.parent, found)
    if as_json:
        print_json("report", {"page": str(page), "tables": [str(each) for each in tables]})
    else:
        print(page)
    if found.troubles:
        count = len(found.troubles)
        runs = "one run is" if count == 1 else f"{count} runs are"
        warn(f"{runs} not as planned; the page names them")


def plot_command(
    folder: Annotated[Path, argument("What `reproduce`, `compare` or `sweep` wrote.")],
    kind: Annotated[
        str, argument("gap, violation (or with -symlog), regret, mistakes, multiplier, phase.")
    ],
    out: Annotated[
        Path | None, option("A .png, .pdf or .svg; default: KIND.pdf in the folder.")
    ] = None,
    environment: Annotated[str | None, option("Of a sweep over several: the one to draw.")] = None,
    line: Annotated[
        Line, option("Over seeds. A mean is warned of where tails are heavy.")
    ] = Line.median,
    as_json: Json = False,
) -> None:
    """Draw one figure for a paper from records.

    A line for each algorithm over its seeds; the light shade holds every episode. From six seeds
    on, a darker shade is a 95 % band of the line: at all its points at once where the seeds
    suffice, else at each point on its own; the legend says which. Of a sweep the finished runs are
    drawn; over several instances each counts once, by its median.
    """
    from cmdplab.figures.plots import plot

    target = out if out is not None else folder / f"{kind}.pdf"
    path, notes = plot(folder, kind, target, environment, line.value)
    for note in notes:
        warn(note)
    print_file("plot", path, as_json, notes)


def portrait_command(
    problem: ProblemArgument = "published",
    kind: Annotated[
        Portrayed, option("Randomness along the run, or where it leads in the end.")
    ] = Portrayed.entropy,
    algorithm: Annotated[
        list[str] | None,
        option(
            "Default: UOpt-RPGPD; for entropy, repeat it to compare. Or package.module:name, "
            "a learner of your own: importing it runs that module's code."
        ),
    ] = None,
    preset: AnyPreset = None,
    episodes: Annotated[int, count("How many episodes to play.")] = 100_000,
    seed: Annotated[int, count("Seed of the roll-outs.")] = 0,
    instance_seed: InstanceSeed = 0,
    bonus_scale: OwnBonusScale = None,
    points: Annotated[
        int | None, count("Entropy: at how many episodes to look; default: 120.")
    ] = None,
    out: Annotated[Path | None, option("A .png, .pdf or .svg; default: KIND.pdf here.")] = None,
    as_json: Json = False,
) -> None:
    """Play a run and draw its policy, which no record holds.

    entropy: how random the policy is where it goes, from 1 (uniform) to 0 (deterministic), and the
    temperature that keeps it so, at log-spaced episodes.

    occupancy: how often each state is visited at each step, by the learned policy and by an optimal
    one, on one colour scale, with their total-variation distance.
    """
    from cmdplab.algorithms import as_row
    from cmdplab.experiments.play import check_counts
    from cmdplab.figures.style import check_suffix
    from cmdplab.files.write import writable_folder
    from cmdplab.formats import find

    path = out if out is not None else Path(f"{kind.value}.pdf")
    check_suffix(path)
    check_counts(episodes, seed)
    names = algorithm or ["UOpt-RPGPD"]
    find_here(names)
    chosen = [as_row(name, preset.value if preset else None) for name in names]
    rows = [row.with_settings(bonus_scale=bonus_scale) for row in dict.fromkeys(chosen)]
    if kind is Portrayed.occupancy and len(rows) > 1:
        raise InputError(f"an occupancy is drawn of one algorithm, and {len(rows)} were given")
    if kind is Portrayed.occupancy and points is not None:
        raise InputError("--points is about entropy: an occupancy is drawn of the last policy")
    cmdp = find(problem, instance_seed)
    writable_folder(path.parent)  # known before the run, not after it
    for row in rows:
        warn(row.tuning_warning(episodes))
    if kind is Portrayed.occupancy:
        drawn = _occupancy(cmdp, rows[0], episodes, seed, path)
    else:
        drawn = _entropy(cmdp, rows, episodes, seed, points, path)
    print_file("portrait", drawn, as_json)


def _occupancy(cmdp: CMDP, row: Row, episodes: int, seed: int, path: Path) -> Path:
    from cmdplab.experiments.play import Job
    from cmdplab.experiments.progress import shown
    from cmdplab.figures.portrait_drawings import draw_occupancy
    from cmdplab.figures.portraits import occupancy_portrait

    with shown([Job(row, seed)], episodes, errors()) as on_progress:
        portrait = occupancy_portrait(cmdp, row, episodes, seed, on_progress=on_progress)
    title = f"{cmdp.name}: {row.name} ({row.preset})\nseed {seed}, {episodes:,} episodes"
    return draw_occupancy(portrait, title, path)


def _entropy(
    cmdp: CMDP, rows: list[Row], episodes: int, seed: int, points: int | None, path: Path
) -> Path:
    from cmdplab.experiments.play import Job
    from cmdplab.experiments.progress import shown
    from cmdplab.figures.portrait_drawings import draw_entropy
    from cmdplab.figures.portraits import POINTS, entropy_curve, no_temperature
    from cmdplab.solvers import solve_feasible

    looks = POINTS if points is None else points
    solution = solve_feasible(cmdp)
    with shown([Job(row, seed) for row in rows], episodes, errors()) as on_progress:
        fixed = partial(entropy_curve, solution=solution, on_progress=on_progress)
        curves = [fixed(cmdp, row, episodes, seed, looks) for row in rows]
    for row in rows:
        warn(no_temperature(row))
    presets = " and ".join(sorted({row.preset for row in rows}))
    return draw_entropy(curves, f"{cmdp.name}, {presets}, seed {seed}", path)
