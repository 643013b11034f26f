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
from cmdplab.live.model.experience import Experience, Visits
from cmdplab.types import Mask

Settings = dict[str, Any]


class Saved(NamedTuple):
    """What a live run needs to go on."""

    state: Any  # the learner's
    tally: Tally
    visits: Visits
    cut: int  # episodes that were truncated before their last step
    seen: Experience  # transitions, pooled over the steps
    told: Mask | None = None  # [H, X, A], what the environment told of closed actions


def save(folder: Path, settings: Settings, run: Saved) -> None:
    """Write a checkpoint whole; the one before it stays until then."""
    state = packed(settings["algorithm"], run.state)
    arrays = {f"state_{k}": v for k, v in state.items()}
    arrays |= {f"tally_{k}": v for k, v in run.tally.arrays().items()}
    arrays |= {f"visits_{k}": v for k, v in run.visits.arrays().items()}
    arrays |= {"cut": np.array(run.cut)}
    arrays |= {f"seen_{k}": v for k, v in run.seen.arrays().items()}
    arrays |= {} if run.told is None else {"told": run.told}
    stated = {"settings": np.array(json.dumps(settings))}
    checkpoint.save(writable_folder(folder), arrays | stated)


def find(
    folder: Path, settings: Settings, row: Row, empty: Experience
) -> tuple[Saved | None, list[str]]:
    """The newest good checkpoint of these settings, and complaints about damaged ones.

    empty : nothing seen yet, of the sizes that were asked for.

    A setting that is None is not asked for: it is filled in from the checkpoint.
    """
    found = checkpoint.find(folder)
    arrays = found.snapshot
    if arrays is None:
        return None, found.complaints
    stated = parse_json(str(arrays.get("settings", "{}")), f"the settings in {folder}")
    for name, here in settings.items():
        there = stated.get(name)
        if here is None:
            settings[name] = there
        elif there != json.loads(json.dumps(here)):
            raise InputError(
                f"the checkpoint in {folder} is of another run: "
                f"{name} is {there} there and {here} here"
            )
    tally, visits = part(arrays, "tally_"), Visits.of_arrays(part(arrays, "visits_"))
    seen = Experience.of_arrays(empty.states, empty.actions, part(arrays, "seen_"))
    told = arrays["told"].astype(np.bool_) if "told" in arrays else None
    kept = (Tally.resumed(tally), visits, int(arrays["cut"]), seen, told)
    return Saved(saved_state(row, arrays), *kept), found.complaints


def part(arrays: dict[str, Any], mark: str) -> dict[str, Any]:
    """The arrays whose names begin with a mark, without it."""
    return {k.removeprefix(mark): v for k, v in arrays.items() if k.startswith(mark)}
