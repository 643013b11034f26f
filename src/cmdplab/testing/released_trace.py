"""Recorded traces of published code, replayed: the acceptance test of the `released` presets.

A trace is an .npz with a CMDP (P, reward, utility, threshold, x1), settings (K, delta, bonus_scale,
max_utility, optimal_reward) and, for each algorithm NAME, what its released functions did:
NAME_states, NAME_actions, NAME_gap, NAME_violation, NAME_multiplier_after, NAME_policy_after
(the last at the episodes in policy_snapshot_episodes) for the authors' notebook; released_plans.py
is about OptCMDP. docs/records.md lists the shapes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.algorithms import FIGURE_1
from cmdplab.algorithms.primal_dual import PrimalDual
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.cpu.primal_dual import PrimalDualSession
from cmdplab.errors import InputError, naming
from cmdplab.files import read_npz
from cmdplab.testing import released_plans
from cmdplab.testing.released_plans import PlannedDifference, as_recorded, largest

Arrays = dict[str, npt.NDArray[Any]]
_ARRAYS = ("P", "reward", "utility", "policy_snapshot_episodes")
_NUMBERS = ("threshold", "x1", "optimal_reward", "max_utility", "K", "delta", "bonus_scale")
_RECORDED = ("states", "actions", "gap", "violation", "multiplier_after", "policy_after")


class Difference(NamedTuple):
    """The largest absolute difference to the trace."""

    gap: float
    violation: float
    multiplier: float
    policy: float


def verify_trace(path: str | Path) -> dict[str, Difference | PlannedDifference]:
    """Replay every algorithm of a trace; the keys are the algorithms' names."""
    arrays = read_npz(path)
    names = {name.replace("-", "_"): name for name in (*FIGURE_1, released_plans.NAME)}
    present = [key for key in names if f"{key}_states" in arrays]
    recorded = {
        key: released_plans.RECORDED if key == released_plans.NAME else _RECORDED for key in present
    }
    needed = {*_ARRAYS, *_NUMBERS, *(f"{key}_{what}" for key in present for what in recorded[key])}
    missing = sorted(needed - arrays.keys())
    if missing or not present:
        what = missing[0] if missing else f"{next(iter(names))}_states"
        raise InputError(f"{path} is not a trace: it has no array {what!r}")
    settings = {key: _number(arrays, key, path) for key in _NUMBERS}
    problem = _problem(arrays, settings, path)
    if not settings["max_utility"] > settings["threshold"]:
        raise InputError(f"{path}: max_utility must exceed the threshold")
    for key in present:
        _check(arrays, key, problem, path)
    return {names[key]: _difference(arrays, settings, key, names[key], problem) for key in present}


def _problem(arrays: Arrays, settings: dict[str, float], path: str | Path) -> CMDP:
    rewards = arrays["reward"], arrays["utility"]
    if rewards[0].shape != rewards[1].shape:
        raise InputError(f"{path}: reward and utility have different shapes")
    start = settings["x1"]
    if not start.is_integer():
        raise InputError(f"{path}: x1 is {start:g}, not a state")
    with naming(path):
        threshold, name = np.array([settings["threshold"]]), Path(path).stem
        return CMDP(arrays["P"], np.stack(rewards), threshold, int(start), name=name)


def _number(arrays: Arrays, key: str, path: str | Path) -> float:
    given = arrays[key]
    if given.size == 1 and given.dtype.kind in "iuf" and np.isfinite(given).all():
        return float(given.reshape(-1)[0])
    raise InputError(f"{path}: {key} must be one finite number")


def _check(arrays: Arrays, key: str, problem: CMDP, path: str | Path) -> None:
    snapshots = arrays["policy_snapshot_episodes"]
    if snapshots.ndim != 1 or snapshots.dtype.kind not in "iu":
        raise InputError(f"{path}: policy_snapshot_episodes must be a list of whole numbers")
    episodes = len(np.atleast_1d(arrays[f"{key}_states"]))
    H, X, A = problem.horizon, problem.states, problem.actions
    shapes: dict[str, tuple[int, ...]] = {"states": (episodes, H + 1), "actions": (episodes, H)}
    shapes |= {"gap": (episodes,), "violation": (episodes,)}
    if key == released_plans.NAME:
        shapes |= released_plans.shapes(episodes, len(snapshots), problem)
    else:
        shapes |= {"multiplier_after": (episodes,), "policy_after": (len(snapshots), H, X, A)}
    for what, shape in shapes.items():
        given = arrays[f"{key}_{what}"]
        if given.shape != shape:
            raise InputError(f"{path}: {key}_{what} has the shape {given.shape}, not {shape}")
        if given.dtype.kind not in "iuf" or not np.isfinite(given).all():
            raise InputError(f"{path}: {key}_{what} must hold finite numbers")
        off = abs(given.sum(axis=-1) - 1.0)
        if what == "policy" and not (given.min(initial=0.0) >= 0.0 and (off <= 1e-9).all()):
            raise InputError(f"{path}: {key}_{what} must hold probabilities")
    for what, size in (("states", problem.states), ("actions", problem.actions)):
        given = arrays[f"{key}_{what}"]
        if given.dtype.kind not in "iu" or given.min(initial=0) < 0 or given.max(initial=0) >= size:
            raise InputError(f"{path}: {key}_{what} must be whole numbers in 0..{size - 1}")
    if snapshots.size and not (snapshots.min() >= 1 and snapshots.max() <= episodes):
        raise InputError(f"{path}: policy_snapshot_episodes must lie in 1..{episodes}")


def _difference(
    arrays: Arrays, settings: dict[str, float], key: str, name: str, problem: CMDP
) -> Difference | PlannedDifference:
    if name == released_plans.NAME:
        recorded = {what: arrays[f"{key}_{what}"] for what in released_plans.RECORDED}
        snapshots = arrays["policy_snapshot_episodes"].tolist()
        return released_plans.replayed(recorded, snapshots, settings, problem)
    row = as_recorded(name, PrimalDual, settings)
    slack = settings["max_utility"] - settings["threshold"]
    session = PrimalDualSession(problem, row, Task.of(problem, slack), seed=0)
    states, actions = arrays[f"{key}_states"], arrays[f"{key}_actions"]
    returns, multipliers, policies, done = [], [], [0.0], 0
    snapshots = [int(k) for k in arrays["policy_snapshot_episodes"]]
    for end in sorted({*snapshots, len(states)}):
        chunk = session.replay(states[done:end], actions[done:end])
        returns.append(chunk.returns)
        multipliers.append(chunk.multiplier[:, 0])
        for position in (n for n, k in enumerate(snapshots) if k == end):
            recorded = arrays[f"{key}_policy_after"][position]
            policies.append(largest(session.state().policy, recorded))
        done = end
    value = np.concatenate(returns)
    gap = exact.gap(settings["optimal_reward"], value[:, 0])
    violation = exact.violation(problem.threshold, value[:, 1])
    return Difference(
        gap=largest(gap, arrays[f"{key}_gap"]),
        violation=largest(violation, arrays[f"{key}_violation"]),
        multiplier=largest(np.concatenate(multipliers), arrays[f"{key}_multiplier_after"]),
        policy=max(policies),
    )
