"""Problems by name or from a file of any format, and conversion between formats.

Every command with a problem as argument uses this module.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from cmdplab import environments
from cmdplab.cmdp.bundle import FILED, Bundle, check_problem
from cmdplab.cmdp.horizons import with_an_end
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import FORMAT, StationaryCMDP
from cmdplab.errors import InputError
from cmdplab.files import read_sealed_npz
from cmdplab.formats.assemble import Problem, Roles
from cmdplab.formats.drn import read_drn, write_drn
from cmdplab.formats.tables import read_csv


class Format(NamedTuple):
    """Reader and writer of the files with one ending. The writer may be None."""

    read: Callable[[str | Path, Roles | None], Problem]
    write: Callable[[Any, str | Path], None] | None
    roles: bool  # True if roles give objective, sums and limits


def _read_npz(path: str | Path, roles: Roles | None) -> Problem:
    arrays = read_sealed_npz(path, FILED)
    kind = StationaryCMDP if str(arrays.get("format")) == FORMAT else CMDP
    return kind.from_arrays(arrays, path)


FORMATS = {
    ".npz": Format(_read_npz, Bundle.save, roles=False),
    ".drn": Format(read_drn, write_drn, roles=True),
    ".csv": Format(read_csv, None, roles=True),
}


def find_any(what: str, seed: int = 0, roles: Roles | None = None) -> Problem:
    """Return the problem of a .drn, .csv or .npz file, or the environment called `what`.

    seed : of a random environment. roles : for DRN and CSV files; they replace those in a DRN file.
    """
    if not isinstance(what, str):
        raise InputError(f"the problem is {type(what).__name__}, not a name or the path of a file")
    known = FORMATS.get(Path(what).suffix)
    stored = known or (os.path.exists(what) and environments.named(what) is None)
    if seed and stored:
        raise InputError(environments.no_instances(what, seed))
    if roles is not None and not (known and known.roles):
        raise InputError(f"{what} is no .drn file: it knows its objective and constraints itself")
    return read_problem(what, roles) if stored else environments.make(what, seed)


def find(what: str, seed: int = 0, roles: Roles | None = None) -> CMDP:
    """Return the problem of `find_any`. Refuse a problem without a horizon."""
    if roles is None and Path(str(what)).suffix == ".csv" and Path(str(what)).is_file():
        wanted = f"{Path(what).with_suffix('.npz')} --horizon H --cost NAME --budget B"
        raise InputError(
            f"{what} does not say its horizon and its constraints: type `cmdplab convert {what} "
            f"{wanted}`, and take the .npz file instead"
        )
    return with_an_end(find_any(what, seed, roles))


def read_problem(path: str | Path, roles: Roles | None = None) -> Problem:
    """Return the problem of a file: .drn and .csv with `roles`, any other ending as .npz."""
    return FORMATS.get(Path(str(path)).suffix, FORMATS[".npz"]).read(path, roles)


def convert(problem: Problem, out: str | Path) -> None:
    """Write a problem to the file `out`, whose ending gives the format."""
    check_problem(problem)
    written = {ending: each.write for ending, each in FORMATS.items() if each.write}
    if Path(out).suffix not in written:
        raise InputError(f"{out} is no {' or '.join(written)}")
    written[Path(out).suffix](problem, out)
