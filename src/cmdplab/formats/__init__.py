"""Problems from and to other formats: DRN and CSV files, tables, arrays of other libraries.

    from cmdplab.formats import Roles, from_gymnasium, read_drn, write_drn

Every reader returns a `CMDP` or a `StationaryCMDP`, whose constructor checks the arrays.
"""

from cmdplab.formats.assemble import Affine, Roles
from cmdplab.formats.drn import parse_drn, read_drn, write_drn
from cmdplab.formats.estimates import Estimated, from_counts
from cmdplab.formats.find import convert, find, find_any, read_problem
from cmdplab.formats.gymnasium import Imported, from_gymnasium, to_gymnasium_table
from cmdplab.formats.layouts import (
    from_action_first,
    from_quantecon,
    from_state_first,
    to_action_first,
    to_state_first,
)
from cmdplab.formats.logs import from_trajectories
from cmdplab.formats.tables import from_table, read_csv

__all__ = [
    "Affine",
    "Estimated",
    "Imported",
    "Roles",
    "convert",
    "find",
    "find_any",
    "from_action_first",
    "from_counts",
    "from_gymnasium",
    "from_quantecon",
    "from_state_first",
    "from_table",
    "from_trajectories",
    "parse_drn",
    "read_csv",
    "read_drn",
    "read_problem",
    "to_action_first",
    "to_gymnasium_table",
    "to_state_first",
    "write_drn",
]
