"""`cmdplab solve`, `describe`, `frontier`, `convert` and `list`: all there is before learning."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmdplab.cli.options import (
    Asked,
    AskedAny,
    InstanceSeed,
    Json,
    Listing,
    asked_any,
    asked_problem,
    console,
    count,
    given,
    print_file,
    print_json,
    print_line,
    print_note,
)
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.environments.description import ThresholdRange

SHOWN = 14  # points of a frontier in a table


@given(asked_any)
def solve_command(
    asked: AskedAny,
    policy: Annotated[
        Path | None, typer.Option(help="Write the optimal policy: .npz, .csv or .json.")
    ] = None,
    as_json: Json = False,
) -> None:
    """The certified optimum of a problem: value, multipliers, Slater gap, primal and dual.

    An infeasible problem is an answer too: exit code 0 and feasible = false. Where thresholds can
    be met only with equality the Slater gap is 0, and the algorithms that need one are named.
    """
    from cmdplab.algorithms import needing_slack
    from cmdplab.cmdp.problem import CMDP
    from cmdplab.display.terminal import facts, number, numbers
    from cmdplab.solvers import solve

    if policy is not None and policy.suffix not in (".npz", ".csv", ".json"):
        raise InputError(f"{policy} is no .npz, .csv or .json")
    s = solve(asked.cmdp)
    if policy is not None:
        if s.policy is None:
            raise InputError(f"{asked.cmdp.name} has no optimal policy: {s.message}")
        s.policy.save(policy)
    as_published = _as_published(asked, s.value)
    finite = isinstance(asked.cmdp, CMDP)
    lost = needing_slack() if s.slater_gap == 0.0 and finite else []
    if as_json:
        found = {name: getattr(s, name) for name in ("value", "multiplier", "slater_gap")}
        found |= {"primal": s.primal, "dual": s.dual, "gap": s.duality_gap, "feasible": s.feasible}
        found |= {"message": s.message, "without_guarantee": lost}
        print_json("solve", found | as_published)
        return
    rows = [("feasible", _feasible(s.feasible, s.message))]
    rows += [("value", number(s.value, 10))]
    if as_published["published_value"] is not None:
        words = "{published_value:.10f} ({published_unit})".format(**as_published)
        rows += [("in the units of its source", words)]
    rows += [("multiplier", numbers(s.multiplier))]
    rows += [("Slater gap", number(s.slater_gap, 6))]
    rows += [("primal", number(s.primal, 10)), ("dual", number(s.dual, 10))]
    rows += [
        ("certificate |dual - primal|", "–" if s.duality_gap is None else f"{s.duality_gap:.1e}")
    ]
    rows += [("lose their guarantee", ", ".join(lost))] * bool(lost)
    facts(console(), asked.cmdp.name, rows)


def _as_published(asked: AskedAny, value: float | None) -> dict[str, Any]:
    """An optimum in the units of its source: of an environment, or of the file that was read."""
    from cmdplab.environments import named

    known = named(asked.name)
    units = asked.cmdp.labels.signals if known is None else known.units
    if not units or value is None:
        return {"published_value": None, "published_unit": None}
    return {"published_value": units[0].published(value), "published_unit": units[0].of}


def _feasible(feasible: bool, message: str) -> str:
    """Yes or no, and what there is to say about it."""
    return ("yes" if feasible else "no") + (f": {message}" if message else "")


@given(asked_problem)
def describe_command(asked: Asked, as_json: Json = False) -> None:
    """What a problem is like: sizes, which constraints bind, what they cost, how much slack.

    And how to choose a threshold: what policies can reach, what reward-optimal ones reach, and
    the price along the way.
    """
    from cmdplab.display.terminal import facts, number, numbers
    from cmdplab.environments.description import describe

    d = describe(asked.cmdp)
    if as_json:
        print_json("describe", d)
        return
    sizes = f"{d.states} states, {d.actions} actions, horizon {d.horizon}, start {d.start}"
    rows = [("sizes", sizes), ("constraints", str(d.constraints))]
    rows += [("thresholds", numbers(d.threshold, 4))]
    rows += [("largest utility", numbers(d.largest_utility, 4))]
    rows += [("feasible", _feasible(d.feasible, d.message))]
    rows += [("optimum", number(d.optimum, 6))]
    rows += [("without constraints", number(d.unconstrained_optimum, 6))]
    binding = [str(n + 1) for n, binds in enumerate(d.binding or []) if binds]
    rows += [("binding", ", ".join(binding) or "none"), ("multiplier", numbers(d.multiplier))]
    rows += [("Slater gap", number(d.slater_gap, 6))]
    rows += [("lose their guarantee", ", ".join(d.without_guarantee))] * bool(d.without_guarantee)
    facts(console(), d.name, rows)
    for range_ in d.ranges:
        _print_range(range_, d.horizon)


def _print_range(r: ThresholdRange, horizon: int) -> None:
    """Print the range of one threshold, and the price along it."""
    from cmdplab.display.terminal import grid, number

    print_line(
        f"threshold {r.constraint}: policies reach utilities from {r.smallest:.4g} to "
        f"{r.largest_alone:.4g} (as a cost 1 - utility: {horizon - r.largest_alone:.4g} to "
        f"{horizon - r.smallest:.4g}); a reward-optimal policy reaches {r.reward_optimal:.4g}"
    )
    if r.threshold is None or r.value is None or r.multiplier is None:
        print_line("the other constraints cannot be met, whatever this one")
        return
    rows = [
        [number(b), number(horizon - b), number(v), number(m)]
        for b, v, m in zip(r.threshold, r.value, r.multiplier, strict=True)
    ]
    header = ["threshold", "as a budget", "optimal value", "multiplier"]
    grid(console(), "free up to the first, impossible beyond the last", header, rows, left=0)


def list_command(
    what: Annotated[Listing, typer.Argument(help="What to list.")],
    at: Annotated[
        str | None, typer.Option(help="Evaluate Table 1's orders at the sizes of this problem.")
    ] = None,
    episodes: Annotated[int | None, count("K, with --at; 100,000.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="Accuracy, with --at; 0.1.")] = None,
    instance_seed: InstanceSeed = 0,
    as_json: Json = False,
) -> None:
    """List the algorithms, with the paper's Table 1, or the environments.

    JSON has more: needs, guarantees, provenance of every constant, known slips of the table.
    """
    from cmdplab.cli.tables import print_environments
    from cmdplab.display.terminal import grid
    from cmdplab.environments import catalogue
    from cmdplab.formats import find

    with_at = {
        "--episodes": episodes,
        "--epsilon": epsilon,
        "--instance-seed": instance_seed or None,
    }
    idle = [name for name, value in with_at.items() if value is not None and at is None]
    if what is Listing.environments and (at is not None or idle):
        name = "--at" if at is not None else idle[0]
        raise InputError(f"{name} is for `cmdplab list algorithms`")
    if idle:
        raise InputError(f"{idle[0]} needs --at, which evaluates Table 1 for a problem")
    if what is Listing.environments:
        rows = catalogue.list_environments()
        if as_json:
            print_json("list-environments", {"environments": rows})
        else:
            print_environments(rows)
        return
    rows = catalogue.list_algorithms()
    orders = None
    if at is not None:
        problem = find(at, instance_seed)
        K, accuracy = 100_000 if episodes is None else episodes, 0.1 if epsilon is None else epsilon
        orders = catalogue.table_1_at(problem, K, accuracy)
    if as_json:
        print_json("list-algorithms", {"algorithms": rows, "table_1_at": orders})
        return
    _print_algorithms(rows)
    if orders is not None:
        cells = [[str(o["name"]), *(_order(o[c]) for c in ("regret", "violation", "pac"))]
                 for o in orders]  # fmt: skip
        title = f"orders at {at}, K = {K:,}, epsilon = {accuracy:g}: no constants, no logs"
        grid(console(), title, ["algorithm", "regret", "violation", "PAC"], cells)


def _order(value: object) -> str:
    return f"{value:.1e}" if isinstance(value, float) else str(value or "–")


def _print_algorithms(rows: list[dict[str, Any]]) -> None:
    from cmdplab.display.terminal import grid

    cells = [
        [r["name"] + "*" * bool(r["unverified"]), ", ".join(r["presets"]), r["summary"]]
        for r in rows
    ]
    grid(console(), "algorithms", ["name", "presets", "summary"], cells, left=3)
    console().print("* some constants are [unverified]: --json says which", style="dim")
    console().print()
    lines = [(r["name"], r["table_1"], r["needs"][r["presets"][-1]]) for r in rows if r["table_1"]]
    cells = []
    for name, line, needs in lines:
        strong = "+" * line["regret_strong"]
        orders = [f"{line['regret']}{strong and ' ' + strong}" if line["regret"] else "–"]
        orders += [line["violation"] + "+" * line["violation_strong"], line["pac"] or "–"]
        cells.append([name + "'" * bool(line["slip"]), *orders, ", ".join(needs) or "nothing"])
    header = ["Table 1, N = 1", "regret", "violation", "PAC", "needs to know"]
    grid(console(), "guarantees, as proved at scale 1", header, cells, left=5)
    console().print("+ strong; ' see the note below; orders up to logarithms", style="dim")
    for name, line, _ in lines:
        if line["slip"]:
            print_note(f"{name}: {line['slip']}")


@given(asked_problem)
def frontier_command(
    asked: Asked,
    constraint: Annotated[int, count("Which constraint, counted from 1.")] = 1,
    points: Annotated[int, count("How many thresholds.")] = 41,
    figure: Annotated[Path | None, typer.Option(help="Draw it: .png, .pdf or .svg.")] = None,
    as_json: Json = False,
) -> None:
    """The price of a promise: the optimal value against a threshold, with multipliers.

    From where the constraint begins to bind to the largest threshold that can be met: the answer
    to "how should I choose the threshold?".
    """
    from cmdplab.display.terminal import grid, number
    from cmdplab.figures.plots import draw_frontier
    from cmdplab.solvers.thresholds.frontier import frontier

    if figure is not None and figure.suffix not in (".png", ".pdf", ".svg"):
        raise InputError(f"{figure} is no .png, .pdf or .svg")
    name = asked.cmdp.name
    found = frontier(asked.cmdp, constraint, points)
    if figure is not None:
        draw_frontier(found, name, figure)
    if as_json:
        print_json("frontier", found)
        return
    shown = _some(points)
    rows = [
        [number(found.threshold[n]), number(found.value[n]), number(found.multiplier[n])]
        for n in shown
    ]
    title = f"{name}, constraint {constraint}"
    grid(console(), title, ["threshold", "optimal value", "multiplier"], rows, left=0)
    if len(shown) < points:
        console().print(f"{len(shown)} of {points} points; --json has all", style="dim")
    words = f"free up to {found.free:.6g}, impossible beyond {found.largest:.6g}; "
    words += f"its own threshold is {found.given:.6g}; certified to {found.certificate:.0e}"
    print_line(words)


def _some(points: int) -> list[int]:
    """Which points of a frontier a table shows: about a dozen, the first and the last always."""
    rows = min(points, SHOWN)
    return [round(n * (points - 1) / (rows - 1)) for n in range(rows)]


@given(asked_problem)
def convert_command(
    asked: Asked,
    out: Annotated[Path, typer.Argument(help="Where to write: a .npz or a .drn file.")],
    as_json: Json = False,
) -> None:
    """Write a problem in another format: .npz, or .drn for Storm (docs/own-problem.md)."""
    from cmdplab.formats import convert

    convert(asked.cmdp, out)
    print_file("convert", out, as_json)
