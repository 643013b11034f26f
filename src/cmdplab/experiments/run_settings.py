"""Settings of one run, which determine its numbers, and the hash that names its folder."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from functools import partial
from typing import Annotated, Any, Literal, cast

import numpy.typing as npt
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from cmdplab.algorithms import as_row
from cmdplab.algorithms.custom import CUSTOM, recorded, registered
from cmdplab.algorithms.identity import check_found_again, rebuilt
from cmdplab.algorithms.row import Row
from cmdplab.checks import checked_name
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.settings import SETTINGS, Settings, with_fields, without_none

_NEWER = {name for name, each in SETTINGS.items() if not each.written_empty}
_NEWER |= {"rewards", "precision"}

Preset = Literal["released", "printed"]


class Strict(BaseModel):
    """Base of models of a person's input or of a record. Unknown fields are refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


@with_fields(lambda setting: (setting.kind | None, None))
class _Algorithm(Strict):
    """Problem and algorithm: the first fields of `RunSettings`, in the order of records."""

    problem: Annotated[str, AfterValidator(partial(checked_name, "the name"))]
    fingerprint: Annotated[str, Field(pattern="^[0-9a-f]{32}$")]  # hash of the problem's arrays
    algorithm: str
    preset: Preset | Literal["custom"]  # custom: a learner from outside, by path or by name


class RunSettings(_Algorithm):
    """Settings of one run. They determine all its numbers."""

    rewards: Literal["bernoulli"] | None = None  # None: known
    precision: Literal["float32"] | None = None  # None: float64
    episodes: int | None = None  # None: until stopped, and not written into experiment.json
    seed: int

    @model_serializer(mode="wrap")
    def _without_empty(self, plainly: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Leave out newer settings without a value, so that old folders keep their names."""
        whole = plainly(self)
        return {k: v for k, v in whole.items() if v is not None or k not in _NEWER}

    def settings(self) -> Settings:
        return without_none(cast(Settings, {name: getattr(self, name) for name in SETTINGS}))

    def row(self) -> Row:
        """Return the row of the algorithm for reading. Learners from outside are not imported."""
        if self.preset == CUSTOM:
            return recorded(self.algorithm)
        return rebuilt(self.algorithm, self.preset, self.settings())

    def row_to_play(self, given: bool) -> Row:
        """Return the row of the algorithm to play. `given`: a person gave its import path."""
        if self.preset != CUSTOM:
            return self.row()
        if given:
            return as_row(self.algorithm)
        return registered(self.algorithm) or self.row()

    @classmethod
    def of(
        cls,
        problem: CMDP,
        row: Row,
        episodes: int | None,
        seed: int,
        *,
        mark: str = "",
        rewards: str = "known",
        precision: str = "float64",
    ) -> RunSettings:
        """Return the settings of a run, with all settings of the row, since defaults may change.

        mark : the fingerprint, if it is known. Known rewards and float64 are written as None. A row
        that its name and settings do not reproduce is refused.
        """
        check_found_again(row)
        return cls(
            problem=problem.name,
            fingerprint=mark or fingerprint(problem),
            algorithm=row.name,
            preset=row.preset,  # type: ignore[arg-type]
            rewards="bernoulli" if rewards == "bernoulli" else None,
            precision="float32" if precision == "float32" else None,
            episodes=episodes,
            seed=seed,
            **row.settings(),
        )

    @property
    def kind(self) -> str:
        """Hash of all settings except the seed and the name of the problem."""
        settings = self.model_dump(exclude={"seed", "problem"})
        text = json.dumps(settings, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def folder(self) -> str:
        """Name of the run's folder, HASH-SEED."""
        return f"{self.kind}-{self.seed}"


def fingerprint(problem: CMDP, name: str = "") -> str:
    """Return a hash of the arrays of a problem, and of `name` if it is not empty."""
    digest = hashlib.sha256(name.encode())
    rows = problem.transition
    kernel: list[npt.NDArray[Any]]
    if isinstance(rows, Sparse):
        kernel = [rows.successor, rows.probability]
    else:
        kernel = [rows[0] if problem.stationary else rows]
    if problem.mask is not None:
        kernel.append(problem.mask)
    for array in (*kernel, problem.reward, problem.threshold):
        digest.update(str(array.shape).encode() + array.tobytes())
    digest.update(str((problem.start, problem.horizon)).encode())
    return digest.hexdigest()[:32]


def by_fingerprint(problems: Iterable[CMDP]) -> dict[str, CMDP]:
    """Return problems by fingerprint. Equal problems with different names are all kept."""
    found: dict[str, CMDP] = {}
    for problem in problems:
        mark = fingerprint(problem)
        if mark in found and found[mark].name != problem.name:
            mark = fingerprint(problem, problem.name)
        found[mark] = problem
    return found


def has_fingerprint(problem: CMDP, mark: str) -> bool:
    """Return True if `by_fingerprint` may list this problem under `mark`."""
    return mark in (fingerprint(problem), fingerprint(problem, problem.name))
