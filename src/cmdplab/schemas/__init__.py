"""JSON of every command: names and versions here, fields in the modules beside.

The first field of each object is `schema`, for example "cmdplab.solve/1". The number grows when a
field goes, or changes its type or meaning; a new field leaves it. Models give every field its type,
meaning and unit; `docs/json.md` and the JSON Schemas in `docs/schemas/` are written from them by
`python -m cmdplab.schemas.page docs`. A command prints without importing any model.
"""

from __future__ import annotations

VERSIONS = {  # a name for each command, or for each of its forms
    "reproduce": 1,
    "compare": 1,
    "run": 1,
    "solve": 1,
    "advise": 1,
    "describe": 2,
    "sensitivity": 1,
    "frontier": 1,
    "theory": 1,
    "convert": 1,
    "evaluate": 1,
    "explain": 1,
    "list-algorithms": 1,
    "list-environments": 1,
    "verify-trace": 1,
    "bench": 1,
    "sweep": 1,
    "sweep-plan": 1,
    "resume": 1,
    "status": 1,
    "audit": 2,
    "failure-events": 1,
    "board": 1,
    "board-page": 1,
    "report": 1,
    "plot": 1,
    "portrait": 1,
    "export": 1,
    "export-suite": 1,
}


def stamp(name: str) -> str:
    """The text of the field `schema`, for example cmdplab.solve/1."""
    return f"cmdplab.{name}/{VERSIONS[name]}"
