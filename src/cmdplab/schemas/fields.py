"""Parts of the models of the commands' JSON: an object, a field, its unit.

Apart from `__init__`, which a command imports in order to print: models take Pydantic to load.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

RETURN, EPISODES, PRICE = "reward", "episodes", "reward per unit of utility"


class Part(BaseModel):
    """An object: nothing but its fields."""

    model_config = ConfigDict(extra="forbid", strict=True)


def field(meaning: str, unit: str = "", **more: Any) -> Any:
    """A field with its meaning and its unit; `default` where it may be left out."""
    return Field(description=meaning, json_schema_extra={"unit": unit} if unit else None, **more)


class Unit(Part):
    """published = offset + factor * ours, of one reward."""

    of: str = field("what the source counts")
    factor: float = field("negative for a cost")
    offset: float = field("of the whole episode", "the source's")
