"""`cmdplab verify-trace` and `cmdplab bench`: is it right, and is it fast?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cmdplab.cli.options import Json, argument, option
from cmdplab.cli.output import print_json, print_table


def verify_command(
    file: Annotated[Path, argument("A recorded trace: docs/records.md.")],
    as_json: Json = False,
) -> None:
    """Replay a recorded trace of published code and print the largest differences."""
    from cmdplab.testing.released_trace import verify_trace

    found = verify_trace(file)
    if as_json:
        print_json("verify-trace", {"algorithms": found})
        return
    title = f"largest differences to {file.name}"
    for fields in dict.fromkeys(each._fields for each in found.values()):
        mine = {name: each for name, each in found.items() if each._fields == fields}
        rows = [[name, *(f"{number:.1e}" for number in each)] for name, each in mine.items()]
        print_table(title, ["algorithm", *fields], rows)


def bench_command(
    quick: Annotated[bool, option("Only the paper's size.")] = False,
    as_json: Json = False,
) -> None:
    """Microseconds per episode of each engine, then of the CPU engine over sizes.

    One core and float64, exact returns of every episode included; rows with two runs use two cores.
    """
    from cmdplab.testing.bench import benchmark

    timings = list(benchmark(quick))
    if as_json:
        print_json("bench", {"timings": timings})
        return
    rows = [[str(v) for v in t[:-1]] + [f"{t.us_per_episode:.2f}"] for t in timings]
    header = ["engine", "algorithm", "X", "A", "H", "N", "runs", "us/episode"]
    print_table("time per episode", header, rows, left=2)
