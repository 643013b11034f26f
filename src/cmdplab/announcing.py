"""What compiles says so, once in a process: what it is and about how long it takes."""

from __future__ import annotations

import os
import sys

QUIET = "CMDPLAB_QUIET"  # set to anything but 0, nothing is said, in worker processes too

# Seconds of one core, from an empty cache; `make bench-compiling` measures them.
PARTS = {
    "cmdplab.solvers": ("the solver", 2),
    "cmdplab.engines.kernels": ("the engine of primal-dual algorithms", 6),
    "cmdplab.engines.planning_kernels": ("the engine of planners", 10),
    "cmdplab.engines.triple_q_kernels": ("the engine of Triple-Q", 4),
    "cmdplab.gym": ("the draws of a vectorised environment", 1),
}
_SAID: set[str] = set()


def quiet(yes: bool = True) -> None:
    """Say nothing when something is compiled, in this process and those that it starts."""
    os.environ[QUIET] = "1" if yes else "0"


def announce(module: str) -> None:
    """Say that what a module holds is being compiled, on stderr, if nobody did."""
    name = next((each for each in PARTS if module.startswith(each)), None)
    if name is None or name in _SAID or os.environ.get(QUIET, "0") not in ("", "0"):
        return
    _SAID.add(name)
    what, seconds = PARTS[name]
    print(
        f"compiling {what} for its first use: about {seconds} s, once for this version",
        file=sys.stderr,
        flush=True,
    )
