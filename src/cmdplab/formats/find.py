"""A problem by its name or from a file of any format, and from one format to another.

Every command that takes the name of a problem uses this module.
"""

from __future__ import annotations

import os
from pathlib import Path

from cmdplab import environments
from cmdplab.cmdp.bundle import FILED, check_problem
from cmdplab.cmdp.horizons import with_an_end
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import FORMAT, StationaryCMDP
from cmdplab.errors import InputError
from cmdplab.files import read_sealed_npz
from cmdplab.formats.assemble import Problem
from cmdplab.formats.drn import read_drn, write_drn
from cmdplab.formats.roles import Roles
from cmdplab.formats.tables import read_csv

READERS = {".drn": read_drn, ".csv": read_csv}  # files that need roles


def find_any(what: str, seed: int = 0, roles: Roles | None = None) -> Problem:
    """Return the problem of a .drn, .csv or .npz file, or the environment of that name.

    `roles` are for DRN and CSV files; they replace roles that a DRN file holds.
    """
    if not isinstance(what, str):
        raise InputError(f"the problem is {type(what).__name__}, not a name or the path of a file")
    read = READERS.get(Path(what).suffix)
    stored = what.endswith(".npz") or (os.path.exists(what) and environments.named(what) is None)
    if seed and (stored or read is not None):
        raise InputError(environments.no_instances(what, seed))
    if read is not None:
        return read(what, roles)
    if roles is not None:
        raise InputError(f"{what} is no .drn file: it knows its objective and constraints itself")
    return read_problem(what) if stored else environments.make(what, seed)


def find(what: str, seed: int = 0, roles: Roles | None = None) -> CMDP:
    """Return the problem of `find_any`, if it has a horizon."""
    if (
        roles is None
        and isinstance(what, str)
        and Path(what).suffix == ".csv"
        and Path(what).is_file()
    ):
        wanted = f"{Path(what).with_suffix('.npz')} --horizon H --cost NAME --budget B"
        raise InputError(
            f"{what} does not say its horizon and its constraints: type `cmdplab convert {what} "
            f"{wanted}`, and take the .npz file instead"
        )
    return with_an_end(find_any(what, seed, roles))


def read_problem(path: str | Path) -> Problem:
    """Return the problem of a .drn file with roles, or of a .npz file, with an end or without."""
    if str(path).endswith(".drn"):
        return read_drn(path)
    arrays = read_sealed_npz(path, FILED)
    if str(arrays.get("format")) == FORMAT:
        return StationaryCMDP.from_arrays(arrays, path)
    return CMDP.from_arrays(arrays, path)


def convert(problem: Problem, out: str | Path) -> None:
    """Write the problem in the format that the ending of the file names."""
    check_problem(problem)
    path = Path(out)
    if path.suffix == ".npz":
        problem.save(path)
    elif path.suffix == ".drn":
        write_drn(with_an_end(problem), path)
    else:
        raise InputError(f"{path} is no .npz or .drn")
