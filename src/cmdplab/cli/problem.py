"""`cmdplab solve`, `describe`, `sensitivity`, `frontier`, `convert`: problems before learning."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmdplab.cli.options import Finite, Problem, asked_in_units, asked_source, command
from cmdplab.cli.output import (
    Answer,
    of_file,
    print_facts,
    print_line,
    print_note,
    print_rows,
    print_table,
)
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.cmdp.labels import Scale
    from cmdplab.environments.catalogue import Description
    from cmdplab.solvers import Solution
    from cmdplab.solvers.thresholds.frontier import Frontier

SHOWN = 14  # points of a frontier in a table


@command(asked_in_units)
def solve_command(
    problem: Problem,
    policy: Path | None = None,
) -> Answer:
    """Certify the optimum of a problem: value, multipliers, Slater gap, primal and dual.

    An infeasible problem is an answer too: exit code 0 and feasible = false. Where thresholds can
    be met only with equality the Slater gap is 0, and the algorithms that need one are named.
    """
    from cmdplab.algorithms import needing_slack
    from cmdplab.cmdp.problem import CMDP
    from cmdplab.solvers import solve

    if policy is not None and policy.suffix not in (".npz", ".csv", ".json"):
        raise InputError(f"{policy} is no .npz, .csv or .json")
    s = solve(problem)
    if policy is not None:
        if s.policy is None:
            raise InputError(f"{problem.name} has no optimal policy: {s.message}")
        s.policy.save(policy)
    lost = needing_slack() if s.slater_gap == 0.0 and isinstance(problem, CMDP) else []
    found = {name: getattr(s, name) for name in ("value", "multiplier", "slater_gap")}
    found |= {"primal": s.primal, "dual": s.dual, "gap": s.duality_gap, "feasible": s.feasible}
    found |= {"message": s.message, "without_guarantee": lost}
    found |= {"published_value": None, "published_unit": None}
    if problem.labels.signals and s.value is not None:
        unit = problem.labels.signal(0)
        found |= {"published_value": unit.published(s.value), "published_unit": unit.of}
    return Answer("solve", found, lambda: _print_solution(problem, s, found))


def _print_solution(problem: Problem, s: Solution, found: dict[str, Any]) -> None:
    """Print the declared fields, and below the multipliers a line for each named constraint."""
    shown = found | {"feasible": _feasible(s.feasible, s.message)}
    if found["published_value"] is None:
        del shown["published_value"]
    else:
        shown["published_value"] = "{published_value:.10f} ({published_unit})".format(**found)
    if not found["without_guarantee"]:
        del shown["without_guarantee"]
    prices = []
    if s.multiplier is not None and s.occupancy is not None:
        for n, scale in enumerate(problem.labels.signals[1:], start=1):
            first, price = problem.labels.signal(0), s.multiplier[n - 1]
            reached = scale.published(float((problem.reward[n] * s.occupancy).sum()))
            limit = _limit(scale, scale.published(float(problem.threshold[n - 1])))
            price = f"price {price * abs(first.factor / scale.factor):.6g} of {first.of}"
            prices.append((scale.of, f"{reached:.6g}, {limit}; {price}"))
    print_facts(problem.name, "Solve", shown, multiplier=prices)


def _feasible(feasible: bool, message: str) -> str:
    return ("yes" if feasible else "no") + (f": {message}" if message else "")


def _limit(scale: Scale, limit: float) -> str:
    """Return a threshold with the side that it allows."""
    return f"at {'most' if scale.factor < 0.0 else 'least'} {limit:.6g}"


@command(asked_in_units)
def describe_command(problem: Problem) -> Answer:
    """Describe a problem: sizes, binding constraints, their prices and their slack.

    For the choice of a threshold it shows what policies can reach, what reward-optimal ones reach,
    and the price along the way, in the units of the problem's labels.
    """
    from cmdplab.environments.catalogue import describe

    d = describe(problem)
    return Answer("describe", d, lambda: _print_description(problem, d))


def _print_description(problem: Problem, d: Description) -> None:
    """Print the declared fields, the range of each threshold, and the price along it."""
    first, *scales = (problem.labels.signal(n) for n in range(1 + d.constraints))
    most, free = (
        None if value is None else f"{first.published(value):.6f} ({first.of})"
        for value in (d.optimum, d.unconstrained_optimum)
    )
    binding = [scale.of for scale, binds in zip(scales, d.binding or [], strict=False) if binds]
    facts = d._asdict() | {"optimum": most, "unconstrained_optimum": free, "binding": binding}
    facts["feasible"] = _feasible(d.feasible, d.message)
    facts["start"] = "a random state" if d.start is None else problem.labels.state(d.start)
    if not d.without_guarantee:
        del facts["without_guarantee"]
    print_facts(d.name, "Describe", facts)
    rows = []
    for scale, limit, r in zip(scales, d.threshold, d.ranges, strict=True):
        reached = sorted(scale.published(each) for each in (r.smallest, r.largest_alone))
        row: dict[str, Any] = {
            "constraint": scale.of,
            "limit": _limit(scale, scale.published(limit)),
        }
        best = {"reward_optimal": scale.published(r.reward_optimal)}
        rows.append(row | {"smallest": reached[0], "largest_alone": reached[1]} | best)
    columns = "constraint limit smallest largest_alone reward_optimal"
    if rows:
        print_rows("what policies reach", "ThresholdRange", columns, rows)
    for scale, r in zip(scales, d.ranges, strict=True):
        if r.threshold is None or r.value is None or r.multiplier is None:
            print_line(f"{scale.of}: the other constraints cannot be met, whatever this one")
            continue
        price = abs(first.factor / scale.factor)
        points = [
            (scale.published(limit), first.published(value), price * multiplier)
            for limit, value, multiplier in zip(r.threshold, r.value, r.multiplier, strict=True)
        ]
        title = f"{scale.of}: free up to the first, impossible beyond the last"
        _print_along(title, scale.of, first.of, points)
    if d.horizon is not None and rows and not d.units:
        print_note(f"a threshold b is a budget of {d.horizon} - b on the cost 1 - utility")


def _print_along(
    title: str, limit: str, value: str, points: Sequence[tuple[float, float, float]]
) -> None:
    """Print a line for each threshold: the best value and the price of one unit there."""
    rows = [[f"{each:.4f}" for each in point] for point in points]
    print_table(title, [limit, f"best {value}", "price of a unit"], rows, left=0)


@command(asked_in_units)
def sensitivity_command(problem: Problem) -> Answer:
    """Print the price of each threshold, its range, the binding thresholds, and their room.

    The units are those of the problem's labels. If no policy meets the thresholds, an irreducible
    set of them that conflict is printed, and the nearest that can be met. The exit code is 0 in
    both cases.
    """
    from cmdplab import sensitivity

    found = sensitivity(problem)

    def show() -> None:
        for line in found.text.splitlines():
            print_line(line)
        if found.prices:
            print_line("")
            print_table("", *found.table())
            print_note(
                "looser and tighter by one unit of the limit; until: the limit at which the price "
                "changes; free from: the limit at which the constraint begins to cost something"
            )

    return Answer("sensitivity", found._asdict() | {"text": found.text}, show)


@command(asked_in_units)
def frontier_command(
    problem: Problem,
    constraint: str = "1",
    points: int | None = None,
    most: int = 1_000,
    figure: Path | None = None,
) -> Answer:
    """Print the optimal value against a threshold, with multipliers: the price of a constraint.

    Thresholds go from the first that binds to the largest that can be met. Values between two
    breakpoints lie on a straight line.
    """
    from cmdplab import frontier

    if figure is not None:
        from cmdplab.figures.plots import draw_frontier
        from cmdplab.figures.style import check_suffix

        check_suffix(figure)
    found = frontier(problem, constraint, points, most)
    if figure is not None:
        draw_frontier(found.in_units(), problem.name, figure)
    return Answer("frontier", found, lambda: _print_frontier(problem, found))


def _print_frontier(problem: Problem, found: Frontier) -> None:
    """Print about a dozen points in the units of the labels, with the first and the last."""
    shown, points = found.in_units(), len(found.threshold)
    some = [
        round(n * (points - 1) / max(min(points, SHOWN) - 1, 1)) for n in range(min(points, SHOWN))
    ]
    columns = (shown.threshold, shown.value, shown.multiplier)
    value, limit = (each.of for each in shown.units)
    title = f"{problem.name}, constraint {found.constraint}"
    _print_along(title, limit, value, [tuple(column[n] for column in columns) for n in some])
    if len(some) < points:
        kind = "breakpoints" if found.exact else "points"
        print_note(f"{len(some)} of {points} {kind}; --json has all")
    elif found.exact:
        print_note("these are all breakpoints; the price is that of the piece which ends there")
    free, beyond = "free up to", "impossible beyond"
    if found.units[1].factor < 0.0:
        free, beyond = "free from", "impossible below"
    print_line(
        f"{free} {shown.free:.6g}, {beyond} {shown.largest:.6g}; its own threshold "
        f"is {shown.given:.6g}; certified to {shown.certificate:.0e}"
    )


@command(asked_source)
def convert_command(
    source: Finite | Path,
    out: Path,
) -> Answer:
    """Write a problem in another format: .npz, or .drn for Storm (docs/own-problem.md).

    Of a folder of records, the curves of all runs become one file.
    """
    if isinstance(source, Path):
        from cmdplab.experiments.records.load import export

        formats = {".csv": "csv", ".parquet": "parquet", ".nc": "netcdf"}
        if out.suffix not in formats:
            raise InputError(f"{out} is no .csv, .parquet or .nc: {source} is a folder of records")
        export(source, formats[out.suffix], out)
    else:
        from cmdplab.formats import convert

        convert(source, out)
    return of_file("convert", out)
