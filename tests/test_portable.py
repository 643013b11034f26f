"""Nothing that only POSIX has is needed to import, solve, run, compare and sweep.

A process is made to look as on Windows where the package could tell the difference: modules that
are missing there cannot be imported, signals and calls are gone, and `msvcrt` locks files.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

ELSEWHERE = """
import os, signal, subprocess, sys, types
import multiprocessing.connection, multiprocessing.context, multiprocessing.popen_spawn_posix
import multiprocessing.resource_tracker  # they ask for msvcrt, to know where they are

def pretend():
    import fcntl as posix
    multiprocessing.resource_tracker.ensure_running()  # the library's own, which Windows lacks
    msvcrt = types.ModuleType("msvcrt")
    msvcrt.LK_NBLCK = 2
    msvcrt.locking = lambda handle, how, size: posix.flock(handle, posix.LOCK_EX | posix.LOCK_NB)
    sys.modules["msvcrt"] = msvcrt
    for name in ("fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"):
        sys.modules[name] = None
    for name in ("SIGHUP", "SIGCONT", "SIGBUS", "SIGSYS", "SIGUSR1", "pthread_sigmask"):
        delattr(signal, name)
    for name in ("fork", "getuid", "geteuid", "getloadavg", "sched_getaffinity"):
        delattr(os, name)

"""

IN_MEMORY = """
import cmdplab
problem = cmdplab.make("three-state")
print(cmdplab.solve(problem).feasible)
print(cmdplab.run(problem, cmdplab.algorithm("UOpt-RPGPD"), 20).summary.episodes)
print(*cmdplab.compare(problem, ["UOpt-RPGPD", "OptCMDP"], episodes=20, seeds=1).runs)
"""

LOCKS = """
from pathlib import Path
from cmdplab.errors import StorageError
from cmdplab.files.locks import BusyError, locked, removed
path = Path(sys.argv[1]) / ".lock"
for _ in range(2):  # what was left behind holds nobody up
    with locked(path):
        try:
            with locked(path):
                print("two hold it")
        except BusyError as error:
            print(isinstance(error, StorageError))
with locked(path):
    removed(path)
print(path.exists())
"""

SWEEP = """
import cmdplab
from cmdplab.experiments.experiment import parse_experiment
asked = parse_experiment({"name": "small", "episodes": 20, "seeds": 2,
    "problems": [{"environment": "three-state"}], "algorithms": [{"name": "UOpt-RPGPD"}]}, "here")
for _ in range(2):
    found = cmdplab.sweep(asked, sys.argv[1], workers=1)
    print(*[each.status for each in found])
print(cmdplab.load_runs(sys.argv[1]).num_rows > 0)
"""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (IN_MEMORY, ["True", "20", "UOpt-RPGPD OptCMDP"]),
        (LOCKS, ["True", "True", "False"]),
        (SWEEP, ["done done", "done done", "True"]),
    ],
    ids=["in memory", "locks", "a sweep"],
)
def test_it_works_where_there_is_no_posix(program, expected, tmp_path):
    body = "\n".join(f"    {line}" for line in ["pretend()", *program.splitlines()])
    file = tmp_path / "program.py"
    file.write_text(f'{ELSEWHERE}if __name__ == "__main__":\n{body}\n')
    call = [sys.executable, str(file), str(tmp_path / "out")]
    (tmp_path / "out").mkdir()
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == expected
