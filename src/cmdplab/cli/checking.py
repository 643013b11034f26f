"""`cmdplab verify-trace` and `cmdplab bench`: is it right, and is it fast?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cmdplab.cli.options import Json, console, print_json


def verify_command(
    file: Annotated[Path, typer.Argument(help="A recorded trace: docs/records.md.")],
    as_json: Json = False,
) -> None:
    """Replay a recorded trace of the authors' notebook and print the largest differences."""
    from cmdplab.presenting import grid
    from cmdplab.trace import verify_trace

    found = verify_trace(file)
    if as_json:
        print_json("verify-trace", {"algorithms": found})
        return
    header = ["algorithm", "gap", "violation", "multiplier", "policy"]
    rows = [[name, *(f"{each:.1e}" for each in d)] for name, d in found.items()]
    grid(console(), f"largest differences to {file.name}", header, rows)


def bench_command(
    quick: Annotated[bool, typer.Option(help="Only the paper's size.")] = False,
    as_json: Json = False,
) -> None:
    """Microseconds per episode of each engine, then of the CPU engine over sizes.

    One core and float64, exact returns of every episode included; rows with two runs use two cores.
    """
    from cmdplab.bench import benchmark
    from cmdplab.presenting import grid

    timings = list(benchmark(quick))
    if as_json:
        print_json("bench", {"timings": timings})
        return
    rows = [[str(v) for v in t[:-1]] + [f"{t.us_per_episode:.2f}"] for t in timings]
    header = ["engine", "algorithm", "X", "A", "H", "N", "runs", "us/episode"]
    grid(console(), "time per episode", header, rows, left=2)
