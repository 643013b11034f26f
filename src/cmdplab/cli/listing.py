"""`cmdplab list`: the algorithms with the paper's Table 1, or the environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from cmdplab.cli.options import command, refuse
from cmdplab.cli.output import Answer, print_line, print_note, print_rows

Listing = Literal["algorithms", "environments"]


@command()
def list_command(
    what: Listing,
    at: str | None = None,
    episodes: int | None = None,
    epsilon: float | None = None,
    instance_seed: int = 0,
) -> Answer:
    """List the algorithms, with the paper's Table 1, or the environments.

    JSON has more: needs, guarantees, provenance of every constant, known slips of the table.
    """
    from cmdplab.environments import catalogue
    from cmdplab.formats import find

    sizes = {"--episodes": episodes, "--epsilon": epsilon, "--instance-seed": instance_seed or None}
    if what == "environments":
        refuse({"--at": at, **sizes}, "is for `cmdplab list algorithms`")
        rows = catalogue.list_environments()
        shown = {"environments": rows}
        return Answer("list-environments", shown, lambda: print_environments(rows))
    if at is None:
        refuse(sizes, "needs --at, which evaluates Table 1 for a problem")
    rows, orders = catalogue.list_algorithms(), None
    K, accuracy = 100_000 if episodes is None else episodes, 0.1 if epsilon is None else epsilon
    if at is not None:
        orders = catalogue.table_1_at(find(at, instance_seed), K, accuracy)

    def show() -> None:
        _print_algorithms(rows)
        if orders is not None:
            title = f"orders at {at}, K = {K:,}, epsilon = {accuracy:g}: no constants, no logs"
            shown = [{k: None if v == "" else v for k, v in order.items()} for order in orders]
            print_rows(title, "OrderAt", "name regret violation pac", shown)

    return Answer("list-algorithms", {"algorithms": rows, "table_1_at": orders}, show)


def _print_algorithms(rows: list[dict[str, Any]]) -> None:
    starred = [row | {"name": row["name"] + "*" * bool(row["unverified"])} for row in rows]
    print_rows("algorithms", "ListedAlgorithm", "name presets summary", starred)
    print_note("* some constants are [unverified]: --json says which\n")
    listed = [row | row["table_1"] for row in rows if row["table_1"]]
    print_rows(
        "Table 1, N = 1: guarantees, as claimed at scale 1",
        "ListedAlgorithm TableLine",
        "name regret violation pac needs",
        listed,
        name=lambda row: row["name"] + "'" * bool(row["slip"]),
        regret=lambda row: row["regret"] + " +" * row["regret_strong"] if row["regret"] else "–",
        violation=lambda row: row["violation"] + "+" * row["violation_strong"],
        needs=lambda row: ", ".join(row["needs"][row["presets"][-1]]) or "nothing",
    )
    print_note("+ strong; ' see the note below; orders up to logarithms")
    for row in listed:
        if row["slip"]:
            print_note(f"{row['name']}: {row['slip']}")


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
