"""Recorded traces of published code, replayed: the acceptance test of the `released` presets.

A trace is an .npz with a CMDP (P, reward, utility, threshold, x1), settings (K, delta, bonus_scale,
max_utility, optimal_reward) and, for each algorithm NAME, what its released functions did:
NAME_states, NAME_actions, NAME_gap, NAME_violation, NAME_multiplier_after, NAME_policy_after
(the last at the episodes in policy_snapshot_episodes) for the authors' notebook; released_plans.py
is about OptCMDP.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import released_plans
from oracles import session
from released_plans import PlannedDifference, as_recorded, largest

from cmdplab.algorithms import FIGURE_1
from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP

Arrays = dict[str, npt.NDArray[Any]]
NUMBERS = ("threshold", "x1", "optimal_reward", "max_utility", "K", "delta", "bonus_scale")


class Difference(NamedTuple):
    """The largest absolute difference to the trace."""

    gap: float
    violation: float
    multiplier: float
    policy: float


def verify_trace(path: Path) -> dict[str, Any]:
    """Replay every algorithm of a trace; the keys are the algorithms' names."""
    arrays = dict(np.load(path))
    names = {name.replace("-", "_"): name for name in (*FIGURE_1, released_plans.NAME)}
    settings = {key: float(arrays[key]) for key in NUMBERS}
    rewards = np.stack([arrays["reward"], arrays["utility"]])
    problem = CMDP(arrays["P"], rewards, [settings["threshold"]], int(settings["x1"]))
    return {
        name: _difference(arrays, settings, key, name, problem)
        for key, name in names.items()
        if f"{key}_states" in arrays
    }


def _difference(
    arrays: Arrays, settings: dict[str, float], key: str, name: str, problem: CMDP
) -> Difference | PlannedDifference:
    if name == released_plans.NAME:
        recorded = {what: arrays[f"{key}_{what}"] for what in released_plans.RECORDED}
        snapshots = arrays["policy_snapshot_episodes"].tolist()
        return released_plans.replayed(recorded, snapshots, settings, problem)
    row = as_recorded(name, PrimalDual, settings)
    slack = settings["max_utility"] - settings["threshold"]
    run = session("cpu", problem, row, Task.of(problem, slack), seed=0)
    states, actions = arrays[f"{key}_states"], arrays[f"{key}_actions"]
    returns, multipliers, policies, done = [], [], [0.0], 0
    snapshots = [int(k) for k in arrays["policy_snapshot_episodes"]]
    for end in sorted({*snapshots, len(states)}):
        chunk = run.replay(states[done:end], actions[done:end])
        returns.append(chunk.returns)
        multipliers.append(chunk.multiplier[:, 0])
        for position in (n for n, k in enumerate(snapshots) if k == end):
            recorded = arrays[f"{key}_policy_after"][position]
            policies.append(largest(run.state().policy, recorded))
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
