"""Announcement of long waits for compilation, on stderr.

Each message names the code that is compiled and an approximate time, once per process. Cached code
gives no message. `CMDPLAB_QUIET=1`, or `cmdplab.quiet()`, turns messages off.
"""

from __future__ import annotations

import multiprocessing
import os
import sys

QUIET = "CMDPLAB_QUIET"

# Seconds of one core from an empty cache; `python benchmarks/compiling.py` measures them.
COMPILED = {
    "cmdplab.solvers": ("the solver", 3),
    "cmdplab.algorithms.families.primal_dual": ("the engine of primal-dual algorithms", 6),
    "cmdplab.algorithms.families.planner": ("the engine of planners", 12),
    "cmdplab.algorithms.running.seen": ("the lists of what was seen", 2),
    "cmdplab.algorithms.families.triple_q": ("the engine of Triple-Q", 3),
    "cmdplab.algorithms.families.softmax_search": ("the engine of OPSE", 9),
    "cmdplab.algorithms.families.unconstrained": ("the engine of UCBVI and UCRL2", 3),
    "cmdplab.algorithms.families.safe": ("the engine of learners inside a coin", 14),
    "cmdplab.gym": ("the draws of many environments at once", 1),
}
_SAID: set[str] = set()


def quiet(yes: bool = True) -> None:
    """Turn announcements off, also for processes started from now on. False: turn them on."""
    os.environ[QUIET] = "1" if yes else ""


def announce_compiling(module: str) -> None:
    """Announce that functions of a module are being compiled."""
    for name, (what, seconds) in COMPILED.items():
        if module.startswith(name):
            announce(f"compiling {what}: about {seconds} s, once for this version")


def announce(sentence: str) -> None:
    """Print a sentence on stderr, if it was not printed before. Only the first worker prints."""
    worker = multiprocessing.parent_process() and multiprocessing.current_process().name
    if worker and not worker.endswith("-1"):  # all workers wait for the same code
        return
    if sentence in _SAID or os.environ.get(QUIET, "") not in ("", "0"):
        return
    _SAID.add(sentence)
    print(sentence, file=sys.stderr, flush=True)
