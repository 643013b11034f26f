"""Checkpoints of a live run: the learner goes on to the last bit, the environment begins anew."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from cmdplab.algorithms.custom import packed
from cmdplab.algorithms.row import Row
from cmdplab.errors import InputError
from cmdplab.experiments import checkpoint
from cmdplab.experiments.play import saved_state
from cmdplab.files import parse_json
from cmdplab.files.write import writable_folder
from cmdplab.live.evaluation import Tally
from cmdplab.types import Indices

Settings = dict[str, Any]

_BEFORE = {"dynamics": "per-step"}  # of checkpoints that are older than a setting


class Saved(NamedTuple):
    """What a live run needs to go on."""

    state: Any  # the learner's
    tally: Tally
    visits: Indices  # [S, states, A]
    cut: int  # episodes that were truncated before their last step


def save(folder: Path, settings: Settings, run: Saved) -> None:
    """Write a checkpoint whole; the one before it stays until then."""
    state = packed(settings["algorithm"], run.state)
    arrays = {f"state_{k}": v for k, v in state.items()}
    arrays |= {f"tally_{k}": v for k, v in run.tally.arrays().items()}
    arrays |= {"visits": run.visits, "cut": np.array(run.cut)}
    stated = {"settings": np.array(json.dumps(settings))}
    checkpoint.save(writable_folder(folder), arrays | stated)


def find(folder: Path, settings: Settings, row: Row) -> tuple[Saved | None, list[str]]:
    """The newest good checkpoint of these settings, and complaints about damaged ones.

    A setting that is None is not asked for: it is filled in from the checkpoint.
    """
    found = checkpoint.find(folder)
    arrays = found.snapshot
    if arrays is None:
        return None, found.complaints
    stated = parse_json(str(arrays.get("settings", "{}")), f"the settings in {folder}")
    for name, here in settings.items():
        there = stated.get(name, _BEFORE.get(name))
        if here is None:
            settings[name] = there
        elif there != json.loads(json.dumps(here)):
            raise InputError(
                f"the checkpoint in {folder} is of another run: "
                f"{name} is {there} there and {here} here"
            )
    tally = {k.removeprefix("tally_"): v for k, v in arrays.items() if k.startswith("tally_")}
    visits = arrays["visits"].astype(np.int64)
    kept = (Tally.resumed(tally), visits, int(arrays["cut"]))
    return Saved(saved_state(row, arrays), *kept), found.complaints
