"""Folders that hold something else: never mixed, never replaced, refused in one sentence."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from cmdplab.errors import InputError, StorageError
from cmdplab.experiments import manifest
from cmdplab.experiments.experiment import RunSettings

OLD_SUMMARY = "summary.json"  # which version 0.1 wrote without a list of runs beside it


def refusal(folder: Path, what: str) -> InputError:
    """What the folder holds, and a name that is free."""
    base = folder if folder.name.strip(".") else folder.resolve()
    names = (base.parent / f"{base.name or 'run'}-{n}" for n in count(2))
    free = next(name for name in names if not name.exists())
    return InputError(f"{folder} holds {what}: choose another folder, for instance --out {free}")


def check_folder(folder: Path) -> None:
    """Refuse what cannot become a folder, before there is anything to be put there."""
    there = next(p for p in (folder, *folder.absolute().parents) if os.path.exists(p))
    if not there.is_dir():
        raise StorageError(f"cannot write into {folder}: {there} is a file")


def check_apart(folder: Path) -> None:
    """Refuse a folder of runs for what is said about runs: it would be taken for theirs."""
    check_folder(folder)
    if any((folder / name).exists() for name in ("experiment.json", manifest.NAME, OLD_SUMMARY)):
        raise refusal(folder, "records of runs")


def content(folder: Path, ours: set[str], listed: str = "") -> str:
    """What a folder holds beside files of these names, in words; empty where that is nothing.

    `listed` is the experiment that it lists.
    """
    there = sorted(p.name for p in folder.iterdir()) if folder.is_dir() else []
    strangers = [name for name in there if name not in ours and not name.startswith(".")]
    if not strangers:
        return ""
    if manifest.NAME in strangers:
        return "a single run"
    if OLD_SUMMARY in strangers and not listed:
        return "results of version 0.1"
    return listed or f"other files ({strangers[0]})"


def begun(folder: Path) -> list[RunSettings]:
    """The runs whose folders are there, where nothing lists them."""
    records = [manifest.read_if_good(each) for each in sorted(folder.glob("*"))]
    return [record.settings for record in records if record is not None]


def check_within(
    folder: Path, runs: Sequence[RunSettings], asked: Sequence[RunSettings], words: str
) -> None:
    """Refuse a folder with runs that were not asked for: more seeds may be, other settings not."""
    mine = {run.folder for run in asked}
    for run in runs:
        if run.folder not in mine:
            nearest = min((differing(run, each) for each in asked), key=len)
            there = f"{nearest[0]} {getattr(run, nearest[0])}"
            more = "more seeds" if nearest == ["seed"] else there
            raise refusal(folder, f"{words} with {more}")


def differing(one: RunSettings, other: RunSettings) -> list[str]:
    """The settings in which two runs differ; the seed comes last."""
    names = [name for name in RunSettings.model_fields if name != "seed"]
    return [name for name in (*names, "seed") if getattr(one, name) != getattr(other, name)]
