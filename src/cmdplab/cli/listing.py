"""`cmdplab list`: the algorithms with the paper's Table 1, or the environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from cmdplab.cli.options import InstanceSeed, Json, Listing, argument, count, option
from cmdplab.cli.output import print_json, print_line, print_note, print_rows, print_table
from cmdplab.errors import InputError


def list_command(
    what: Annotated[Listing, argument("What to list.")],
    at: Annotated[
        str | None, option("Evaluate Table 1's orders at the sizes of this problem.")
    ] = None,
    episodes: Annotated[int | None, count("K, with --at; 100,000.")] = None,
    epsilon: Annotated[float | None, option("Accuracy, with --at; 0.1.")] = None,
    instance_seed: InstanceSeed = 0,
    as_json: Json = False,
) -> None:
    """List the algorithms, with the paper's Table 1, or the environments.

    JSON has more: needs, guarantees, provenance of every constant, known slips of the table.
    """
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
        title = f"orders at {at}, K = {K:,}, epsilon = {accuracy:g}: no constants, no logs"
        shown = [{k: None if v == "" else v for k, v in order.items()} for order in orders]
        print_rows(title, "OrderAt", "name regret violation pac", shown)


def _print_algorithms(rows: list[dict[str, Any]]) -> None:
    starred = [row | {"name": row["name"] + "*" * bool(row["unverified"])} for row in rows]
    print_rows("algorithms", "ListedAlgorithm", "name presets summary", starred)
    print_note("* some constants are [unverified]: --json says which\n")
    table = []
    for row in rows:
        if line := row["table_1"]:
            strong = " +" * line["regret_strong"]
            regret = f"{line['regret']}{strong}" if line["regret"] else "–"
            orders = [
                regret,
                line["violation"] + "+" * line["violation_strong"],
                line["pac"] or "–",
            ]
            needs = ", ".join(row["needs"][row["presets"][-1]]) or "nothing"
            table.append([row["name"] + "'" * bool(line["slip"]), *orders, needs])
    header = ["Table 1, N = 1", "regret", "violation", "PAC", "needs to know"]
    print_table("guarantees, as claimed at scale 1", header, table, left=5)
    print_note("+ strong; ' see the note below; orders up to logarithms")
    for row in rows:
        if row["table_1"] and row["table_1"]["slip"]:
            print_note(f"{row['name']}: {row['table_1']['slip']}")


def _prices(row: dict[str, Any]) -> str:
    if row["multipliers"] is None:
        return "–"
    return " ".join(f"{price:.3g}" for price in row["multipliers"]) or "none"


def print_environments(rows: Sequence[dict[str, Any]]) -> None:
    """Print sizes, certified values as `solve` prints them, and the source's own."""
    shown = []
    for row in rows:
        known = row["published"] is not None
        numbers = {name: row[name] if known else None for name in ("optimum", "multipliers")}
        published = row["published"]["optimum"] if known else None
        name = row["name"] + "*" * bool(row["unverified"])
        shown.append(row | numbers | {"name": name, "published": published})
    print_rows(
        "environments",
        "ListedEnvironment",
        "name summary states actions horizon constraints optimum multipliers published",
        shown,
        least=("summary",),
        multipliers=_prices,
    )
    print_note(
        "optimum and multipliers are certified, in the units of `cmdplab solve` (rewards in "
        "[0, 1]); published: the same optimum in the units of the source; – one for every seed: "
        "see `cmdplab solve`; * something is [unverified]; --json: both units, sources"
    )
    for row in rows:
        if row["tail_bound"] is not None:
            print_line(
                f"{row['name']}: cut from an infinite horizon, losing <= {row['tail_bound']:.1e}"
            )
