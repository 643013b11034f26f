"""Problems estimated from data: from counts of transitions or logged trajectories.

    Pbar(y | x, a) = n(x, a, y) / n(x, a),      |P - Pbar|(y) <= beta(y)

n counts the data. Pbar is the estimate of the kernel P. beta is the empirical Bernstein width of
`algorithms.confidence`. With probability 1 - delta all entries of P lie in the box Pbar +- beta at
once, for any way of collecting the data. The row of an unvisited pair is uniform in Pbar and
arbitrary in the box. A note counts such pairs.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.algorithms.confidence import bernstein_width
from cmdplab.algorithms.equations import interval_width, scaled_width
from cmdplab.algorithms.schedules import Setting
from cmdplab.checks import real_number
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import refuse_first
from cmdplab.errors import InputError
from cmdplab.formats.assemble import Episodes, How, Problem
from cmdplab.formats.layouts import Given, check_words, how_judged, made
from cmdplab.types import Array, Mask, frozen

if TYPE_CHECKING:
    from cmdplab.solvers import Box


@display.shown
@frozen
class Estimated(NamedTuple):
    """Estimated problem, the box around its kernel, the visits of each pair, and notes.

    `solve(found.problem)` trusts the estimates. `solve_robust(found.problem, found.box)` does not.
    """

    problem: Problem
    box: Box  # [X, A, X], or [H, X, A, X] where counts have steps
    visits: Array  # [X, A], or [H, X, A]
    notes: tuple[str, ...]

    def _facts(self) -> tuple[str, display.Facts]:
        facts = [("problem", self.problem.name), ("visits", f"{int(self.visits.sum()):,}")]
        facts.append(
            ("never visited", f"{int((self.visits == 0).sum()):,} of {self.visits.size:,}")
        )
        return "Estimated", facts + [("note", each) for each in self.notes]


def from_counts(
    counts: npt.ArrayLike, reward: npt.ArrayLike, *, delta: float = 0.05, **given: Unpack[Given]
) -> Estimated:
    """Return an estimated problem from counts of transitions and known rewards.

    counts : [X, A, X], or [H, X, A, X] for episodes, or a SciPy matrix [X, X] for each action.
    reward, and each utility and cost in `Given` : [X, A] or [H, X, A]. A reward of -inf closes a
    pair. delta : the probability with which the box may miss the true kernel.
    """
    check_words(given)
    seen = _checked(counts)
    shape = seen.shape[:-1]

    def read(what: str, values: Any) -> Array:
        table = floats(what, values)
        if table.shape not in (shape, shape[-2:]):
            raise InputError(
                f"rewards, utilities and costs must be {shape[-2:]}, not {table.shape}"
            )
        return np.broadcast_to(table, shape)

    data = Data(seen, frequencies(seen))
    given.setdefault("name", "estimated")
    opened = ~np.isneginf(read("reward", reward))
    check_steps(seen, how_judged(given))
    return boxed(data._replace(mask=opened), made(data.estimate, read, reward, given), [], delta)


class Data(NamedTuple):
    """Counts, the kernel estimated from them, and the mask and support of a model."""

    counts: Array  # [X, A, X], or [H, X, A, X]
    estimate: Array  # shape of the counts
    mask: Mask | None = None  # [X, A], or [H, X, A] if it differs between the steps
    possible: Mask | None = None  # of the shape of the counts: transitions that may occur


def _checked(given: npt.ArrayLike) -> Array:
    if isinstance(given, list | tuple) and any(hasattr(each, "tocoo") for each in given):
        given = np.stack([floats("counts", each) for each in given], axis=1)  # SciPy: [X, X] each
    counts = floats("counts", given)
    shape = counts.shape
    if counts.ndim not in (3, 4) or shape[-3] != shape[-1] or 0 in shape:
        raise InputError(f"counts must be [X, A, X] or [H, X, A, X], not {shape}")
    wrong = ~((counts >= 0.0) & (counts == np.floor(counts)) & np.isfinite(counts))
    refuse_first("counts[{}] is {:g}, not a count", counts, wrong)
    return counts


def check_steps(counts: Array, how: How) -> None:
    """Refuse counts [H, X, A, X] unless the criterion `how` is episodes of H steps."""
    if counts.ndim == 4 and not (isinstance(how, Episodes) and how.horizon == len(counts)):
        raise InputError(f"counts of {len(counts)} steps are for episodes of that horizon")


def boxed(data: Data, problem: Problem, notes: list[str], delta: float) -> Estimated:
    """Return the problem with its box and notes, one of them on pairs that were never visited."""
    counts = data.counts
    visits, X = counts.sum(axis=-1), counts.shape[-1]
    steps = 1 if visits.ndim == 2 else len(visits)
    most = max(int(visits.reshape(steps, -1).sum(axis=-1).max()), 1)  # the counts that may occur
    width = confidence_widths(data.estimate, visits, visits.shape[-2:], delta, steps, most)
    from cmdplab.solvers import Box  # a compiler, which readers of records do without

    box = Box.around(data.estimate, width)
    if data.possible is not None:
        box = box._replace(upper=np.where(data.possible, box.upper, 0.0))
    if problem.states > X:  # a random start: one state more, from which episodes begin
        assert isinstance(problem, CMDP)
        box = _with_start(box, np.asarray(problem.table[0, X, 0, :X]), problem.horizon - 1)
    opened = np.ones(visits.shape, dtype=np.bool_) if data.mask is None else data.mask
    if opened.ndim > visits.ndim:
        opened = np.asarray(opened.any(axis=0))
    blank = int(((visits == 0) & opened).sum())
    if blank:
        words = f"{blank} of {opened.sum()} pairs were never visited: any kernel may be theirs"
        notes = [*notes, words]
    return Estimated(problem, box, visits, tuple(notes))


def frequencies(counts: Array, possible: Mask | None = None) -> Array:
    """Return the frequency of each transition from counts. Rows without visits are uniform.

    possible : transitions that may occur; unvisited rows are uniform over them. None: all.
    """
    visits = counts.sum(axis=-1, keepdims=True)
    some = visits > 0.0
    if possible is None:
        even: Any = 1.0 / counts.shape[-1]
    else:
        even = possible / possible.sum(axis=-1, keepdims=True)
    return np.where(some, counts / np.where(some, visits, 1.0), even)


def confidence_widths(
    estimate: Array,
    visits: Array,
    sizes: tuple[int, int],
    delta: float,
    steps: int = 1,
    most: int | None = None,
) -> Array:
    """Return beta(y) [..., X] of rows `estimate` [..., X] with `visits` [...], 1 without visits.

    sizes : (X, A). steps : number of steps; the union bound covers X, A and the steps. most : the
    largest possible count, by default the sum of all visits.
    """
    if not 0.0 < real_number("delta", delta) < 1.0:
        raise InputError(f"delta is {delta:g}, outside (0, 1)")
    most = max(int(visits.sum()), 1) if most is None else most
    rule = bernstein_width(Setting(*sizes, steps, 0, most, delta, math.inf))

    def width(p: float, n: float) -> float:
        if n == 0.0:
            return rule.cap
        phi = math.sqrt(rule.log / n)
        return scaled_width(interval_width(p, phi, rule.flat, rule.dev, rule.tail), 1.0, rule.cap)

    # Few pairs (share, visits) differ, and most shares are zero: each is looked up once.
    every = np.broadcast_to(visits[..., None], estimate.shape)
    differ, place = np.unique(estimate + 1j * every, return_inverse=True)
    found = [width(p, n) for p, n in zip(differ.real.tolist(), differ.imag.tolist(), strict=True)]
    return np.array(found)[place].reshape(estimate.shape)


def _with_start(box: Box, first: Array, horizon: int) -> Box:
    X, A = len(first), box.lower.shape[-2]

    def longer(end: Array) -> Array:
        steps = np.broadcast_to(end, (horizon, X, A, X))
        made = np.zeros((horizon + 1, X + 1, A, X + 1))
        made[1:, :X, :, :X], made[0, :X, :, :X] = steps, steps[0]
        made[:, X, :, :X] = first
        return made

    return type(box)(longer(box.lower), longer(box.upper))
