"""`cmdplab list`: the algorithms with the paper's Table 1, or the environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from cmdplab.cli.options import InstanceSeed, Json, Listing, argument, count, option
from cmdplab.cli.output import print_json, print_line, print_note, print_table
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
        cells = [[str(o["name"]), *(_order(o[c]) for c in ("regret", "violation", "pac"))]
                 for o in orders]  # fmt: skip
        title = f"orders at {at}, K = {K:,}, epsilon = {accuracy:g}: no constants, no logs"
        print_table(title, ["algorithm", "regret", "violation", "PAC"], cells)


def _order(value: object) -> str:
    return f"{value:.1e}" if isinstance(value, float) else str(value or "–")


def _print_algorithms(rows: list[dict[str, Any]]) -> None:

    cells = [
        [r["name"] + "*" * bool(r["unverified"]), ", ".join(r["presets"]), r["summary"]]
        for r in rows
    ]
    print_table("algorithms", ["name", "presets", "summary"], cells, left=3)
    print_note("* some constants are [unverified]: --json says which\n")
    lines = [(r["name"], r["table_1"], r["needs"][r["presets"][-1]]) for r in rows if r["table_1"]]
    cells = []
    for name, line, needs in lines:
        strong = "+" * line["regret_strong"]
        orders = [f"{line['regret']}{strong and ' ' + strong}" if line["regret"] else "–"]
        orders += [line["violation"] + "+" * line["violation_strong"], line["pac"] or "–"]
        cells.append([name + "'" * bool(line["slip"]), *orders, ", ".join(needs) or "nothing"])
    header = ["Table 1, N = 1", "regret", "violation", "PAC", "needs to know"]
    print_table("guarantees, as claimed at scale 1", header, cells, left=5)
    print_note("+ strong; ' see the note below; orders up to logarithms")
    for name, line, _ in lines:
        if line["slip"]:
            print_note(f"{name}: {line['slip']}")


def print_environments(rows: Sequence[dict[str, Any]]) -> None:
    """Sizes, certified values as `solve` prints them, the source's own, what was cut."""
    sizes = ("states", "actions", "horizon", "constraints")
    cells = []
    for row in rows:
        values = ["–", "–", "–"]
        if row["published"] is not None:
            prices = " ".join(f"{each:.3g}" for each in row["multipliers"]) or "none"
            values = [f"{row['optimum']:.6g}", prices, f"{row['published']['optimum']:.6g}"]
        mark = "*" * bool(row["unverified"])
        shape = ["–" if row[size] is None else str(row[size]) for size in sizes]
        cells.append([row["name"] + mark, row["summary"], *shape, *values])
    header = ["environment", "summary", "X", "A", "H", "N", "optimum", "multipliers", "published"]
    print_table("environments", header, cells, left=2, least=("summary",))
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
