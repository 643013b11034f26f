"""Construction of a problem from tables of rewards, utilities and costs in the given units.

A problem of H steps has rewards in [0, 1]. Rewards outside [0, 1] are mapped onto it. The labels of
the problem hold the maps, to show values, budgets and prices in the given units. A problem without
an end keeps its numbers.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.checks import checked_name, finite_number, is_whole, real_number, whole_horizon
from cmdplab.cmdp.horizons import randomly_started, with_an_end
from cmdplab.cmdp.labels import Labels, Scale
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Average, Criterion, Discounted, StationaryCMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.files import parse_json
from cmdplab.formats.kernels import LARGEST, pair_named
from cmdplab.types import Array, Mask

ROUNDING = 1e-12  # expectations of numbers in [0, 1] may leave it by this much
Problem = CMDP | StationaryCMDP


class Affine(NamedTuple):
    """Map r = offset + scale r' of rewards. Values of H steps are V = H offset + scale V'."""

    scale: float = 1.0
    offset: float = 0.0

    def over(self, steps: float, of: str = "") -> Scale:
        """Return the units of a sum of `steps` rewards, for `Labels`. of : the signal's name."""
        return Scale(of, self.scale, steps * self.offset)

    def apply(self, table: Array) -> Array:
        """Return r' = (r - offset) / scale of a table of rewards r."""
        return np.asarray(self.over(1.0).ours(table))

    def shrink(self, value: float, horizon: float) -> float:
        """Return V' of a sum V over `horizon` steps."""
        return float(self.over(horizon).ours(value))

    def value(self, value: float, horizon: float) -> float:
        """Return the sum V over `horizon` steps, in the given units, of the mapped value V'."""
        return self.over(horizon).published(value)


def unit_map(table: Array) -> Affine:
    """Return the map of the table's values and 0 onto [0, 1], the identity if they lie there."""
    low, high = min(float(table.min()), 0.0), max(float(table.max()), 0.0)
    if low >= 0.0 and high <= 1.0 + ROUNDING:
        return Affine()
    return Affine(high - low, low)


class Episodes(NamedTuple):
    """Criterion E sum_{h < H} gamma^h r of episodes of H steps."""

    horizon: int
    discount: float = 1.0

    @property
    def weights(self) -> Array:
        """Weights gamma^h of the steps, [H]."""
        return np.asarray(self.discount ** np.arange(self.horizon, dtype=np.float64))

    @property
    def total(self) -> float:
        """Value of a reward of 1 at every step."""
        return float(self.horizon) if self.discount == 1.0 else float(self.weights.sum())


How = Episodes | Criterion


def judged(horizon: int | None, discount: float | None, criterion: str | None) -> How:
    """Return the criterion: a sum over H steps, a discounted sum, or criterion="average"."""
    if criterion not in (None, "average"):
        raise InputError(f"the criterion is {criterion!r}: say 'average', a horizon or a discount")
    if criterion == "average":
        if horizon is not None or discount is not None:
            raise InputError("an average over all time has neither a horizon nor a discount")
        return Average()
    if horizon is None and discount is not None:
        return Discounted(discount)
    gamma = 1.0 if discount is None else real_number("the discount", discount)
    if not 0.0 <= gamma <= 1.0:
        raise InputError(f"the discount is {gamma:g}, outside [0, 1]")
    return Episodes(whole_horizon(horizon), gamma)


@dataclass(frozen=True)
class Roles:
    """Purpose of each reward model of a file, and facts that the file lacks.

    objective : the reward model to maximise.
    horizon : H, the number of steps. None: a problem without an end.
    utilities : name -> threshold. The expected sum over an episode must reach the threshold.
    costs : name -> budget. The expected sum must not exceed the budget.
    name : the name of the problem; empty: the name of the file.
    discount : gamma of discounted sums E sum_t gamma^t r, without an end or over H steps.
    criterion : "average" for averages over all time.
    start : the name of the first state, for files that name states; empty: the first of the file.

    The constraints of the problem are the utilities, then the costs, each in the order given.
    Thresholds and budgets are in the units of the file.
    """

    objective: str
    horizon: int | None = None
    utilities: Mapping[str, float] = field(default_factory=dict)
    costs: Mapping[str, float] = field(default_factory=dict)
    name: str = ""
    discount: float | None = None
    criterion: str | None = None
    start: str = ""

    def __post_init__(self) -> None:
        judged(self.horizon, self.discount, self.criterion)
        for what in ("objective", "name", "start"):
            checked_name(f"the {what}", getattr(self, what) or (what == "objective" or "-"))
        limits = {"threshold": self.utilities, "budget": self.costs}
        for what, given in limits.items():
            if not isinstance(given, Mapping):
                raise InputError(f"give each {what} as a name and a number")
            for name, limit in given.items():
                checked_name(f"the name of a {what}", name)
                finite_number(f"the {what} of {name!r}", limit)

    @property
    def judged(self) -> How:
        """Criterion that horizon, discount and criterion determine."""
        return judged(self.horizon, self.discount, self.criterion)

    def to_json(self) -> str:
        """Return the roles as one line of JSON, which `from_json` reads."""
        later = {"discount": None, "criterion": None, "start": ""}  # left out if default
        told = {k: v for k, v in asdict(self).items() if k not in later or v != later[k]}
        return json.dumps(told)

    @classmethod
    def from_json(cls, text: str) -> Roles:
        """Return the roles of a line of JSON. Raise an `InputError` if keys are wrong."""
        try:
            values = parse_json(text, "the roles")
        except InputError:
            raise InputError("the roles are not JSON") from None
        known = set(cls.__dataclass_fields__)
        if not isinstance(values, dict) or not {"objective"} <= set(values) <= known:
            raise InputError(
                f"the roles must be an object with the keys {', '.join(sorted(known))}"
            )
        return cls(**values)


class Signal(NamedTuple):
    """Reward, utility or cost in the given units, with its name and its limit."""

    of: str
    table: Array  # [X, A], or [H, X, A]
    limit: float = 0.0  # the threshold of a utility, the budget of a cost
    cost: bool = False

    @property
    def sign(self) -> float:
        """Sign -1 for a cost, which becomes a utility, else 1."""
        return -1.0 if self.cost else 1.0


class Listed(NamedTuple):
    """Model as read from a source: kernel, open pairs and signals in their units, and labels."""

    kernel: Array | Sparse  # [X, A, X] or [H, X, A, X], or lists
    mask: Mask  # [X, A] or [H, X, A]
    signals: tuple[Signal, ...]  # the objective, then utilities and costs
    labels: Labels = Labels()  # of states, actions and steps
    name: str = "custom"


def problem_of(model: Listed, how: How, start: int | str | npt.ArrayLike = 0) -> Problem:
    """Return the problem of a model: a `CMDP` if `how` is `Episodes`, else a `StationaryCMDP`.

    start : a state, its name, or the distribution [X] of the first state.
    """
    states = model.mask.shape[-2]
    if isinstance(start, str):
        start = model.labels.find_state(start, states)
    model = _cleared(model)
    if isinstance(how, Episodes):
        if is_whole(start):
            return _episodes(model, how, int(start))
        return randomly_started(_episodes(model, how, 0), start)
    return _for_ever(model, how, start)


def _cleared(model: Listed) -> Listed:
    none = np.argwhere(~model.mask.any(axis=-1))
    if len(none):
        raise InputError(f"state {model.labels.state(int(none[0][-1]))} has no action")
    for each in model.signals:
        wrong = np.argwhere(model.mask & ~np.isfinite(each.table))
        if len(wrong):
            place = tuple(int(i) for i in wrong[0])
            where = pair_named(place, model.labels)
            raise InputError(f"the {each.of} of {where} is {each.table[place]:g}, not finite")
    if model.mask.all():
        return model
    cleared = (each._replace(table=np.where(model.mask, each.table, 0.0)) for each in model.signals)
    return model._replace(signals=tuple(cleared))


def _inside(signal: Signal, steps: float) -> tuple[Array, float, Scale]:
    """Return table and threshold of a signal mapped to [0, 1], and its units.

    steps : the length H' of a sum. V = H' offset + scale V'. A cost c becomes the utility 1 - c',
    and its budget the threshold H' - budget'. A limit off [0, H'] by rounding alone is clipped.
    """
    found, slip = unit_map(signal.table), ROUNDING * steps
    real_number(f"the {'budget' if signal.cost else 'threshold'} of {signal.of}", signal.limit)
    limit = found.shrink(signal.limit, steps)
    limit = min(max(limit, 0.0), steps) if -slip <= limit <= steps + slip else limit
    table = np.clip(found.apply(signal.table), 0.0, 1.0)
    if not signal.cost:
        return table, limit, found.over(steps, signal.of)
    units = Scale(signal.of, -found.scale, found.value(steps, steps))
    return 1.0 - table, steps - limit, units


def _episodes(model: Listed, how: Episodes, start: int) -> CMDP:
    X, A = model.mask.shape[-2:]
    wanted = len(model.signals) * how.horizon * X * A
    if wanted > LARGEST:
        raise InputError(f"{model.name}: the rewards of all steps would be {wanted} numbers")
    inside = (_inside(each, how.total) for each in model.signals)
    mapped, limits, units = zip(*inside, strict=True)
    tables = np.stack(mapped)
    if how.discount != 1.0:
        tables = how.weights[:, None, None] * (tables if tables.ndim == 4 else tables[:, None])
    thresholds = np.array(limits[1:], dtype=np.float64)
    mask = None if model.mask.all() else model.mask
    labels = replace(model.labels, signals=units)
    return CMDP(model.kernel, tables, thresholds, start, how.horizon, model.name, mask, labels)


def _for_ever(model: Listed, how: Criterion, start: int | npt.ArrayLike) -> StationaryCMDP:
    if model.mask.ndim == 3:
        raise InputError(f"{model.name} changes with the step: give a horizon, no {how}")
    return StationaryCMDP(
        model.kernel,
        np.stack([each.sign * each.table for each in model.signals]),
        np.array([each.sign * each.limit for each in model.signals[1:]], float),
        how,
        start,  # type: ignore[arg-type]
        model.name,
        None if model.mask.all() else model.mask,
        replace(model.labels, signals=tuple(Scale(e.of, e.sign) for e in model.signals)),
    )


def limited(
    names: Sequence[str], tables: Sequence[Array], limits: Sequence[float], cost: bool
) -> list[Signal]:
    """Return signals for utilities with thresholds or costs with budgets, one limit for each."""
    if len(tables) != len(limits):
        raise InputError("give one threshold for each utility and one budget for each cost")
    what = "budget" if cost else "threshold"
    return [
        Signal(name, table, real_number(f"the {what} of {name}", limit), cost)
        for name, table, limit in zip(names, tables, limits, strict=True)
    ]


def stationary_tables(problem: CMDP, what: str) -> tuple[Array, Mask]:
    """Return rewards [1 + N, X, A] and mask [X, A] of a problem whose steps are all equal.

    Other problems raise an `InputError`. what : the format that allows no steps, for the message.
    """
    problem = with_an_end(problem)
    rewards, opened, kernel = problem.reward[:, 0], problem.opened[0], problem.transition
    rows = kernel.probability if isinstance(kernel, Sparse) else kernel
    once = problem.stationary or problem.horizon == 1
    alike = {
        "kernel of {} changes": once or bool((rows == rows[0]).all()),
        "rewards of {} change": bool((problem.reward == rewards[:, None]).all()),
        "mask of {} changes": bool((problem.opened == opened).all()),
    }
    for which, same in alike.items():
        if not same:
            words = which.format(problem.name)
            raise InputError(f"the {words} with the step: {what} cannot say so")
    return rewards, opened
