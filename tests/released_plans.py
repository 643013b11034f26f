"""Recorded traces of the DOPE repository's OptCMDP, replayed: the acceptance test of its preset.

The program of an episode can have many optimal policies, and which of them is played is the choice
of the solver that was used. What is unique is compared: the counts, the boxes around them, and what
each program promises. What is not is taken from the trace, and held to three facts: each recorded
policy is optimal for our program, its exact returns are the recorded ones, and so is the curve.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
from oracles import session
from oracles.planner import PlainPlanner

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.baselines import possible_successors
from cmdplab.algorithms.families.planner import Planner
from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.task import Task
from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.solvers import Box, plan
from cmdplab.types import Array, Mask

NAME = "OptCMDP"
RECORDED = ("states", "actions", "gap", "violation", "promise", "policy", "estimate", "width")
AnyRow = TypeVar("AnyRow", Planner, PrimalDual)
TOLERANCE = 1e-6  # by which a recorded policy may miss a threshold: its solver stops at 1e-7


class PlannedDifference(NamedTuple):
    """The largest absolute difference to the trace."""

    gap: float  # of the recorded policies, evaluated exactly
    violation: float
    promise: float  # the value of the program of every episode
    box: float  # its ends, at the snapshots
    optimality: float  # what the recorded policies promise, at the snapshots, to what is optimal


def replayed(
    recorded: dict[str, npt.NDArray[Any]],
    snapshots: list[int],
    settings: dict[str, float],
    problem: CMDP,
) -> PlannedDifference:
    """Learn the recorded episodes; `snapshots` are the episodes, from 1, before which boxes are."""
    row = as_recorded(NAME, Planner, settings)
    support = possible_successors(problem)
    task = Task.of(problem, 0.0, support=support)
    run, oracle = session("cpu", problem, row, task, 0), PlainPlanner(row, task)
    promises, boxes, optimality = [], [0.0], [0.0]
    for k, (states, actions) in enumerate(
        zip(recorded["states"], recorded["actions"], strict=True)
    ):
        state = run.state()
        promises.append(state.promised[0])
        if k + 1 in snapshots:
            place = snapshots.index(k + 1)
            box, _ = oracle.model(state)
            ends = _ends(recorded["estimate"][place], recorded["width"][place], support)
            boxes += [largest(box.lower, ends[0]), largest(box.upper, ends[1])]
            best = promised(box, problem, recorded["policy"][k])
            optimality.append(float(abs(best - state.promised[0])))
        run.observe(states, actions)
    returns = np.array([exact.returns(problem, each) for each in recorded["policy"]])
    return PlannedDifference(
        gap=largest(exact.gap(settings["optimal_reward"], returns[:, 0]), recorded["gap"]),
        violation=largest(exact.violation(problem.threshold, returns[:, 1]), recorded["violation"]),
        promise=largest(np.array(promises), recorded["promise"]),
        box=max(boxes),
        optimality=max(optimality),
    )


def _ends(estimate: Array, width: Array, support: Mask) -> tuple[Array, Array]:
    """The recorded box, on the support."""
    lower, upper = np.maximum(estimate - width, 0.0), np.minimum(estimate + width, 1.0)
    return np.where(support, lower, 0.0), np.where(support, upper, 0.0)


def promised(box: Box, problem: CMDP, policy: Array) -> float:
    """The most that a given policy can earn over the kernels of a box that meet the thresholds.

    A program without choices of actions: from x a pair (x, a) follows with probability pi(a | x),
    and from there a state as the box allows, so that H steps become 2 H of X + X A states.
    """
    _, H, X, A = problem.reward.shape
    size = X + X * A
    lower, upper = np.zeros((2 * H, size, 1, size)), np.zeros((2 * H, size, 1, size))
    for ends, given in ((lower, box.lower), (upper, box.upper)):
        ends[:, np.arange(size), 0, np.arange(size)] = 1.0  # what does not matter: stay
        ends[0::2, :X] = 0.0
        ends[1::2, X:] = 0.0
        for x in range(X):
            ends[0::2, x, 0, X + x * A : X + (x + 1) * A] = policy[:, x]
        ends[1::2, X:, 0, :X] = given.reshape(H, X * A, X)
    reward = np.zeros((len(problem.reward), 2 * H, size, 1))
    reward[:, 1::2, X:, 0] = problem.reward.reshape(-1, H, X * A)
    found = plan(Box(lower, upper), reward, problem.threshold - TOLERANCE, problem.start)
    return found.value if found.feasible else -np.inf


def as_recorded(name: str, kind: type[AnyRow], settings: dict[str, float]) -> AnyRow:
    """The released preset of an algorithm, with the settings of a trace."""
    row = algorithm(name, "released")
    assert isinstance(row, kind)
    scale, delta = settings["bonus_scale"], settings["delta"]
    return replace(row, tuned_for=int(settings["K"]), delta=delta, bonus_scale=scale)


def largest(ours: Array, recorded: npt.NDArray[Any]) -> float:
    """The largest absolute difference."""
    return float(np.max(np.abs(ours - recorded), initial=0.0))
