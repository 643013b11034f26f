"""CPU seconds of the first use, from an empty cache, and of the next one."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile

TEN_LINES = """
import cmdplab
problem = cmdplab.make("published")
print(cmdplab.solve(problem).value)
for name in ("UOpt-RPGPD", "No-regularization"):
    print(cmdplab.run(problem, cmdplab.algorithm(name), episodes=30_000, seed=0).summary)
"""
COMMAND = ("-m", "cmdplab")
USES = {
    "import cmdplab": ("-c", "import cmdplab"),
    "cmdplab --help": (*COMMAND, "--help"),
    "solve": (*COMMAND, "solve", "three-state"),
    "run, primal-dual": (*COMMAND, "run", "three-state", "--episodes", "1000"),
    "run, planner": (*COMMAND, "run", "three-state", "--algorithm", "OptCMDP", "--episodes", "100"),
    "run, Triple-Q": (
        *COMMAND,
        "run",
        "three-state",
        "--algorithm",
        "Triple-Q",
        "--episodes",
        "100",
    ),
    "the README's ten lines": ("-c", TEN_LINES),
    "compare, 100 episodes": (*COMMAND, "compare", "--episodes", "100", "--out", "compared"),
}


def seconds(arguments: tuple[str, ...], folder: str) -> float:
    """User and system time of one process, in a folder that holds its cache."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"NUMBA_CACHE_DIR": folder, "MPLCONFIGDIR": folder}
    subprocess.run(
        [sys.executable, *arguments], env=environment, cwd=folder, check=True, capture_output=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    print(f"{'CPU seconds':24}{'first':>8}{'next':>8}")
    for name, arguments in USES.items():
        with tempfile.TemporaryDirectory() as folder:
            first, following = (seconds(arguments, folder) for _ in range(2))
        print(f"{name:24}{first:8.2f}{following:8.2f}", flush=True)


if __name__ == "__main__":
    main()
