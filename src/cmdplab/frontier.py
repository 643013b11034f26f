"""The price of a promise: the optimal value as a function of a threshold."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.figures import literal, save
from cmdplab.palette import BLUE, VERMILION
from cmdplab.problem import CMDP, Array
from cmdplab.solvers import Box, plan
from cmdplab.solvers.models import Indices

MOST_POINTS = 10_000


class Frontier(NamedTuple):
    """Along thresholds of one constraint, the others as they are."""

    constraint: int  # counted from 1
    threshold: Array  # [points]
    value: Array  # [points], V*
    multiplier: Array  # [points], what one more unit of utility costs
    certificate: float  # the largest duality gap along it
    given: float  # the problem's own threshold
    free: float  # up to this threshold the constraint costs nothing
    largest: float  # beyond this threshold nothing is feasible


def frontier(problem: CMDP, constraint: int = 1, points: int = 41) -> Frontier:
    """From where the constraint begins to bind to the largest threshold that can be met.

    The value is concave and falls; its slope is minus the multiplier.
    """
    N = problem.constraints
    if not 1 <= constraint <= N:
        raise InputError(f"constraint {constraint} does not exist: {problem.name} has {N}")
    if not 2 <= points <= MOST_POINTS:
        raise InputError(f"points is {points}, outside 2 to {MOST_POINTS}")
    known = (Box.of(problem), problem.reward)
    others = np.delete(np.arange(N), constraint - 1)
    kept = np.concatenate([[0], others + 1])  # the objective and the other utilities
    without = plan(known[0], problem.reward[kept], problem.threshold[others], problem.start)
    if not without.feasible:
        raise InputError(f"{problem.name}: the other constraints cannot be met")
    free = _utility_without(problem, constraint, kept, others)
    largest = _largest(problem, constraint, others)
    thresholds = np.linspace(min(free, largest), largest, points)
    first, values, multipliers, gaps = np.zeros(N), [], [], []
    for b in thresholds:
        wanted = problem.threshold.copy()
        wanted[constraint - 1] = b - 1e-12 * problem.horizon  # the last one is met with equality
        found = plan(*known, wanted, problem.start, first)
        first = found.multiplier
        values.append(found.value)
        multipliers.append(found.multiplier[constraint - 1])
        gaps.append(found.gap)
    given = float(problem.threshold[constraint - 1])
    arrays = (thresholds, np.array(values), np.array(multipliers))
    return Frontier(constraint, *arrays, max(gaps), given, free, largest)


def _utility_without(problem: CMDP, constraint: int, kept: Indices, others: Indices) -> float:
    """The most utility among the policies that are optimal without the constraint."""
    box = Box.of(problem)
    best = plan(box, problem.reward[kept], problem.threshold[others], problem.start).value
    again = np.concatenate([[constraint], [0], others + 1])
    limits = np.concatenate([[best - 1e-10 * problem.horizon], problem.threshold[others]])
    return plan(box, problem.reward[again], limits, problem.start).value


def _largest(problem: CMDP, constraint: int, others: Indices) -> float:
    """The largest utility that the other constraints leave."""
    rewards = problem.reward[np.concatenate([[constraint], others + 1])]
    found = plan(Box.of(problem), rewards, problem.threshold[others], problem.start)
    return found.value


def draw_frontier(found: Frontier, name: str, path: Path) -> Path:
    """Value against threshold, with the problem's own marked."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5.2, 3.6), layout="constrained")
    axes = figure.subplots()
    axes.plot(found.threshold, found.value, color=BLUE, lw=2.0)
    at = float(np.interp(found.given, found.threshold, found.value))
    if found.threshold[0] <= found.given <= found.threshold[-1]:
        axes.plot([found.given], [at], "o", color=VERMILION, ms=7)
        label = f"b = {found.given:.4g}, V* = {at:.4g}"
        axes.annotate(
            label, (found.given, at), textcoords="offset points", xytext=(8, 6), fontsize=9
        )
    axes.set_xlabel(f"threshold of constraint {found.constraint}")
    axes.set_ylabel("optimal value")
    axes.set_title(literal(name), fontsize=10, loc="left")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    return save(figure, path)
