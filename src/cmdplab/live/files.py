"""Files of live learning: checkpoints of a run, and a `Learned` as one file. Nothing is pickled.

From a checkpoint the learner goes on to the last bit. The environment is seeded anew.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.custom import Custom, packed
from cmdplab.algorithms.row import Row
from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.policy import Policy
from cmdplab.errors import CmdplabError, InputError
from cmdplab.experiments import checkpoint
from cmdplab.experiments.play import part, saved_state
from cmdplab.files import parse_json, read_sealed_npz, write_sealed_npz
from cmdplab.files.write import writable_folder
from cmdplab.live.codes import described, restored
from cmdplab.live.evaluation import Curve, Evaluation, Tally
from cmdplab.live.model.choice import LAST, MIXTURE
from cmdplab.live.model.experience import Experience
from cmdplab.live.model.plans import Planned
from cmdplab.live.signals import Scale, Setup, unread
from cmdplab.live.spaces import Spaces
from cmdplab.types import Indices, Mask

FORMAT = "cmdplab-learned-1"
PLAIN = ("multiplier", "visits", "episodes", "limit", "reward_range", "seconds")  # fields
Settings = dict[str, Any]
Arrays = dict[str, npt.NDArray[Any]]


class Saved(NamedTuple):
    """Content of a checkpoint."""

    state: Any  # state of the learner
    tally: Tally
    cut: int  # episodes that were truncated before their last step
    seen: Experience  # transitions, pooled over the steps
    steps: Experience  # transitions with their steps
    earlier: Indices | None = None  # [H, X, A], visits that `steps` lack
    told: Mask | None = None  # [H, X, A], the open actions that the infos have shown


def save(folder: Path, settings: Settings, run: Saved) -> None:
    """Write a checkpoint atomically. settings : what a resumed run must share with it."""
    arrays = _kept(settings["algorithm"], run.state, run.seen, run.steps)
    arrays |= {f"tally_{k}": v for k, v in run.tally.arrays().items()}
    some = {"cut": run.cut, "earlier": run.earlier, "told": run.told}
    arrays |= {name: np.asarray(value) for name, value in some.items() if value is not None}
    arrays["settings"] = np.array(json.dumps(settings))
    checkpoint.save(writable_folder(folder), arrays)


def _kept(name: str, state: Any, seen: Experience, steps: Experience) -> Arrays:
    parts = {"state": packed(name, state), "seen": seen.arrays(), "steps": steps.arrays()}
    return {f"{part}_{key}": v for part, found in parts.items() for key, v in found.items()}


def find(
    folder: Path, settings: Settings, row: Row, empty: Experience
) -> tuple[Saved | None, list[str]]:
    """Return the newest good checkpoint of these settings or None, and complaints on damaged ones.

    empty : an experience without steps, of the wanted sizes. A setting of None takes the value of
    the checkpoint. Any other difference of settings raises an `InputError`.
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
    else:  # written before steps were counted, with visits alone
        earlier = np.zeros((empty.horizon, *sizes), dtype=np.int64)
        earlier.reshape(-1)[arrays["visits_place"]] = arrays["visits_times"]
    told = arrays["told"].astype(np.bool_) if "told" in arrays else None
    kept = (tally, int(arrays["cut"]), seen, steps, earlier, told)
    return Saved(saved_state(row, arrays), *kept), found.complaints


def write(path: str | Path, fields: dict[str, Any]) -> None:
    """Write the fields of a `Learned` by name to a file, atomically."""
    row: Row = fields["algorithm"]
    if isinstance(row, Custom):
        raise InputError(f"{row.name} comes from outside: what it learned is kept by checkpoint=")
    world: Setup = fields["world"]
    planned: Planned | None = fields["planned"]
    told = {
        "row": [row.name, row.preset, row.settings()],
        "spaces": [described(world.spaces.observed), described(world.spaces.chosen)],
        "horizon": world.horizon,
        "start": world.start,
        "names": list(world.names),
        "clip": world.clip,
        "chosen": fields["chosen"],
        "notes": list(fields["notes"]),
        "leads": fields["leads"],
        "evaluations": {
            name: _evaluation(fields[name]) for name in ("evaluation", "late", "last_evaluation")
        },
        "planned": None if planned is None else _planned(planned),
    }
    arrays: Arrays = {
        "format": np.array(FORMAT),
        "told": np.array(json.dumps(told)),
        "scale": np.stack([world.scale.worst, world.scale.best]),
        "policy": fields["policy"].array,
        "last": fields["last"].array,
        **{name: np.asarray(fields[name]) for name in PLAIN},
        **{f"curve_{k}": v for k, v in fields["curve"]._asdict().items()},
        **_kept(row.name, *(fields[each] for each in ("state", "seen", "steps"))),
    }
    if world.opened is not None:
        arrays["opened"] = world.opened
    if planned is not None:
        arrays["planned"] = planned.policy.array
    write_sealed_npz(path, arrays)


def read(path: str | Path) -> dict[str, Any]:
    """Return the fields of a `Learned` by name from a file. Refuse other files."""
    arrays = read_sealed_npz(path, ours=True)
    if str(arrays.get("format")) != FORMAT:
        raise InputError(f"{path} is not what cmdplab.live has learned: it has another format")
    try:
        return _fields(arrays, parse_json(str(arrays["told"]), str(path)))
    except CmdplabError as error:
        raise InputError(f"{path}: {error}") from None
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise InputError(f"{path} lacks what was learned: {error}") from None


def _fields(arrays: Arrays, told: dict[str, Any]) -> dict[str, Any]:
    name, preset, settings = told["row"]
    row = algorithm(name, preset)
    row = row.with_settings(**{k: v for k, v in settings.items() if v is not None})
    spaces = Spaces(*(restored(each) for each in told["spaces"]))
    scale = Scale(*arrays["scale"].astype(np.float64))
    opened = arrays["opened"].astype(np.bool_) if "opened" in arrays else None
    labels, names = spaces.labels, tuple(told["names"])
    fixed = (told["horizon"], told["start"], unread, scale, names, opened, told["clip"])
    last = Policy(arrays["last"], labels, f"learnt by {name}")
    plan = _plan(told["planned"], arrays, labels, names)
    chosen = last if plan is None or told["chosen"] == LAST else plan.policy
    if told["chosen"] == MIXTURE:
        chosen = Policy(arrays["policy"], labels, "a mixture of two policies")
    sizes = (spaces.states, spaces.actions)
    steps = Experience(*sizes, len(names), told["horizon"])
    if "steps_key" in arrays:  # earlier files have none
        steps = Experience.of_arrays(*sizes, part(arrays, "steps_"), told["horizon"])
    return {
        "algorithm": row,
        "policy": chosen,
        "planned": plan,
        "curve": Curve(**part(arrays, "curve_")),
        **{each: arrays[each] for each in ("multiplier", "visits", "limit")},
        "episodes": int(arrays["episodes"]),
        "seconds": float(arrays["seconds"]),
        "reward_range": tuple(arrays["reward_range"].tolist()),
        **{k: _read_evaluation(v) for k, v in told["evaluations"].items()},
        "names": names,
        "notes": tuple(told["notes"]),
        "last": last,
        "chosen": told["chosen"],
        "world": Setup(spaces, *fixed),
        "seen": Experience.of_arrays(*sizes, part(arrays, "seen_")),
        "steps": steps,
        "leads": bool(told.get("leads", False)),
        "state": saved_state(row, arrays),
    }


def _evaluation(found: Evaluation | None) -> Any:
    return None if found is None else [list(each) for each in found.every]


def _read_evaluation(values: Any) -> Evaluation | None:
    return None if values is None else Evaluation.of(values)


def _planned(plan: Planned) -> dict[str, Any]:
    told = plan._asdict() | {
        "promised": _evaluation(plan.promised),
        "evaluation": _evaluation(plan.evaluation),
        "limit": plan.limit.tolist(),
        "margin": plan.margin.tolist(),
        "multiplier": [None if np.isinf(each) else float(each) for each in plan.multiplier],
    }
    return {name: value for name, value in told.items() if name not in ("policy", "names")}


def _plan(told: Any, arrays: Arrays, labels: Labels, names: tuple[str, ...]) -> Planned | None:
    if told is None:
        return None
    return Planned(
        **told
        | {
            "policy": Policy(arrays["planned"], labels, "planned on what was learned"),
            "promised": Evaluation.of(told["promised"]),
            "evaluation": _read_evaluation(told["evaluation"]),
            "limit": np.array(told["limit"]),
            "margin": np.array(told["margin"]),
            "multiplier": np.array([np.inf if v is None else v for v in told["multiplier"]]),
            "names": names,
        }
    )
