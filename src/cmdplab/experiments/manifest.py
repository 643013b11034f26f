"""Manifest of a run: its settings, status, results and machine in one JSON file."""

from __future__ import annotations

import hashlib
import os
import platform
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from cmdplab import __version__
from cmdplab.algorithms.identity import Fields, difference, fields_of
from cmdplab.algorithms.row import Row
from cmdplab.errors import CmdplabError, InputError
from cmdplab.experiments.experiment import first_complaint
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.files import read_json
from cmdplab.files.read import damaged
from cmdplab.files.write import written_whole

SCHEMA = 1
NAME = "manifest.json"
_PACKAGES = ("numba", "numpy", "pyarrow", "scipy")

Status = Literal["running", "interrupted", "done", "failed"]


class Manifest(BaseModel):
    """Record of a run, beside its tables and its checkpoint."""

    model_config = ConfigDict(extra="forbid")

    schema_version: int = SCHEMA
    settings: RunSettings
    status: Status
    episodes: int = 0  # number of finished and saved episodes
    summary: dict[str, float | int | None] = {}
    seconds: float = 0.0  # computing time of all attempts
    attempts: int = 0
    row: Fields | None = None  # fields of the row; None in old files
    stream: list[str] = []  # the Philox key of the seed
    versions: dict[str, str] = {}
    machine: dict[str, str] = {}
    sha256: dict[str, str] = {}  # by file of a finished run
    notes: list[str] = []
    error: str = ""
    digest: str = ""  # hash of all fields above

    def own_digest(self) -> str:
        left_out = {"digest", "row"} if self.row is None else {"digest"}
        return hashlib.sha256(self.model_dump_json(exclude=left_out).encode()).hexdigest()

    def checked_row(self) -> Row:
        """Return the row that the settings name. Refuse it if its recorded fields differ."""
        row, settings = self.settings.row(), self.settings
        if self.row and (odd := difference(self.row, fields_of(row))):
            raise InputError(
                f"{settings.algorithm} ({settings.preset}) was played with another {odd}: register "
                "the row of the record again, or choose another folder"
            )
        return row

    def digest_of(self, name: str) -> str:
        """Return the recorded sha256 of the file `name`. Return "" if the run is not done."""
        return self.sha256.get(name, "") if self.status == "done" else ""


@cache  # 4 ms, and a sweep may have 10^4 runs
def versions() -> dict[str, str]:
    """Return {package: version} for cmdplab and the packages that affect its numbers."""
    return {"cmdplab": __version__} | {name: version(name) for name in _PACKAGES}


@cache
def machine() -> dict[str, str]:
    """Return processor, its features, platform and Python. They may change last bits of runs."""
    from llvmlite import binding

    features = sorted(k for k, on in dict(binding.get_host_cpu_features()).items() if on)
    return {
        "processor": binding.get_host_cpu_name(),
        "features": " ".join(features),
        "platform": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def write(folder: Path, manifest: Manifest) -> None:
    """Write the manifest of a folder atomically. Flush it if it replaces an older manifest."""
    with written_whole(folder / NAME, flushed=(folder / NAME).exists()) as temporary:
        put(temporary, manifest)


def put(path: Path, manifest: Manifest) -> None:
    """Set the digest of a manifest and write it to `path`."""
    manifest.digest = manifest.own_digest()
    path.write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")


class NewerError(InputError):
    """Error for a record that a newer version of cmdplab wrote."""


def read_of_schema(path: Path, ours: int) -> Any:
    """Return the content of a JSON file. Raise a `NewerError` if its schema is above `ours`."""
    values = read_json(path)
    stated = values.get("schema_version") if isinstance(values, dict) else None
    if isinstance(stated, int) and stated > ours:
        raise NewerError(f"{path} was written by a newer cmdplab (schema {stated}); ours is {ours}")
    return values


def read_if_good(folder: Path) -> Manifest | None:
    """Return the manifest of a run's folder, or None if it is missing or damaged."""
    try:
        return read(folder)
    except NewerError:
        raise
    except CmdplabError:
        return None


def read(folder: Path) -> Manifest | None:
    """Return the manifest of a run's folder, or None if it is missing. Refuse a damaged one."""
    path = folder / NAME
    if not os.path.exists(path):
        return None
    values = read_of_schema(path, SCHEMA)
    try:
        manifest = Manifest.model_validate(values)
        if manifest.digest != manifest.own_digest():
            raise damaged(path)
        return manifest
    except ValidationError as error:
        raise InputError(f"{path} is not a manifest: {first_complaint(error)}") from None


def known_digest(folder: Path, name: str) -> str:
    """Return the sha256 that the manifest of a finished run states for the file `name`, or ""."""
    record = read_if_good(folder)
    return "" if record is None else record.digest_of(name)
