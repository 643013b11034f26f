"""Certificates for a safe policy whose exact returns are unknown, from episodes of that policy.

For n independent episodes whose sums lie in [low, high], with probability 1 - delta,

    V >= mean - sqrt(2 s^2 ln(2 / delta) / n) - 7 (high - low) ln(2 / delta) / (3 (n - 1)),

the empirical Bernstein bound of Maurer and Pontil (2009, Theorem 4). V is the expected sum, s^2 the
sample variance. The bound holds for every n. The N constraints share delta equally.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from cmdplab.algorithms import task
from cmdplab.checks import real_number, whole_number
from cmdplab.cmdp.policy import Policy
from cmdplab.errors import InputError
from cmdplab.live.environment import Env
from cmdplab.live.episodes import Played, roll_out
from cmdplab.live.logs import played_from
from cmdplab.live.masks import Act, projected
from cmdplab.live.signals import Setup
from cmdplab.numerics.noise import uniforms
from cmdplab.types import Array


@dataclass(frozen=True)
class Baseline:
    """Policy that a person believes to be safe, and the way to certify it.

    policy : [H, X, A], or [X, A] for every step: a `Policy` or an array.
    data : logged episodes of this policy, as for `cmdplab.fit`. Without them the policy is played
    before the learning, for `episodes` episodes.
    confidence : the probability with which the bounds on its returns hold.
    """

    policy: npt.ArrayLike | Policy
    data: Any = None
    episodes: int = 1000
    confidence: float = 0.95

    @classmethod
    def of(cls, given: Any) -> Baseline | None:
        """Return a baseline from a baseline, a policy or None."""
        return given if given is None or isinstance(given, cls) else cls(given)


class Certified(NamedTuple):
    """Baseline with lower bounds on its returns, the episodes behind them, and a note."""

    told: task.Baseline  # policy and bounds in the learner's units
    played: list[Played]
    note: str


def bernstein_low(values: Array, width: float, delta: float) -> float:
    """Return a lower bound for the mean from samples [n]. width : high - low. delta : its error."""
    n, log = len(values), math.log(2.0 / delta)
    spread = float(np.var(values, ddof=1))
    return (
        float(np.mean(values))
        - math.sqrt(2.0 * spread * log / n)
        - 7.0 * width * log / (3.0 * (n - 1))
    )


def certified(
    given: Baseline, env: Env, setup: Setup, threshold: Array, seed: int, kept: Any = None
) -> Certified:
    """Certify a baseline from its log or by playing it. Refuse it if a bound misses its threshold.

    threshold : [N], in the learner's units. kept : returns and note in a checkpoint, or None.
    """
    policy = given.policy if isinstance(given.policy, Policy) else Policy(np.asarray(given.policy))
    shape = (setup.horizon, setup.spaces.states, setup.spaces.actions)
    if policy.counter is not None or policy.array.shape not in (shape, shape[1:]):
        raise InputError(f"the baseline has the shape {policy.array.shape}, not {shape}")
    rows = projected(np.broadcast_to(policy.array, shape), setup.opened)
    if kept is not None:
        returns = np.array(kept["returns"])
        return Certified(task.Baseline(_for_learner(rows, setup), returns), [], kept["note"])
    confidence = real_number("confidence", given.confidence)
    if not 0.0 < confidence < 1.0:
        raise InputError(f"the confidence of the baseline is {confidence:g}, outside (0, 1)")
    if given.data is not None:
        played = list(played_from(given.data, setup))
    else:
        episodes = whole_number("episodes", given.episodes, least=2)
        act, noise = by_rows(rows, setup.lead), uniforms(seed, 1, episodes, setup.steps)[:, :, 1]
        every = enumerate(noise.tolist(), start=1)
        played = [roll_out(env, setup, act, each, k) for k, each in every]
    if len(played) < 2:
        raise InputError("a baseline needs at least two episodes to be certified")
    sums = np.stack([setup.scale.to_unit(each.signals).sum(axis=1) for each in played])
    delta = (1.0 - confidence) / max(len(threshold), 1)
    low = np.array([bernstein_low(each, float(setup.horizon), delta) for each in sums.T])
    _refuse(setup, low, sums.mean(axis=0), threshold, len(played), confidence)
    bound = ", ".join(_in_words(setup, n, low) for n in range(1, len(low)))
    where = "logged" if given.data is not None else "played"
    note = (
        f"The baseline has {bound} with confidence {confidence:g}, from {len(played):,} episodes "
        f"that were {where}: what the algorithm promises rests on that, too."
    )
    return Certified(task.Baseline(_for_learner(rows, setup), low), played, note)


def _for_learner(rows: Array, setup: Setup) -> Array:
    """Return the policy in the learner's sizes [S, states, A], from rows [H, X, A]."""
    made = np.zeros((setup.steps, setup.states, setup.spaces.actions))
    made[..., 0] = 1.0
    made[: setup.lead] = setup.mask[: setup.lead] / setup.mask[: setup.lead].sum(-1, keepdims=True)
    made[setup.lead :, : setup.spaces.states] = rows
    return made


def _refuse(
    setup: Setup, low: Array, mean: Array, threshold: Array, episodes: int, confidence: float
) -> None:
    for n, b in enumerate(threshold, start=1):
        if low[n] <= b:
            limit = setup.scale.from_unit(np.append(0.0, threshold), setup.steps)[n]
            about = setup.scale.from_unit(mean, setup.steps)[n]
            raise InputError(
                f"the baseline cannot be certified: {episodes:,} episodes say {setup.names[n]} "
                f"{about:.4g}, {_in_words(setup, n, low)} with confidence {confidence:g}, and "
                f"{setup.rule} {limit:g} is wanted; more episodes or a safer policy are needed"
            )


def _in_words(setup: Setup, n: int, low: Array) -> str:
    bound = setup.scale.from_unit(low, setup.steps)[n]
    return f"{setup.names[n]} {setup.rule} {bound:.4g}"


def by_rows(rows: Array, lead: int) -> Act:
    """Return a function that draws actions of a policy [H, X, A] from uniforms, by inverse CDF.

    lead : the number of the learner's steps before the first step of the policy.
    """
    sums = np.cumsum(rows, axis=-1)
    last = rows.shape[-1] - 1 - np.argmax(rows[..., ::-1] > 0.0, axis=-1)

    def act(h: int, x: int, u: float) -> int:
        a = int(sums[h - lead, x].searchsorted(u, side="right"))
        return min(a, int(last[h - lead, x]))  # the sums may end below 1 by a rounding

    return act
