"""Fields and methods of every row of every family: a name, scales, and the claims of its paper."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self, Unpack

import numpy as np

from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import FEEDBACK, Task
from cmdplab.errors import InputError
from cmdplab.settings import (
    ACCURACY as ACCURACY,
    EPISODES as EPISODES,
    KERNEL as KERNEL,
    MARGIN,
    SAFE_POLICY as SAFE_POLICY,
    SETTINGS,
    SLATER_GAP as SLATER_GAP,
    Settings,
    check_choice,
    without_none,
)
from cmdplab.types import Array

CONSTRAINT = "a constraint"
STATIONARY = "a stationary kernel"
SUPPORT = "the possible successors"
ONE_CONSTRAINT = "no second constraint"

IN_PAPER = "in the paper"
SAID_TO_EXTEND = "said to extend in the paper"
OUR_EXTENSION = "our extension"
REFUSED = "refused: its paper knows them"


@dataclass(frozen=True, kw_only=True)
class Row:
    """The part of an algorithm that does not depend on its family."""

    name: str
    preset: str = "printed"
    bonus_scale: float = SETTINGS["bonus_scale"].default
    margin_scale: float = SETTINGS["margin_scale"].default
    delta: float = SETTINGS["delta"].default
    tuned_for: int = SETTINGS["tuned_for"].default
    slack_factor: float = SETTINGS["slack_factor"].default
    tightening: float = SETTINGS["tightening"].default
    dynamics: str = SETTINGS["dynamics"].default
    summary: str = ""  # one line for `cmdplab list algorithms`
    paper: str = ""
    needs: tuple[str, ...] = ()  # inputs of the learner beyond the task's arrays
    guarantee: str = ""  # as its paper claims, at scale 1
    safe: bool = False  # True if the paper claims that no episode violates
    unknown_rewards: str = OUR_EXTENSION  # does the paper treat rewards that are only observed?
    provenance: str = ""  # the sources of the update and each constant
    unverified: str = ""  # which constants no source confirms; shown wherever the row is
    family: ClassVar[Any]  # its runs on the cores: `running.session.Family`
    tosses_coin: ClassVar[bool] = False  # True if one of two policies plays, at random

    def __post_init__(self) -> None:
        for name, declared in SETTINGS.items():
            if declared.range is not None and hasattr(self, name):
                declared.range.check(name, getattr(self, name))

    def setting(self, task: Task) -> Setting:
        """Return the sizes and constants that this row's formulas read."""
        n, H, X, A = task.reward.shape
        sizes = (X, A, H, n - 1)
        slack = self.slack_factor * task.slater_gap
        return Setting(*sizes, self.tuned_for, self.delta, slack, task.baseline_slack)

    def with_settings(self, **settings: Unpack[Settings]) -> Self:
        """Return the row with other settings, by name; a setting that is None stays as it is."""
        chosen = without_none(settings)
        for name in chosen:
            if name not in SETTINGS or not self._may_have(name):
                raise InputError(f"{self.name} has no setting {name}")
        changes: dict[str, Any] = {}
        for name, value in chosen.items():
            check_choice(name, value)
            changes |= self._change(name, value)
        return replace(self, **changes)

    def settings(self) -> dict[str, Any]:
        """Return this row's arguments of `with_settings`; None for one without meaning."""
        return {
            name: self._written(name) if self.reads(name) or declared.unread == "kept" else None
            for name, declared in SETTINGS.items()
        }

    def reads(self, name: str) -> bool:
        """Return True if a setting changes anything of this algorithm."""
        declared = SETTINGS.get(name)
        if declared is None:
            return False
        families = {each.__name__ for each in type(self).__mro__}
        needed = (*self.needs, MARGIN) if self.has_margin else self.needs
        mine = not declared.families or not families.isdisjoint(declared.families)
        if name == "dynamics" and STATIONARY in self.needs:
            return False  # a preset that counts all steps together in any case
        if name in ("bonus_scale", "delta") and self.plans:
            return False  # nothing is uncertain
        return mine and (not declared.needs or declared.needs in needed)

    def _may_have(self, name: str) -> bool:
        """Return True if a setting may be given: it is read, or does no harm."""
        return self.reads(name) or SETTINGS[name].unread != "refused"

    def _value(self, name: str) -> Any:
        """Return the value of a setting, by default a field of that name."""
        return getattr(self, name)

    def _written(self, name: str) -> Any:
        """Return the value of a setting in records: None if a default is not recorded."""
        declared, value = SETTINGS[name], self._value(name)
        return None if declared.unwritten_default and value == declared.default else value

    def _change(self, name: str, value: Any) -> dict[str, Any]:
        """Return the fields that a setting changes, by default the one of that name."""
        return {name: value}

    def as_numbers(self, kind: Any, setting: Setting, **given: float) -> Any:
        """Return the numbers of this row as a `kind`: those given, and fields of the same name."""

        def number(name: str) -> float:
            value = given[name] if name in given else getattr(self, name)
            return float(value(setting) if callable(value) else value)

        return kind(*map(number, kind._fields))

    @property
    def pooled(self) -> bool:
        """Return True if the steps share their counts, as stationary dynamics allow."""
        return self.dynamics == "stationary"

    def layers(self, task: Task) -> int:
        """Return L, the number of steps with counts of their own."""
        return 1 if self.pooled else task.reward.shape[1]

    def schedule(self, task: Task, first_episode: int, episodes: int) -> Array:
        """Return the numbers of each episode, counted from 1: [episodes, 0] if none change."""
        return np.zeros((episodes, 0))

    @property
    def plans(self) -> bool:
        """Return True for a planning method: it needs a known kernel, and learns nothing."""
        return KERNEL in self.needs

    @property
    def knows_kernel(self) -> bool:
        """Return True if the row is given the kernel, and learns nothing of it."""
        return self.plans

    @property
    def may_plan_rarely(self) -> bool:
        """Return True if `replan="doubling"` would save most of the row's plans and time."""
        return False

    @property
    def has_margin(self) -> bool:
        """Return True if `margin_scale` multiplies anything."""
        return False

    @property
    def promise_heuristic(self) -> str:
        """Return why a row with claimed zero violation may violate; empty if it is proved."""
        if self.has_margin and self.margin_scale < 1.0:
            return f"margin scale {self.margin_scale:g}: zero violation is heuristic"
        return self._unproved

    @property
    def _unproved(self) -> str:
        if self.pooled:
            return "counts of all steps together: what is proved is about counts of each step"
        return "with unverified constants nothing is proved" if self.unverified else ""

    @property
    def needs_slack(self) -> bool:
        """Return True if the row needs thresholds that leave slack."""
        return SLATER_GAP in self.needs or SAFE_POLICY in self.needs

    def check_slack(self, slack: float) -> None:
        """Refuse a problem whose thresholds leave no slack, if this row needs slack."""
        if self.needs_slack and not slack > 0.0:
            what = SLATER_GAP if SLATER_GAP in self.needs else SAFE_POLICY
            raise InputError(
                f"{self.name} needs a {what}, and there is no slack: the "
                "thresholds can be met only with equality"
            )

    def meant_for(self, constraints: int) -> bool:
        """Return True if a choice of all algorithms for so many constraints includes this row."""
        if self.plans:
            return False
        if ONE_CONSTRAINT in self.needs and constraints > 1:
            return False
        return constraints > 0 or CONSTRAINT not in self.needs

    def check(self, task: Task) -> None:
        """Refuse a task that lacks an input of this algorithm."""
        if task.feedback not in FEEDBACK:
            raise InputError(
                f"unknown rewards {task.feedback!r}: choose one of {', '.join(FEEDBACK)}"
            )
        if self.plans and task.kernel is None:
            raise InputError(
                f"{self.name} learns nothing: it plans on a kernel, which nobody can tell it here"
            )
        if self.knows_kernel and task.kernel is None:
            raise InputError(f"{self.name} was to know the kernel, and nobody can tell it here")
        if self.knows_kernel and task.observed:
            raise InputError(f"{self.name} counts nothing where the kernel is known: so no rewards")
        if CONSTRAINT in self.needs and not len(task.threshold):
            raise InputError(f"{self.name} needs a constraint, and this problem has none")
        if ONE_CONSTRAINT in self.needs and len(task.threshold) > 1:
            raise InputError(
                f"{self.name} searches one multiplier for one constraint, and this problem has "
                f"{len(task.threshold)}: how to search several is open in its paper"
            )
        if self.unknown_rewards == REFUSED and task.observed:
            raise InputError(f"{self.name} has to know the rewards, as in its paper")
        if SLATER_GAP in self.needs and not task.slater_gap > 0.0:
            raise InputError(
                f"{self.name} needs a Slater gap > 0, and {task.slater_gap:g} was given"
            )
        if SAFE_POLICY in self.needs and task.baseline is None:
            raise InputError(f"{self.name} needs a safe policy to begin with, and none was given")
        if SAFE_POLICY in self.needs and not task.baseline_slack > 0.0:
            raise InputError(f"{self.name} needs a baseline that exceeds every threshold")
        if SUPPORT in self.needs and task.support is None:
            raise InputError(
                f"{self.name} ({self.preset}) needs to know which states can follow which, "
                "and was not told"
            )

    @property
    def heuristic(self) -> str:
        """Return why the theory's claims do not hold as they stand; empty if they hold."""
        if not self.guarantee:
            return "nothing is proved of this variant"
        if self.knows_kernel and not self.plans:
            return "the kernel is known: the theory is about learning it"
        if self.has_margin and self.margin_scale < 1.0:
            claim = "zero violation" if self.safe else "its bound on the violation"
            return f"margin scale {self.margin_scale:g}: {claim} is heuristic"
        if self.bonus_scale < 1.0:
            return f"bonus scale {self.bonus_scale:g}: optimism is heuristic"
        return self._unproved

    def outside_theorem(self) -> str:
        """Return why the paper's theorem about schedules does not apply; empty if there is none."""
        return ""

    def tuning_warning(self, episodes: int | None) -> str:
        """Return a warning about a run that is longer than the algorithm was tuned for, or ""."""
        if EPISODES not in self.needs or (episodes is not None and episodes <= self.tuned_for):
            return ""
        long = "an unlimited run" if episodes is None else f"{episodes:,} episodes"
        return f"{self.name} is tuned for {self.tuned_for:,} episodes, and this is {long}"
