"""summary.json, read back: its schema, and the digest that it ends with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cmdplab.errors import InputError
from cmdplab.experiments.experiment import first_complaint
from cmdplab.experiments.records.tables import LARGEST
from cmdplab.files import read_json, unsealed

SUMMARY = "summary.json"
Count = Annotated[int, Field(gt=0, lt=1 << 53)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class _Numbers(_Strict):
    """Of one algorithm: lists over seeds of `NUMBERS`, and what `compare` says of it."""

    model_config = ConfigDict(extra="allow")

    us_per_episode: Annotated[float, Field(ge=0.0, le=LARGEST)] | None = None
    preset: str | None = None
    settings: dict[str, bool | int | float | str | None] | None = None
    needs: list[str] | None = None
    heuristic: str | None = None
    unverified: str | None = None
    tuned: str | None = None
    baseline_returns: list[float] | None = None
    baseline_episodes: list[Annotated[int, Field(ge=0, lt=1 << 53)]] | None = None


class _Summary(_Strict):
    """The content of summary.json."""

    preset: str | None = None
    instance: str
    episodes: Count
    seeds: Count
    bonus_scale: float | None = None
    margin_scale: float | None = None
    optimum: float | None = None
    threshold: list[float]
    slater_gap: float | None = None
    algorithms: dict[str, _Numbers]
    engine: str = ""
    precision: str = ""
    versions: dict[str, str] = {}
    machine: dict[str, str] = {}


def read_summary(path: Path) -> dict[str, Any]:
    """Read the file; keys that it lacks are not made up."""
    values = unsealed(read_json(path), path, SUMMARY)
    try:
        return _Summary.model_validate(values).model_dump(exclude_unset=True)
    except ValidationError as error:
        why = first_complaint(error)
        raise InputError(f"{path} is of a schema unknown here: {why}") from None
