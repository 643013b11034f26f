"""`cmdplab solve`, `cmdplab describe` and `cmdplab list`: what can be said before learning."""

from __future__ import annotations

from typing import Annotated

import typer

from cmdplab.cli.options import (
    InstanceSeed,
    Json,
    Listing,
    ProblemArgument,
    console,
    print_json,
)


def solve_command(
    problem: ProblemArgument, instance_seed: InstanceSeed = 0, as_json: Json = False
) -> None:
    """The certified optimum of a problem: value, multipliers, Slater gap, primal and dual.

    An infeasible problem, or one without a Slater point, is an answer too: exit code 0 and
    feasible = false.
    """
    from cmdplab import environments
    from cmdplab.presenting import facts, number, numbers
    from cmdplab.solvers import solve

    cmdp = environments.find(problem, instance_seed)
    s = solve(cmdp)
    if as_json:
        fields = ("value", "multiplier", "slater_gap", "primal", "dual", "gap", "feasible")
        print_json({f: getattr(s, f) for f in fields} | {"message": s.message})
        return
    rows = [("feasible", "yes" if s.feasible else f"no: {s.message}")]
    rows += [("value", number(s.value, 10)), ("multiplier", numbers(s.multiplier))]
    rows += [("Slater gap", number(s.slater_gap, 6))]
    rows += [("primal", number(s.primal, 10)), ("dual", number(s.dual, 10))]
    rows += [("certificate |dual - primal|", "–" if s.gap is None else f"{s.gap:.1e}")]
    facts(console(), cmdp.name, rows)


def describe_command(
    problem: ProblemArgument, instance_seed: InstanceSeed = 0, as_json: Json = False
) -> None:
    """What a problem is like: sizes, which constraints bind, what they cost, how much slack."""
    from cmdplab import environments
    from cmdplab.describing import describe
    from cmdplab.presenting import facts, number, numbers

    d = describe(environments.find(problem, instance_seed))
    if as_json:
        print_json(d)
        return
    sizes = f"{d.states} states, {d.actions} actions, horizon {d.horizon}, start {d.start}"
    rows = [("sizes", sizes), ("constraints", str(d.constraints))]
    rows += [("thresholds", numbers(d.threshold, 4))]
    rows += [("largest utility", numbers(d.largest_utility, 4))]
    rows += [("feasible", "yes" if d.feasible else f"no: {d.message}")]
    rows += [("optimum", number(d.optimum, 6))]
    rows += [("without constraints", number(d.unconstrained_optimum, 6))]
    binding = [str(n + 1) for n, binds in enumerate(d.binding or []) if binds]
    rows += [("binding", ", ".join(binding) or "none"), ("multiplier", numbers(d.multiplier))]
    rows += [("Slater gap", number(d.slater_gap, 6))]
    facts(console(), d.name, rows)


def list_command(
    what: Annotated[Listing, typer.Argument(help="What to list.")], as_json: Json = False
) -> None:
    """List the algorithms or the environments."""
    from cmdplab.listing import algorithms, environments
    from cmdplab.presenting import grid

    rows = algorithms() if what is Listing.algorithms else environments()
    if as_json:
        print_json(rows)
        return
    header = list(rows[0])
    cells = [[", ".join(v) if isinstance(v, list) else str(v) for v in r.values()] for r in rows]
    grid(console(), what.value, header, cells, left=len(header))
