"""Problems from and to other formats: DRN files, tables of environments, other array layouts.

    from cmdplab.formats import Roles, from_gymnasium, read_drn, write_drn

Every reader ends in a `CMDP`, which checks the arrays once more.
"""

from cmdplab.formats.assemble import Affine
from cmdplab.formats.drn import parse_drn, read_drn, write_drn
from cmdplab.formats.find import convert, find, read_problem
from cmdplab.formats.gymnasium import Imported, from_gymnasium, to_gymnasium_table
from cmdplab.formats.layouts import (
    from_action_first,
    from_state_first,
    to_action_first,
    to_state_first,
)
from cmdplab.formats.roles import Roles

__all__ = [
    "Affine",
    "Imported",
    "Roles",
    "convert",
    "find",
    "from_action_first",
    "from_gymnasium",
    "from_state_first",
    "parse_drn",
    "read_drn",
    "read_problem",
    "to_action_first",
    "to_gymnasium_table",
    "to_state_first",
    "write_drn",
]
