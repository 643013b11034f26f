"""Problems estimated from data: counts of transitions, or logged trajectories, with boxes.

    Pbar(y | x, a) = n(x, a, y) / n(x, a),      |P - Pbar|(y) <= beta(y)

beta is the empirical Bernstein width of `algorithms.confidence`: with probability 1 - delta it
holds for all entries at once, however the data were gathered. A pair that was never visited has
the uniform row as its estimate and all kernels in its box; how many there are is said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack

import numpy as np
import numpy.typing as npt

from cmdplab import display
from cmdplab.algorithms.confidence import bernstein_width
from cmdplab.algorithms.equations import interval_width, scaled_width
from cmdplab.algorithms.schedules import Setting
from cmdplab.checks import real_number, whole_horizon
from cmdplab.cmdp.bundle import check_problem
from cmdplab.cmdp.checks import floats
from cmdplab.cmdp.labels import Scale
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Discounted
from cmdplab.cmdp.transitions import Sparse, refuse_first
from cmdplab.errors import InputError
from cmdplab.formats.assemble import Episodes, Problem
from cmdplab.formats.columns import Log, limits, log_of
from cmdplab.formats.kernels import LARGEST
from cmdplab.formats.layouts import Given, Read, check_words, how_judged, made
from cmdplab.formats.tables import start_of
from cmdplab.types import Array, Mask, frozen

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
    """Return a problem from counts [X, A, X], or [H, X, A, X] for episodes, and known rewards.

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

    data = _Data(seen, _frequencies(seen))
    given.setdefault("name", "estimated")
    return _estimated(data, Read.by(data.estimate, read, reward, given), [], delta, given)


def from_trajectories(
    data: Any,
    *,
    model: Problem | None = None,
    support: bool = False,
    utilities: Mapping[str, float] | None = None,
    costs: Mapping[str, float] | None = None,
    reward: str | None = "reward",
    by_step: bool = False,
    delta: float = 0.05,
    horizon: int | None = None,
    discount: float | None = None,
    criterion: str | None = None,
    start: int | str | npt.ArrayLike | None = None,
    name: str = "estimated",
) -> Estimated:
    """Return a problem from logged episodes: kernel and rewards are estimated.

    data : a list of episodes, each a list of (state, action, reward, ..., next), the utilities and
        costs in their order between reward and next; or a long table (`from_table` lists the
        kinds) with columns episode, state, action, rewards, and `next`. Without `next` the
        following row has the next state.
    model : a problem that gives the states and actions with their names and numbers, the mask, and
        by default the horizon (or criterion) and the start. Its kernel is not read.
    support : True: transitions that have probability zero in the model are impossible.
    reward : the column to maximise. None: rewards, thresholds, start and horizon are the model's,
        and the log needs states and actions alone.
    utilities : column -> threshold. costs : column -> budget. by_step : count each step apart, for
    episodes of H steps. start : default: that of the model, else how the logged episodes began.
    Rewards are means; a pair that was never visited has the worst that was seen anywhere.
    """
    utilities, costs = limits("utilities", utilities), limits("costs", costs)
    said = (horizon, discount, criterion, start)
    if model is not None:
        check_problem(model)
    elif reward is None or support:
        raise InputError("known rewards or a known support need model=problem")
    if reward is None and (utilities or costs or any(each is not None for each in said)):
        raise InputError("without a column for the reward, sums and limits are those of the model")
    log = log_of(data, [] if reward is None else [reward, *utilities, *costs], model)
    if model is not None and all(each is None for each in said[:3]):
        horizon, discount, criterion = _sums_of(model)
    seen = _counted(log, whole_horizon(horizon) if by_step else 0)
    known = _data(seen, log, model, support)
    if reward is None:
        assert model is not None
        return _boxed(known, replace(model, transition=known.estimate, name=name), [], delta)
    notes, tables = list[str](), dict[str, Array]()
    for column, values in log.signals.items():
        worst = values.max() if column in costs else values.min()
        means, varies = _means(log, values, float(worst), seen.shape[:-1])
        tables[column] = means if known.mask is None else np.broadcast_to(means, known.mask.shape)
        if varies:
            notes.append(f"{column} varies in {varies} pairs: means are taken, and not bounded")
    if model is not None and known.mask is not None:
        tables[reward] = np.where(known.mask, tables[reward], -np.inf)
        start = model.start if start is None else start
    steps = log.labels.steps if len(log.labels.steps) == horizon else ()
    labels = replace(log.labels, steps=steps, signals=tuple(map(Scale, log.signals)))
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
    read = Read.by(known.estimate, lambda what, column: tables[column], reward, told)
    return _estimated(known, read, notes, delta, told)


class _Data(NamedTuple):
    """Counts, the kernel estimated from them, and facts that a model adds."""

    counts: Array  # [X, A, X], or [H, X, A, X]
    estimate: Array  # of the same shape
    mask: Mask | None = None  # [X, A], or [H, X, A] if it differs between the steps
    possible: Mask | None = None  # of the shape of the counts: transitions that may occur


def _data(counts: Array, log: Log, model: Problem | None, support: bool) -> _Data:
    """Return the counts of a log with the mask and the support of a model; refuse other steps."""
    if model is None:
        return _Data(counts, _frequencies(counts))
    by_step, mask = counts.ndim == 4, np.asarray(model.opened)
    possible: Mask | None = None
    step = (log.step,) if by_step else ()
    if by_step and mask.shape != counts.shape[:-1]:
        raise InputError(f"counts of {len(counts)} steps need a model of that horizon")
    if mask.ndim == 3 and not by_step and (mask == mask[:1]).all():
        mask = mask[0]
    opened = mask if by_step or mask.ndim == 2 else np.asarray(mask.any(axis=0))
    _refuse(log, ~opened[(*step, log.state, log.action)], f"{model.name} closes action", False)
    if support:
        kernel = model.transition
        rows = kernel.dense() if isinstance(kernel, Sparse) else kernel
        possible = np.asarray(rows > 0.0)
        if possible.ndim == 4 and not by_step:
            possible = np.asarray(possible.any(axis=0))
        possible = np.broadcast_to(possible, counts.shape)
        to = np.maximum(log.following, 0)
        wrong = ~possible[(*step, log.state, log.action, to)] & (log.following >= 0)
        _refuse(log, wrong, f"{model.name} has no transition by action", True)
    return _Data(counts, _frequencies(counts, possible), mask, possible)


def _refuse(log: Log, wrong: Mask, sentence: str, target: bool) -> None:
    """Refuse a log with a wrong step; the sentence ends with its action, state and next state."""
    if wrong.any():
        at = int(np.argmax(wrong))
        place = f"{log.labels.action(log.action[at])} in state {log.labels.state(log.state[at])}"
        to = f" to {log.labels.state(log.following[at])}" if target else ""
        raise InputError(f"{log.rows[at]}: {sentence} {place}{to}")


def _sums_of(model: Problem) -> tuple[int | None, float | None, str | None]:
    """Return horizon, discount and criterion of a problem."""
    if isinstance(model, CMDP):
        return model.horizon, None, None
    if isinstance(model.criterion, Discounted):
        return None, model.criterion.discount, None
    return None, None, "average"


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


def _estimated(data: _Data, read: Read, notes: list[str], delta: float, given: Given) -> Estimated:
    """Return the problem of estimated rewards, and its box."""
    how, counts = how_judged(given), data.counts
    if counts.ndim == 4 and not (isinstance(how, Episodes) and how.horizon == len(counts)):
        raise InputError(f"counts of {len(counts)} steps are for episodes of that horizon")
    problem = made(read, given)
    return _boxed(data._replace(mask=~np.isneginf(read.objective)), problem, notes, delta)


def _boxed(data: _Data, problem: Problem, notes: list[str], delta: float) -> Estimated:
    """Return the problem with the box around the estimate, and a note on pairs never visited."""
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


def _frequencies(counts: Array, possible: Mask | None = None) -> Array:
    """Return the share of each transition; rows without a visit are uniform where possible."""
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
    if math.prod(shape) > LARGEST:
        raise InputError(
            f"counts of {X} states and {A} actions would be {math.prod(shape)} numbers"
        )
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
