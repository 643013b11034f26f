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
from cmdplab.live.model.experience import Experience
from cmdplab.types import Indices, Mask

Settings = dict[str, Any]


class Saved(NamedTuple):
    """What a live run needs to go on."""

    state: Any  # the learner's
    tally: Tally
    cut: int  # episodes that were truncated before their last step
    seen: Experience  # transitions, pooled over the steps
    steps: Experience  # transitions with their steps
    earlier: Indices | None = None  # [H, X, A], visits that `steps` lack
    told: Mask | None = None  # [H, X, A], what the environment told of closed actions


def save(folder: Path, settings: Settings, run: Saved) -> None:
    """Write a checkpoint whole; the one before it stays until then."""
    state = packed(settings["algorithm"], run.state)
    arrays = {f"state_{k}": v for k, v in state.items()}
    arrays |= {f"tally_{k}": v for k, v in run.tally.arrays().items()}
    arrays |= {"cut": np.array(run.cut)}
    arrays |= {f"seen_{k}": v for k, v in run.seen.arrays().items()}
    arrays |= {f"steps_{k}": v for k, v in run.steps.arrays().items()}
    arrays |= {} if run.earlier is None else {"earlier": run.earlier}
    arrays |= {} if run.told is None else {"told": run.told}
    stated = {"settings": np.array(json.dumps(settings))}
    checkpoint.save(writable_folder(folder), arrays | stated)


def find(
    folder: Path, settings: Settings, row: Row, empty: Experience
) -> tuple[Saved | None, list[str]]:
    """The newest good checkpoint of these settings, and complaints about damaged ones.

    empty : no steps yet, of the sizes that were asked for.

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
    tally = Tally.resumed(part(arrays, "tally_"))
    sizes = (empty.states, empty.actions)
    seen = Experience.of_arrays(*sizes, part(arrays, "seen_"))
    steps: Experience = empty
    earlier = arrays["earlier"].astype(np.int64) if "earlier" in arrays else None
    if "steps_key" in arrays:
        steps = Experience.of_arrays(*sizes, part(arrays, "steps_"), empty.horizon)
    else:  # written before 0.2.0, with visits alone
        earlier = np.zeros((empty.horizon, *sizes), dtype=np.int64)
        earlier.reshape(-1)[arrays["visits_place"]] = arrays["visits_times"]
    told = arrays["told"].astype(np.bool_) if "told" in arrays else None
    kept = (tally, int(arrays["cut"]), seen, steps, earlier, told)
    return Saved(saved_state(row, arrays), *kept), found.complaints


def part(arrays: dict[str, Any], mark: str) -> dict[str, Any]:
    """The arrays whose names begin with a mark, without it."""
    return {k.removeprefix(mark): v for k, v in arrays.items() if k.startswith(mark)}
