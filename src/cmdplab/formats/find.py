"""A problem by name or file, whatever its format, and from one format to another.

The door of the command line: everything that takes the name of a problem goes through it.
"""

from __future__ import annotations

from pathlib import Path

from cmdplab import environments
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.formats.drn import read_drn, write_drn
from cmdplab.formats.roles import Roles

WRITERS = {".npz": CMDP.save, ".drn": write_drn}


def find(what: str, seed: int = 0, roles: Roles | None = None) -> CMDP:
    """The problem of a .drn or .npz file, or the environment of that name.

    `roles` are for DRN files, where they replace those that a file of ours holds.
    """
    if what.endswith(".drn"):
        if seed:
            raise InputError(environments.no_instances(what, seed))
        return read_drn(what, roles)
    if roles is not None:
        raise InputError(f"{what} is no .drn file: it knows its objective and constraints itself")
    return environments.find(what, seed)


def read_problem(path: str | Path) -> CMDP:
    """The problem of a .drn file of ours, or of a .npz file."""
    return read_drn(path) if Path(path).suffix == ".drn" else CMDP.load(path)


def convert(problem: CMDP, out: str | Path) -> None:
    """Write the problem in the format that the name of the file asks for."""
    path = Path(out)
    if path.suffix not in WRITERS:
        raise InputError(f"{path} is no {' or '.join(WRITERS)}")
    WRITERS[path.suffix](problem, path)
