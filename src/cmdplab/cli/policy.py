"""`cmdplab evaluate` and `explain` a policy; `advise` an algorithm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cmdplab.cli.options import Problem, asked_in_units, command
from cmdplab.cli.output import Answer, print_line, print_rows, print_table
from cmdplab.errors import InputError


@command(asked_in_units)
def evaluate_command(
    problem: Problem,
    policy: Path,
    episodes: int | None = None,
    seed: int = 0,
) -> Answer:
    """Evaluate a policy from a file on a problem: exactly, and with --episodes by simulation.

    A .csv has the columns step, state, action and probability, by names or numbers; without a
    column step one policy serves every step. States that it never reaches may be left out.
    """
    from cmdplab import Policy, evaluate, simulate

    loaded = Policy.load(policy, problem)
    exact = evaluate(problem, loaded)
    played = None if episodes is None else simulate(problem, loaded, episodes, seed)
    scales = [problem.labels.signal(n) for n in range(1 + problem.constraints)]
    met = bool((exact.violation <= 1e-9).all())  # but for rounding
    found: dict[str, Any] = {"problem": problem.name, "policy": loaded.name}
    found |= {"signals": [scale.of for scale in scales], "returns": exact.returns}
    found |= {"threshold": problem.threshold, "violation": exact.violation}
    found |= {"meets_every_threshold": met, "episodes": episodes, "units": problem.labels.signals}
    found |= {"seed": None if played is None else seed, "cut": None, "simulated": None}
    if played is not None:
        found |= {"cut": played.cut, "simulated": played.earned}

    def show() -> None:
        rows = []
        for n, scale in enumerate(scales):
            row = {"signals": scale.of, "returns": scale.published(exact.returns[n])}
            row |= {"threshold": None, "violation": None}
            if n:
                limit = f"{scale.published(problem.threshold[n - 1]):.6g}"
                row["threshold"] = f"{'<=' if scale.factor < 0.0 else '>='} {limit}"
                row["violation"] = abs(scale.factor) * exact.violation[n - 1]
            if played:
                low, high = sorted(
                    map(scale.published, (played.earned[n].low, played.earned[n].high))
                )
                row |= {"low": low, "mean": scale.published(played.earned[n].mean), "high": high}
            rows.append(row)
        columns = "signals returns threshold violation" + " mean low high" * bool(played)
        title = f"{loaded.name} on {problem.name}"
        print_rows(title, "EvaluatePage SimulatedReturn", columns, rows)
        if problem.constraints:
            said = "meets every threshold" if met else "misses a threshold"
            print_line(f"the policy {said}; what is missing is below 0 where there is room")
        if played and any(played.cut):
            cut = ", ".join(f"{each:.2g}" for each in played.cut)
            print_line(
                f"paths of {played.steps:,} steps: what comes after them changes the returns by at "
                f"most {cut}, which the intervals include"
            )

    return Answer("evaluate", found, show)


@command(asked_in_units)
def explain_command(
    problem: Problem,
    state: str,
    step: str | None = None,
    policy: Path | None = None,
    counter: int | None = None,
) -> Answer:
    """Explain the optimal policy in a state: action values, prices, and the reward given up.

    The last column adds up the objective and every utility times its price (the multiplier):
    what the optimum plays has the most of it.
    """
    from cmdplab import Policy, explain

    played = None if policy is None else Policy.load(policy, problem)
    found = explain(problem, state, step, policy=played, count=counter)

    def show() -> None:
        print_line(found.text)
        print_table("", *found.table())

    return Answer("explain", found._asdict() | {"text": found.text}, show)


@command()
def advise_command(
    target: str,
    horizon: int | None = None,
    constraints: int = 1,
    episodes: int | None = None,
    safe: bool = False,
) -> Answer:
    """Advise which algorithm to try first, by rules from a table of small measurements."""
    from cmdplab.cmdp.problem import CMDP
    from cmdplab.live.advice import advise

    asked = _found(target)
    if horizon is not None and isinstance(asked, CMDP) and asked.horizon != horizon:
        raise InputError(f"{target} has the horizon {asked.horizon}: --horizon is for environments")
    found = advise(asked, horizon=horizon, constraints=constraints, episodes=episodes, safe=safe)
    value = {"target": target, **found._asdict()}
    return Answer("advise", value, lambda: print_line(str(found), soft_wrap=True))


def _found(target: str) -> Any:
    """Return the problem of a name or a file, else the environment of a Gymnasium identifier."""
    from cmdplab.errors import CmdplabError
    from cmdplab.formats.find import find

    try:
        return find(target)
    except CmdplabError as error:
        if Path(target).is_file():
            raise
        unknown = str(error)
    try:
        import gymnasium

        return gymnasium.make(target)
    except ImportError:
        raise InputError(f"{unknown}; Gymnasium is not installed") from None
    except Exception as error:  # whatever an environment raises while it is made
        first = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"{unknown}; and for Gymnasium: {first}") from None
