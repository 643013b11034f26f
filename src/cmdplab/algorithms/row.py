"""What every row of every family has: a name, scales, and what its paper says about it."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.task import FEEDBACK, Task
from cmdplab.checks import MOST_EPISODES
from cmdplab.errors import InputError

EPISODES = "number of episodes"
SLATER_GAP = "Slater gap"
SAFE_POLICY = "safe policy"
ACCURACY = "accuracy"
CONSTRAINT = "a constraint"
STATIONARY = "a stationary kernel"
SUPPORT = "the possible successors"

IN_PAPER = "in the paper"
SAID_TO_EXTEND = "said to extend in the paper"
OUR_EXTENSION = "our extension"


@dataclass(frozen=True, kw_only=True)
class Row:
    """The part of an algorithm that does not depend on its family."""

    name: str
    preset: str = "printed"
    bonus_scale: float = 1e-3  # factor on every optimistic width; 1 is the theory
    margin_scale: float = 1e-3  # factor on every pessimistic margin; 1 is the theory
    delta: float = 0.1  # failure probability
    tuned_for: int = 100_000  # K, where the algorithm reads one
    slack_factor: float = 1.0  # the learner is told this multiple of the Slater gap
    tightening: float = 0.5  # the default baseline is optimal for thresholds b + tightening slack
    summary: str = ""  # one line for `cmdplab list algorithms`
    paper: str = ""
    needs: tuple[str, ...] = ()  # what the learner must be told beyond the task's arrays
    guarantee: str = ""  # as proved, at scale 1
    safe: bool = False  # whether the paper promises that no episode violates
    unknown_rewards: str = OUR_EXTENSION  # whether the paper treats rewards that are only observed
    provenance: str = ""  # where the update and each constant come from
    unverified: str = ""  # which constants no source confirms; shown wherever the row is

    def __post_init__(self) -> None:
        if not 0.0 < self.delta <= 1.0:
            raise InputError(f"delta is {self.delta:g}, outside (0, 1]")
        for what in ("bonus_scale", "margin_scale"):
            if not 0.0 < getattr(self, what) < math.inf:
                raise InputError(f"{what} is {getattr(self, what):g}, not a finite number > 0")
        if not 0.0 < self.slack_factor < math.inf:
            raise InputError(f"slack_factor is {self.slack_factor:g}, not a finite number > 0")
        if not 0.0 < self.tightening <= 1.0:
            raise InputError(f"tightening is {self.tightening:g}, outside (0, 1]")
        if not 1 <= self.tuned_for <= MOST_EPISODES:
            raise InputError(f"tuned_for is {self.tuned_for}, outside 1 to {MOST_EPISODES:,}")

    def setting(self, task: Task) -> Setting:
        """The sizes and constants that this row's formulas read."""
        n, H, X, A = task.reward.shape
        sizes = (X, A, H, n - 1)
        slack = self.slack_factor * task.slater_gap
        return Setting(*sizes, self.tuned_for, self.delta, slack, task.baseline_slack)

    def overridden(self, given: dict[str, Any]) -> Self:
        """The row with other settings, by name; what is None stays as it is."""
        chosen = {name: value for name, value in given.items() if value is not None}
        known = {field.name for field in fields(self)}
        meaningless = {name for name, value in self.settings().items() if value is None}
        for name in chosen:
            if name not in known or name in meaningless - {"margin_scale", "replan"}:
                raise InputError(f"{self.name} has no setting {name}")
        return replace(self, **chosen)

    @property
    def has_margin(self) -> bool:
        """Whether `margin_scale` multiplies anything."""
        return False

    def settings(self) -> dict[str, Any]:
        """What `overridden` takes, with this row's values; None where one has no meaning."""
        return {
            "bonus_scale": self.bonus_scale,
            "margin_scale": self.margin_scale if self.has_margin else None,
            "delta": self.delta,
            "tuned_for": self.tuned_for,
            "slack_factor": self.slack_factor if SLATER_GAP in self.needs else None,
            "tightening": self.tightening if SAFE_POLICY in self.needs else None,
        }

    def reads(self, name: str) -> bool:
        """Whether a setting changes anything of this algorithm."""
        if name == "tuned_for":
            return EPISODES in self.needs
        return self.settings().get(name) is not None

    @property
    def needs_slack(self) -> bool:
        """Whether nothing is left of it where thresholds can be met with equality alone."""
        return SLATER_GAP in self.needs or SAFE_POLICY in self.needs

    def check_slack(self, slack: float) -> None:
        """Refuse a problem whose thresholds leave no room, if that is what this row lives on."""
        if self.needs_slack and not slack > 0.0:
            what = SLATER_GAP if SLATER_GAP in self.needs else SAFE_POLICY
            raise InputError(
                f"{self.name} needs a {what}, and there is no slack: the "
                "thresholds can be met only with equality"
            )

    def check(self, task: Task) -> None:
        """Refuse a task that lacks what this algorithm needs to know."""
        if task.feedback not in FEEDBACK:
            raise InputError(
                f"unknown rewards {task.feedback!r}: choose one of {', '.join(FEEDBACK)}"
            )
        if CONSTRAINT in self.needs and not len(task.threshold):
            raise InputError(f"{self.name} needs a constraint, and this problem has none")
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
        """Empty where the theory's claims hold as they stand; else why they do not."""
        if not self.guarantee:
            return "nothing is proved of this variant"
        if self.has_margin and self.margin_scale < 1.0:
            claim = "zero violation" if self.safe else "its bound on the violation"
            return f"margin scale {self.margin_scale:g}: {claim} is heuristic"
        if self.bonus_scale < 1.0:
            return f"bonus scale {self.bonus_scale:g}: optimism is heuristic"
        return "with unverified constants nothing is proved" if self.unverified else ""

    def outside_theorem(self) -> str:
        """What is outside the paper's theorem about schedules; empty where there is none."""
        return ""

    def tuning_warning(self, episodes: int | None) -> str:
        """What to say of a run that is longer than the algorithm was tuned for."""
        if EPISODES not in self.needs or (episodes is not None and episodes <= self.tuned_for):
            return ""
        long = "an unlimited run" if episodes is None else f"{episodes:,} episodes"
        return f"{self.name} is tuned for {self.tuned_for:,} episodes, and this is {long}"
