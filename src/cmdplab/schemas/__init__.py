"""JSON of every command: versions here; the fields stand in docs/json.md and nowhere else.

The first field of each object is `schema`, for example "cmdplab.solve/1". The number grows when a
field goes, or changes its type or meaning; a new field leaves it. `models` reads that page: tests
hold what commands print to it, and `python -m cmdplab.schemas.models docs` writes the JSON Schemas.
A command prints without importing any model.
"""

from __future__ import annotations

_LATER = {"audit": 2, "describe": 2}  # of all others it is 1


def stamp(name: str) -> str:
    """The text of the field `schema`, for example cmdplab.solve/1."""
    return f"cmdplab.{name}/{_LATER.get(name, 1)}"
