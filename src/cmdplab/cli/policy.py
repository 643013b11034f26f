"""`cmdplab evaluate` and `explain`: what a policy earns, and what it does in a state and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from cmdplab.cli.options import (
    Asked,
    Json,
    asked_problem,
    console,
    count,
    given,
    print_json,
    print_line,
)

PolicyFile = Annotated[
    Path, typer.Argument(help="A .npz, .csv or .json file, as `cmdplab solve --policy` writes it.")
]


@given(asked_problem)
def evaluate_command(
    asked: Asked,
    policy: PolicyFile,
    episodes: Annotated[
        int | None, count("Play so many episodes too, and give means with 95 % intervals.")
    ] = None,
    seed: Annotated[int, count("Of the episodes that are played.")] = 0,
    as_json: Json = False,
) -> None:
    """What a policy from a file earns on a problem: exactly, and with --episodes by simulation.

    A .csv has the columns step, state, action and probability, by names or numbers; without a
    column step one policy serves every step. States that it never reaches may be left out.
    """
    from cmdplab import Policy, evaluate, simulate
    from cmdplab.display.terminal import grid, number

    problem = asked.cmdp
    loaded = Policy.load(policy, problem)
    exact = evaluate(problem, loaded)
    played = None if episodes is None else simulate(problem, loaded, episodes, seed)
    names = [problem.labels.signal(n).of for n in range(1 + problem.constraints)]
    if as_json:
        found: dict[str, Any] = {"problem": problem.name, "policy": loaded.name, "signals": names}
        found |= {"returns": exact.returns, "threshold": problem.threshold}
        found |= {"violation": exact.violation, "meets_every_threshold": _met(exact.violation)}
        found |= {"episodes": episodes, "seed": None if played is None else seed}
        found["simulated"] = None if played is None else [each._asdict() for each in played.earned]
        print_json("evaluate", found)
        return
    header = ["", "exact", "threshold", "violation"]
    header += ["mean", "95 % from", "to"] if played else []
    rows = []
    for n, name in enumerate(names):
        limits = ["–", "–"]
        if n:
            limits = [number(problem.threshold[n - 1], 6), number(exact.violation[n - 1], 6)]
        row = [name, number(exact.returns[n], 6), *limits]
        if played:
            each = played.earned[n]
            row += [number(each.mean, 6), number(each.low, 6), number(each.high, 6)]
        rows.append(row)
    grid(console(), f"{loaded.name} on {problem.name}", header, rows)
    if problem.constraints:
        met = "meets every threshold" if _met(exact.violation) else "misses a threshold"
        print_line(f"the policy {met}; a violation above 0 is what is missing")


def _met(violation: Any) -> bool:
    return bool((violation <= 1e-9).all())  # but for rounding


@given(asked_problem)
def explain_command(
    asked: Asked,
    state: Annotated[str, typer.Argument(help="A state, by its name or its number.")],
    step: Annotated[str, typer.Option(help="The step, by its name or its number.")] = "0",
    policy: Annotated[
        Path | None, typer.Option(help="A file with another policy than the optimal one.")
    ] = None,
    counter: Annotated[
        int | None, count("The level of its counter, if it has one; default: where it starts.")
    ] = None,
    as_json: Json = False,
) -> None:
    """What the optimal policy does in a state and why: action values, prices, what is given up.

    The last column adds up the objective and every utility times its price (the multiplier):
    what the optimum plays has the most of it.
    """
    from cmdplab import Policy, explain
    from cmdplab.display.terminal import grid

    problem = asked.cmdp
    played = None if policy is None else Policy.load(policy, problem)
    found = explain(problem, state, step, policy=played, count=counter)
    if as_json:
        values = found._asdict()
        print_json("explain", values | {"text": found.text})
        return
    print_line(found.text)
    header, rows = found.table()
    grid(console(), "", header, rows)
