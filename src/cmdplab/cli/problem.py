"""`cmdplab solve`, `describe`, `sensitivity`, `frontier`, `convert`: problems before learning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cmdplab.cli import output
from cmdplab.cli.options import (
    Finite,
    Json,
    Problem,
    argument,
    asked_in_units,
    asked_source,
    count,
    given,
    option,
)
from cmdplab.cli.output import print_json, print_line, print_note
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.cmdp.labels import Scale
    from cmdplab.environments.catalogue import ThresholdRange
    from cmdplab.solvers import Solution

SHOWN = 14  # points of a frontier in a table


@given(asked_in_units)
def solve_command(
    problem: Problem,
    policy: Annotated[Path | None, option("Write the optimal policy: .npz, .csv or .json.")] = None,
    as_json: Json = False,
) -> None:
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
    found |= {"message": s.message, "without_guarantee": lost} | _as_published(problem, s.value)
    if as_json:
        print_json("solve", found)
        return
    found["feasible"] = _feasible(s.feasible, s.message)
    if found["published_value"] is None:
        del found["published_value"]
    else:
        found["published_value"] = "{published_value:.10f} ({published_unit})".format(**found)
    if not lost:
        del found["without_guarantee"]
    output.print_facts(problem.name, "Solve", found, multiplier=_prices(problem, s))


def _prices(problem: Problem, s: Solution) -> list[tuple[str, str]]:
    """Return a line for each named constraint: its value at the optimum, limit and price."""
    if not problem.labels.signals or s.multiplier is None or s.occupancy is None:
        return []
    first, *scales = problem.labels.signals
    rows = []
    for n, scale in enumerate(scales, start=1):
        reached = scale.published(float((problem.reward[n] * s.occupancy).sum()))
        price = s.multiplier[n - 1] * abs(first.factor / scale.factor)
        words = (
            f"{reached:.6g}, {_limit(scale)} {scale.published(float(problem.threshold[n - 1])):.6g}"
        )
        rows.append((scale.of, f"{words}; price {price:.6g} of {first.of}"))
    return rows


def _as_published(problem: Problem, value: float | None) -> dict[str, Any]:
    """Return an optimum in the units of its source, an environment or a file."""
    units = problem.labels.signals
    if not units or value is None:
        return {"published_value": None, "published_unit": None}
    return {"published_value": units[0].published(value), "published_unit": units[0].of}


def _feasible(feasible: bool, message: str) -> str:
    """Return yes or no, and the message of the solver."""
    return ("yes" if feasible else "no") + (f": {message}" if message else "")


@given(asked_in_units)
def describe_command(problem: Problem, as_json: Json = False) -> None:
    """Describe a problem: sizes, binding constraints, their prices and their slack.

    For the choice of a threshold it shows what policies can reach, what reward-optimal ones reach,
    and the price along the way, in the units of the problem's labels.
    """
    from cmdplab.display.terminal import facts, number, numbers
    from cmdplab.environments.catalogue import describe

    d = describe(problem)
    if as_json:
        print_json("describe", d)
        return
    labels, named = problem.labels, bool(d.units)
    ends = "no end" if d.horizon is None else f"horizon {d.horizon}"
    first = "a random state" if d.start is None else labels.state(d.start)
    rows = [("sizes", f"{d.states} states, {d.actions} actions, {ends}, start {first}")]
    rows += [("rewards", d.criterion)] * (d.horizon is None)
    rows += [("constraints", str(d.constraints))]
    signals = [labels.signal(n) for n in range(1 + d.constraints)]
    if named:
        limits = zip(signals[1:], d.threshold, d.largest_utility, strict=True)
        for scale, b, most in limits:
            reach = f"{scale.published(b):.6g}; {scale.published(most):.6g} can be reached alone"
            rows.append((scale.of, f"{_limit(scale)} {reach}"))
    else:
        rows += [("thresholds", numbers(d.threshold, 4))]
        rows += [("largest utility", numbers(d.largest_utility, 4))]
    rows += [("feasible", _feasible(d.feasible, d.message))]
    best = None if d.optimum is None else signals[0].published(d.optimum)
    rows += [(f"optimum ({signals[0].of})" if named else "optimum", number(best, 6))]
    rows += [("without constraints", number(signals[0].published(d.unconstrained_optimum), 6))]
    names = [each.of if named else str(n) for n, each in enumerate(signals)]
    binding = [name for name, binds in zip(names[1:], d.binding or [], strict=False) if binds]
    rows += [("binding", ", ".join(binding) or "none"), ("multiplier", numbers(d.multiplier))]
    rows += [("Slater gap", number(d.slater_gap, 6))]
    rows += [("lose their guarantee", ", ".join(d.without_guarantee))] * bool(d.without_guarantee)
    facts(output.console(), d.name, rows)
    for range_ in d.ranges:
        if named:
            _print_named_range(range_, signals[0], signals[range_.constraint])
        else:
            _print_range(range_, d.horizon)


def _print_named_range(r: ThresholdRange, objective: Scale, scale: Scale) -> None:
    """Print the range of one threshold in the units of its labels, and the price along it."""
    low, high = sorted(scale.published(each) for each in (r.smallest, r.largest_alone))
    print_line(
        f"{scale.of}: policies reach {low:.6g} to {high:.6g}; one that is best without "
        f"this constraint {scale.published(r.reward_optimal):.6g}"
    )
    header = [f"{scale.of} {_limit(scale)}", f"best {objective.of}", "price of a unit"]
    price = abs(objective.factor / scale.factor)
    _print_along(r, header, lambda b, v, m: [scale.published(b), objective.published(v), price * m])


def _print_range(r: ThresholdRange, horizon: int | None) -> None:
    """Print the range of one threshold, and the price along it."""
    H = horizon
    cost = ""
    if H is not None:
        cost = f" (as a cost 1 - utility: {H - r.largest_alone:.4g} to {H - r.smallest:.4g})"
    print_line(
        f"threshold {r.constraint}: policies reach utilities from {r.smallest:.4g} to "
        f"{r.largest_alone:.4g}{cost}; a reward-optimal policy reaches {r.reward_optimal:.4g}"
    )
    header = ["threshold", "as a budget", "optimal value", "multiplier"]
    _print_along(r, header, lambda b, v, m: [b, None if H is None else H - b, v, m])


def _print_along(
    r: ThresholdRange,
    header: Sequence[str],
    cells: Callable[[float, float, float], list[float | None]],
) -> None:
    """Print a line for each breakpoint: `cells` of threshold, value and multiplier."""
    from cmdplab.display.terminal import number

    if r.threshold is None or r.value is None or r.multiplier is None:
        print_line("the other constraints cannot be met, whatever this one")
        return
    points = zip(r.threshold, r.value, r.multiplier, strict=True)
    rows = [[number(each) for each in cells(*point)] for point in points]
    output.print_table("free up to the first, impossible beyond the last", header, rows, left=0)


def _limit(scale: Scale) -> str:
    """Return the allowed side of a threshold, in words."""
    return "at most" if scale.factor < 0.0 else "at least"


@given(asked_in_units)
def sensitivity_command(problem: Problem, as_json: Json = False) -> None:
    """Print the price of each threshold, its range, the binding thresholds, and their room.

    The units are those of the problem's labels. If no policy meets the thresholds, an irreducible
    set of them that conflict is printed, and the nearest that can be met. The exit code is 0 in
    both cases.
    """
    from cmdplab import sensitivity

    found = sensitivity(problem)
    if as_json:
        print_json("sensitivity", found._asdict() | {"text": found.text})
        return
    for line in found.text.splitlines():
        print_line(line)
    if found.prices:
        print_line("")
        header, rows = found.table()
        output.print_table("", header, rows)
        print_note(
            "looser and tighter by one unit of the limit; until: the limit at which the price "
            "changes; free from: the limit at which the constraint begins to cost something"
        )


@given(asked_in_units)
def frontier_command(
    problem: Problem,
    constraint: Annotated[str, option("Which constraint: its name, or its number from 1.")] = "1",
    points: Annotated[
        int | None, count("So many thresholds at equal distances; default: its breakpoints.")
    ] = None,
    most: Annotated[int, count("Refuse where there are more breakpoints.")] = 1_000,
    figure: Annotated[Path | None, option("Draw it: .png, .pdf or .svg.")] = None,
    as_json: Json = False,
) -> None:
    """Print the optimal value against a threshold, with multipliers: the price of a constraint.

    Thresholds go from the first that binds to the largest that can be met. Values between two
    breakpoints lie on a straight line.
    """
    from cmdplab import frontier
    from cmdplab.display.terminal import number

    if figure is not None:
        from cmdplab.figures.plots import draw_frontier
        from cmdplab.figures.style import check_suffix

        check_suffix(figure)
    found = frontier(problem, constraint, points, most)
    shown = found.in_units()
    if figure is not None:
        draw_frontier(shown, problem.name, figure)
    if as_json:
        print_json("frontier", found)
        return
    some = _some(len(found.threshold))
    columns = (shown.threshold, shown.value, shown.multiplier)
    rows = [[number(column[n]) for column in columns] for n in some]
    value, limit = (each.of for each in shown.units)
    header = ["threshold", "optimal value", "multiplier"]
    if problem.labels.signals:
        header = [limit, value, "price of a unit"]
    output.print_table(f"{problem.name}, constraint {found.constraint}", header, rows, left=0)
    what = "breakpoints" if found.exact else "points"
    if len(some) < len(found.threshold):
        print_note(f"{len(some)} of {len(found.threshold)} {what}; --json has all")
    elif found.exact:
        print_note("these are all breakpoints; the price is that of the piece which ends there")
    free, beyond = "free up to", "impossible beyond"
    if found.units[1].factor < 0.0:
        free, beyond = "free from", "impossible below"
    print_line(
        f"{free} {shown.free:.6g}, {beyond} {shown.largest:.6g}; its own threshold "
        f"is {shown.given:.6g}; certified to {shown.certificate:.0e}"
    )


def _some(points: int) -> list[int]:
    """Return the points of a frontier for a table: about a dozen, with the first and the last."""
    rows = min(points, SHOWN)
    return [round(n * (points - 1) / max(rows - 1, 1)) for n in range(rows)]


@given(asked_source)
def convert_command(
    source: Finite | Path,
    out: Annotated[Path, argument("Where to write: .npz or .drn; curves: .csv, .parquet, .nc.")],
    as_json: Json = False,
) -> None:
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
    output.print_file("convert", out, as_json)
