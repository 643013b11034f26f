"""`cmdplab sensitivity` and `frontier`: what thresholds cost, and which of them conflict."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cmdplab.cli.options import AskedAny, Json, asked_any, count, given, in_its_units, option
from cmdplab.cli.output import print_json, print_line, print_note, print_table

SHOWN = 14  # points of a frontier in a table


@given(asked_any)
def sensitivity_command(asked: AskedAny, as_json: Json = False) -> None:
    """What each threshold costs, how far its price holds, which bind, and how much room there is.

    In the units of the problem's labels. Where no policy meets the thresholds: an irreducible set
    of them that conflict, and the nearest that can be met. Exit code 0 in both cases.
    """
    from cmdplab import sensitivity

    problem = in_its_units(asked)
    found = sensitivity(problem)
    if as_json:
        print_json("sensitivity", found._asdict() | {"text": found.text})
        return
    for line in found.text.splitlines():
        print_line(line)
    if found.prices:
        print_line("")
        header, rows = found.table()
        print_table("", header, rows)
        print_note(
            "looser and tighter by one unit of the limit; until: the limit at which the price "
            "changes; free from: the limit at which the constraint begins to cost something"
        )


@given(asked_any)
def frontier_command(
    asked: AskedAny,
    constraint: Annotated[str, option("Which constraint: its name, or its number from 1.")] = "1",
    points: Annotated[
        int | None, count("So many thresholds at equal distances; default: its breakpoints.")
    ] = None,
    most: Annotated[int, count("Refuse where there are more breakpoints.")] = 1_000,
    figure: Annotated[Path | None, option("Draw it: .png, .pdf or .svg.")] = None,
    as_json: Json = False,
) -> None:
    """The price of a promise: the optimal value against a threshold, with multipliers.

    From where the constraint begins to bind to the largest threshold that can be met: the answer
    to "how should I choose the threshold?". Values between two breakpoints lie on a straight line.
    """
    from cmdplab import frontier
    from cmdplab.display.terminal import number

    if figure is not None:
        from cmdplab.figures.plots import draw_frontier
        from cmdplab.figures.style import check_suffix

        check_suffix(figure)
    problem = in_its_units(asked)
    found = frontier(problem, constraint, points, most)
    shown = found.in_units()
    if figure is not None:
        draw_frontier(shown, problem.name, figure)
    if as_json:
        print_json("frontier", found)
        return
    some = _some(len(found.threshold))
    rows = [
        [number(shown.threshold[n]), number(shown.value[n]), number(shown.multiplier[n])]
        for n in some
    ]
    value, limit = (each.of for each in shown.units)
    header = ["threshold", "optimal value", "multiplier"]
    if problem.labels.signals:
        header = [limit, value, "price of a unit"]
    print_table(f"{problem.name}, constraint {found.constraint}", header, rows, left=0)
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
    """Which points of a frontier a table shows: about a dozen, the first and the last always."""
    rows = min(points, SHOWN)
    return [round(n * (points - 1) / max(rows - 1, 1)) for n in range(rows)]
