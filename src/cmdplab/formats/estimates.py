"""Problems estimated from data: counts of transitions, or logged trajectories, with boxes.

    Pbar(y | x, a) = n(x, a, y) / n(x, a),      |P - Pbar|(y) <= beta(y)

beta is the empirical Bernstein width of `algorithms.confidence`: with probability 1 - delta it
holds for all entries at once, however the data were gathered. A pair that was never visited has
the uniform row as its estimate and all kernels in its box; how many there are is said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.algorithms.confidence import bernstein_width
from cmdplab.algorithms.equations import interval_width, scaled_width
from cmdplab.algorithms.schedules import Setting
from cmdplab.checks import real_number, whole_horizon
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.labels import Labels, Scale
from cmdplab.cmdp.transitions import refuse_first
from cmdplab.errors import InputError
from cmdplab.formats.assemble import Episodes, Problem
from cmdplab.formats.columns import Log, log_of
from cmdplab.formats.layouts import Given, Read, check_words, how_judged, made
from cmdplab.formats.tables import start_of
from cmdplab.types import Array, frozen

if TYPE_CHECKING:
    from cmdplab.solvers import Box


@display.shown
@frozen
class Estimated(NamedTuple):
    """The problem of the estimates, the box that holds the true kernel, and what should be said.

    `solve(found.problem)` trusts the estimates; `solve_robust(found.problem, found.box)` does not.
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
    """A problem from counts [X, A, X], or [H, X, A, X] for episodes, and known rewards.

    counts : an array, or a list of SciPy's matrices [X, X], one for each action.

    reward, and each utility and cost in `Given` : [X, A], or of the shape of the visits. A reward
    of -inf closes a pair. delta : the probability with which the box may miss the true kernel.
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

    return _estimated(seen, Read.by(_estimate(seen), read, reward, given), [], delta, given)


def from_trajectories(
    data: Any,
    *,
    utilities: Mapping[str, float] | None = None,
    costs: Mapping[str, float] | None = None,
    reward: str = "reward",
    by_step: bool = False,
    delta: float = 0.05,
    horizon: int | None = None,
    discount: float | None = None,
    criterion: str | None = None,
    start: int | str | npt.ArrayLike | None = None,
    name: str = "estimated",
) -> Estimated:
    """A problem from logged episodes: kernel and rewards are estimated.

    data : a list of episodes, each a list of (state, action, reward, ..., next), the utilities and
        costs in their order between reward and next; or a long table (`from_table` says of what
        kinds) with columns episode, state, action, rewards, and `next`, without which the state of
        the following row is meant.
    utilities : column -> threshold. costs : column -> budget. by_step : count each step apart, for
    episodes of H steps. start : default: how the logged episodes began.
    Rewards are means; a pair that was never visited has the worst that was seen anywhere.
    """
    utilities, costs = dict(utilities or {}), dict(costs or {})
    log = log_of(data, [reward, *utilities, *costs])
    steps = whole_horizon(horizon) if by_step else 0
    seen, notes = _counted(log, steps), list[str]()
    tables: dict[str, Array] = {}
    for column, values in log.signals.items():
        worst = values.max() if column in costs else values.min()
        tables[column], varies = _means(log, values, float(worst), seen.shape[:-1])
        if varies:
            notes.append(f"{column} varies in {varies} pairs: means are taken, and not bounded")
    labels = Labels(log.states, log.actions, signals=tuple(map(Scale, log.signals)))
    told: Given = {
        "horizon": horizon,
        "discount": discount,
        "criterion": criterion,
        "utilities": [*utilities],
        "thresholds": [*utilities.values()],
        "costs": [*costs],
        "budgets": [*costs.values()],
        "start": _first(log, notes) if start is None else start_of(start, labels, log.sizes[0]),
        "name": name,
        "labels": labels,
    }
    read = Read.by(_estimate(seen), lambda what, column: tables[column], reward, told)
    return _estimated(seen, read, notes, delta, told)


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


def _estimated(
    counts: Array, read: Read, notes: list[str], delta: float, given: Given
) -> Estimated:
    how = how_judged(given)
    if counts.ndim == 4 and not (isinstance(how, Episodes) and how.horizon == len(counts)):
        raise InputError(f"counts of {len(counts)} steps are for episodes of that horizon")
    visits, estimate = counts.sum(axis=-1), np.asarray(read.kernel)
    steps = 1 if visits.ndim == 2 else len(visits)
    most = max(int(visits.reshape(steps, -1).sum(axis=-1).max()), 1)  # the counts that may occur
    width = confidence_widths(estimate, visits, visits.shape[-2:], delta, steps, most)
    given.setdefault("name", "estimated")
    problem = made(read, given)
    from cmdplab.solvers import Box  # a compiler, which readers of records do without

    box = Box.around(estimate, width)
    if problem.states > visits.shape[-2]:
        first = floats("start", given.get("start", 0))
        box = _with_start(box, first, how.horizon)  # type: ignore[union-attr]
    opened = ~np.isneginf(read.objective)
    blank = int(((visits == 0) & opened).sum())
    if blank:
        words = f"{blank} of {opened.sum()} pairs were never visited: any kernel may be theirs"
        notes = [*notes, words]
    return Estimated(problem, box, visits, tuple(notes))


def _estimate(counts: Array) -> Array:
    """Pbar, uniform where nothing was seen."""
    visits = counts.sum(axis=-1, keepdims=True)
    some = visits > 0.0
    return np.where(some, counts / np.where(some, visits, 1.0), 1.0 / counts.shape[-1])


def confidence_widths(
    estimate: Array,
    visits: Array,
    sizes: tuple[int, int],
    delta: float,
    steps: int = 1,
    most: int | None = None,
) -> Array:
    """[..., X], beta(y) of rows Pbar [..., X] with visits [...]; one where nothing was seen.

    sizes : (X, A), and `steps` of them, over which the union bound goes. most : the largest count
    that may occur; default: all visits together.
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
    """The box of `randomly_started`: a step and a state more, which leads where episodes begin."""
    X, A = len(first), box.lower.shape[-2]

    def longer(end: Array) -> Array:
        steps = np.broadcast_to(end, (horizon, X, A, X))
        made = np.zeros((horizon + 1, X + 1, A, X + 1))
        made[1:, :X, :, :X], made[0, :X, :, :X] = steps, steps[0]
        made[:, X, :, :X] = first
        return made

    return type(box)(longer(box.lower), longer(box.upper))


def _counted(log: Log, steps: int) -> Array:
    """[X, A, X], or [H, X, A, X]: how often each transition was seen."""
    X, A = log.sizes
    shape = (steps, X, A, X) if steps else (X, A, X)
    counts = np.zeros(shape)
    known = log.following >= 0
    if steps and (log.step >= steps).any():
        at = int(np.argmax(log.step >= steps))
        raise InputError(f"{log.rows[at]} is step {log.step[at]}, and the horizon is {steps}")
    where = (log.state[known], log.action[known], log.following[known])
    np.add.at(counts, (log.step[known], *where) if steps else where, 1.0)
    return counts


def _means(log: Log, values: Array, worst: float, shape: tuple[int, ...]) -> tuple[Array, int]:
    """The mean of a signal for each pair, and in how many pairs it is not always the same."""
    place = (log.state, log.action) if len(shape) == 2 else (log.step, log.state, log.action)
    total, number = np.zeros(shape), np.zeros(shape)
    np.add.at(total, place, values)
    np.add.at(number, place, 1.0)
    low, high = np.full(shape, np.inf), np.full(shape, -np.inf)
    np.minimum.at(low, place, values)
    np.maximum.at(high, place, values)
    some = number > 0.0
    mean = np.where(high > low, total / np.where(some, number, 1.0), high)
    return np.where(some, mean, worst), int((high > low).sum())


def _first(log: Log, notes: list[str]) -> int | Array:
    """The state in which every episode began, or the shares of those in which they did."""
    began = np.bincount(log.began, minlength=log.sizes[0])
    if (began > 0).sum() == 1:
        return int(np.argmax(began))
    notes.append("episodes began in several states: their shares are taken, and not bounded")
    return np.asarray(began / began.sum())
