"""What must hold of the GPU engine, on a device and in the simulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cmdplab.algorithms import ALGORITHMS
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.families.triple_q import TripleQ, TripleQState
from cmdplab.algorithms.learner import Chunk
from cmdplab.algorithms.row import CONSTRAINT, Row
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import session
from cmdplab.engines.gpu.batch import GpuBatch, measure_many
from cmdplab.measures.measures import Measures
from cmdplab.solvers import solve_feasible

# What is compared of a state, up to a tolerance, and which of its counts must be equal.
NEAR: dict[type[Row], tuple[str, ...]] = {
    PrimalDual: ("policy", "multiplier"),
    TripleQ: TripleQState._fields,
}
COUNTED: dict[type[Row], str] = {PrimalDual: "counts", TripleQ: "visits"}
MILD = {"printed": 1e-6, "released": 100.0}  # scales for margins of the size of the values


def family_rows(problem: CMDP, kind: type[Row] = PrimalDual) -> list[Row]:
    """Every row and preset of a family that can learn the problem, and has to."""
    rows = [row for row in ALGORITHMS.values() if isinstance(row, kind) and not row.knows_kernel]
    return [row for row in rows if problem.constraints or CONSTRAINT not in row.needs]


def mild_rows(problem: CMDP, tuned_for: int) -> list[Row]:
    """Every row and preset of Triple-Q, with margins that leave something to the objective."""
    rows = family_rows(problem, TripleQ)
    return [row.with_settings(tuned_for=tuned_for, margin_scale=MILD[row.preset]) for row in rows]


def told(problem: CMDP, rows: Sequence[Row]) -> list[Task]:
    """What each row is told of the problem."""
    solution = solve_feasible(problem)
    return [task_for(row, problem, solution) for row in rows]


def batch(problem: CMDP, rows: Sequence[Row], **options: Any) -> GpuBatch:
    """One run of each row, on the seeds 5, 6, ..."""
    count = len(rows)
    seeds = list(range(5, 5 + count))
    return GpuBatch([problem] * count, list(rows), told(problem, rows), seeds, **options)


def check_judged(problem: CMDP, rows: Sequence[Row], episodes: int) -> None:
    """What is measured on the card is what the host measures of the same episodes."""
    optimum = solve_feasible(problem).value
    played = batch(problem, rows).play(episodes)
    given = ([problem] * 2, rows, told(problem, rows), [5, 6], [optimum] * 2)
    for b, ours in enumerate(measure_many(*given, episodes)):
        theirs = Measures(optimum, problem.threshold, problem.horizon)
        theirs.add(Chunk(played.returns[b], played.multiplier[b]))
        for name, array in theirs.arrays().items():
            np.testing.assert_array_equal(ours.arrays()[name], array, err_msg=name)
        assert ours.summary() == theirs.summary()


def check_equals_cpu(
    problem: CMDP,
    rows: Sequence[Row],
    episodes: int,
    tolerance: float,
    form: Any = None,
    precision: str = "float64",
) -> float:
    """Returns, multipliers and states of every run are those of the CPU engine; how nearly."""
    runs = batch(problem, rows, form=form, precision=precision)
    played, worst = runs.play(episodes), 0.0
    for b, (row, task) in enumerate(zip(rows, told(problem, rows), strict=True)):
        cpu = session("cpu", problem, row, task, 5 + b)
        chunk, state, ours = cpu.play(episodes), cpu.state(), runs.state(b)
        pairs = [(played.returns[b], chunk.returns), (played.multiplier[b], chunk.multiplier)]
        pairs += [(getattr(ours, name), getattr(state, name)) for name in NEAR[type(row)]]
        for mine, theirs in pairs:
            np.testing.assert_allclose(mine, theirs, rtol=0, atol=tolerance, err_msg=row.name)
            worst = max(worst, float(np.abs(mine - theirs).max(initial=0.0)))
        if precision == "float64":
            counted = COUNTED[type(row)]
            np.testing.assert_array_equal(getattr(ours, counted), getattr(state, counted))
    return worst


def check_same_bits(problem: CMDP, rows: Sequence[Row], episodes: int) -> None:
    """Neither the batch a run is in, nor chunks, nor a resume from its state change a bit."""
    together = batch(problem, rows)
    whole = together.play(episodes)
    b = len(rows) - 1
    task, seed = told(problem, rows)[b], 5 + b
    alone = GpuBatch([problem], [rows[b]], [task], [seed])
    pieces = [alone.play(1)]
    resumed = GpuBatch([problem], [rows[b]], [task], [seed], [alone.state(0)])
    pieces.append(resumed.play(episodes - 1))
    for field in ("returns", "multiplier"):
        joined = np.concatenate([getattr(piece, field)[0] for piece in pieces])
        np.testing.assert_array_equal(joined, getattr(whole, field)[b])
    for mine, theirs in zip(resumed.state(0), together.state(b), strict=True):
        np.testing.assert_array_equal(mine, theirs)
