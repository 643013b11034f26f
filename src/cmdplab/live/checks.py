"""Checks and defaults of the arguments of `learn`."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from cmdplab.algorithms.row import SAFE_POLICY, SLATER_GAP, Row
from cmdplab.algorithms.task import Baseline as TaskBaseline, Task
from cmdplab.checks import real_number
from cmdplab.errors import InputError
from cmdplab.experiments.play import check_counts
from cmdplab.live.codes import Whole, described
from cmdplab.live.environment import Env, reset_checked
from cmdplab.live.evaluation import Tally
from cmdplab.live.files import Saved, Settings
from cmdplab.live.learned import Learned
from cmdplab.live.model.baseline import Baseline
from cmdplab.live.model.experience import Experience
from cmdplab.live.signals import Setup
from cmdplab.live.spaces import Spaces
from cmdplab.types import Array

SEVERAL = "several"
RESETS = 20  # before learning, to find out if episodes begin in one state or in several
LARGEST = 1 << 25  # pairs of step, state and action: a learner has about ten numbers of each


@dataclass(frozen=True)
class Asked:
    """Checked request for a live run: algorithm, environment, limits and numbers of episodes."""

    row: Row
    setup: Setup  # without the start
    limit: Array  # [N]
    source: str  # source of the constrained signals
    slack: float | None
    seed: int
    episodes: int
    evaluate: int
    baseline: Baseline | None = None  # for the algorithms that begin with a safe policy
    dynamics: str | None = None  # the choice of a person, or None

    @property
    def may_switch(self) -> bool:
        """True if the learner may change to counts per step when the steps are found to differ."""
        return self.dynamics is None and self.row.pooled and not self.setup.spaces.cells

    @property
    def may_plan_by_step(self) -> bool:
        """True if a plan with estimates of each step may be tried.

        Cells of a Box are no Markov states. Their steps differ, but pooled counts suit them better.
        """
        return self.dynamics == "per-step" or (
            self.dynamics is None and not self.setup.spaces.cells
        )

    def __post_init__(self) -> None:
        check_counts(self.episodes, self.seed)
        if self.evaluate == 1:
            raise InputError("evaluate is 1, and an interval needs two episodes; 0 makes none")
        if self.row.plans:
            raise InputError(
                f"{self.row.name} learns nothing: it plans on a kernel, and here nobody knows it"
            )
        if SAFE_POLICY in self.row.needs and self.baseline is None:
            raise InputError(
                f"{self.row.name} needs a safe policy to begin with: pass baseline=, a policy that "
                "its own episodes can certify"
            )
        if SAFE_POLICY not in self.row.needs and self.baseline is not None:
            raise InputError(f"{self.row.name} takes no baseline")
        if SLATER_GAP in self.row.needs and self.slack is None:
            raise InputError(
                f"{self.row.name} needs the Slater gap, "
                "which a live environment does not show: pass slater_gap="
            )
        if self.slack is not None and not 0.0 < self.slack < np.inf:
            raise InputError(f"slater_gap is {self.slack:g}, not a finite number > 0")

    def settings(self, env: Env, start: int | str | None) -> Settings:
        """Return the settings that a checkpoint must share. The number of episodes may differ.

        start : the first state, "several", or None if it is not known yet.
        """
        world, spec = self.setup, getattr(env, "spec", None)
        ends = np.sort([world.scale.worst, world.scale.best], axis=0).T.tolist()
        digest = "none"
        if world.opened is not None:
            digest = hashlib.sha256(np.packbits(world.opened).tobytes()).hexdigest()[:12]
        return {
            "environment": str(getattr(spec, "id", None) or type(env).__name__),
            "algorithm": f"{self.row.name} ({self.row.preset})",
            "constants": _constants(self.row),
            "dynamics": self.row.dynamics if self.dynamics else None,
            "bonus_scale": "fixed",  # old checkpoints have "auto", which no longer exists
            "spaces": _spaces(world.spaces),
            "horizon": world.horizon,
            world.what: self.limit.tolist(),
            **({} if all(each == [0.0, 1.0] for each in ends[1:]) else {"cost_range": ends[1:]}),
            **({"clip": True} if world.clip else {}),
            f"source of {world.what}": self.source,
            "mask": digest,
            "reward_range": ends[0],
            "slack": self.slack or 0.0,
            "seed": self.seed,
            "start": start,
            **({} if self.baseline is None else {"baseline": None}),
        }

    def begun(self, start: int | str) -> Setup:
        """Return the setup with its start, a state in the environment's numbers or "several"."""
        at = None if isinstance(start, str) else start - self.setup.spaces.first_state
        return self.setup._replace(start=at)

    def threshold(self, setup: Setup) -> Array:
        """Return the limits as thresholds [N] in the learner's units."""
        return setup.scale.to_unit(np.array([0.0, *self.limit]), setup.steps)[1:]

    def task(self, setup: Setup, baseline: TaskBaseline | None = None) -> Task:
        """Return the task of the learner: sizes, thresholds, mask. Rewards will come as samples.

        baseline : the certified safe policy, if the algorithm needs one.
        """
        shape = (len(setup.names), setup.steps, setup.states, setup.spaces.actions)
        entries = float(np.prod([*map(float, shape[1:])]))
        if entries > LARGEST:
            raise InputError(
                f"{setup.states} states, {setup.spaces.actions} actions and {setup.steps} steps "
                f"are a policy of {entries:.1e} numbers, more than {LARGEST:.1e}"
            )
        slack = 1.0 if self.slack is None else self.slack  # rows that need none read none
        told = (self.threshold(setup), setup.first, slack, baseline)
        return Task(np.zeros(shape), *told, mask=setup.mask, feedback="bounded")


def first_state(env: Env, spaces: Spaces, given: Any) -> int | str:
    """Return the first state in the environment's numbers, or "several".

    given : a state, "several", or None to find out by `RESETS` resets.
    """
    if given == SEVERAL:
        return SEVERAL
    if isinstance(given, str):
        raise InputError(f'start is {given!r}, not a state, "several" or None')
    if given is not None:
        try:
            return spaces.observed.number(given) + spaces.first_state
        except InputError as error:
            raise InputError(f"start is no state of the environment: {error}") from None
    seen = {spaces.state(reset_checked(env)[0]) for _ in range(RESETS)}
    return SEVERAL if len(seen) > 1 else seen.pop() + spaces.first_state


def _spaces(spaces: Spaces) -> list[Any]:
    if isinstance(spaces.observed, Whole) and isinstance(spaces.chosen, Whole):
        return [spaces.states, spaces.actions, spaces.first_state, spaces.first_action]
    return [described(spaces.observed), described(spaces.chosen)]


def _constants(row: Row) -> str:
    """Return a hash of all fields of a row except texts."""
    values = {f.name: getattr(row, f.name) for f in fields(row)}
    kept = {name: each for name, each in values.items() if not isinstance(each, str)}
    return hashlib.sha256(re.sub(r" at 0x[0-9a-f]+", "", repr(kept)).encode()).hexdigest()[:12]


def as_live(
    row: Row, dynamics: str | None, replan: str | None, scale: float | None, data: Any = None
) -> Row:
    """Return the row with the defaults of live learning: counts pooled over steps, and fewer plans.

    dynamics, replan, scale : the choices of a person, or None. data : a `Learned` to go on from, or
    None. Planners whose multipliers change in every episode plan in every episode.
    """
    if dynamics is None and row.reads("dynamics"):
        dynamics = data.algorithm.dynamics if isinstance(data, Learned) else "stationary"
    if replan is None and row.may_plan_rarely:
        replan = "doubling"
    row = row.with_settings(dynamics=dynamics, replan=replan)
    if scale is None:
        return row
    if not row.reads("bonus_scale"):
        raise InputError(f"{row.name} has no bonus_scale")
    return row.with_settings(bonus_scale=real_number("bonus_scale", scale))


def taken_up(data: Learned, asked: Asked, settings: Settings) -> Saved:
    """Return the state and the counts of a `Learned`, for a learner that goes on from them.

    Refuse a `Learned` of another algorithm or size. If `settings` has no start, it gets that start.
    """
    row, world = asked.row, data.world
    both = {
        "algorithm": (row.name, data.algorithm.name),
        "preset": (row.preset, data.algorithm.preset),
        "spaces": (asked.setup.spaces, world.spaces),
        "horizon": (asked.setup.horizon, world.horizon),
        "number of signals": (1 + len(asked.limit), len(data.names)),
    }
    for what, (here, there) in both.items():
        if here != there:
            raise InputError(f"data= was learned with another {what}: {there} there, {here} here")
    start = SEVERAL if world.start is None else world.start + asked.setup.spaces.first_state
    settings["start"] = start if settings["start"] is None else settings["start"]
    sizes = (asked.setup.spaces.states, asked.setup.spaces.actions)
    seen = Experience.of_arrays(*sizes, data.seen.arrays())
    steps = Experience.of_arrays(*sizes, data.steps.arrays(), asked.setup.horizon)
    earlier = data.visits - steps.visits().astype(np.int64)
    told = None if asked.setup.opened is not None else world.opened
    tally = Tally(len(data.names))
    return Saved(data.state, tally, 0, seen, steps, earlier if earlier.any() else None, told)
