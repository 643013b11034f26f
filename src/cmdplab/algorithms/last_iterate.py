"""Planning methods for a known kernel whose last policy converges, not only their average.

They learn nothing: an "episode" is one iteration on the exact values, whoever plays what. RPG-PD is
a row of the primal-dual family. OPG-PD and OMWU-PD are optimistic, a family of their own: with Q_t
that of r^0 + sum_n l_t^n r^n and v_t^n = b^n - V[r^n], both of (pi_t, l_t), all (h, x)
at once, ~ for "proportional to", projections onto the simplex and onto [0, cap], cap = H / slack,

    OPG-PD   pi^_{t+1} = Proj( pi^_t + eta Q_t ),      pi_{t+1} = Proj( pi^_{t+1} + eta Q_t )
    OMWU-PD  pi^_{t+1} ~ pi^_t exp( eta Q_t ),         pi_{t+1} ~ pi^_{t+1} exp( eta Q_t )
    both     l^_{t+1} = Proj( l^_t + eta v_t ),        l_{t+1} = Proj( l^_{t+1} + eta v_t )
    RPG-PD   pi_{t+1} ~ pi_t^(1 - eta tau) exp( eta Q_t,tau ), Q_t,tau with the entropy of pi_t,
             l_{t+1} = Proj( (1 - eta tau) l_t + eta v_t ),    cap = H (1 + tau ln A) / slack

The gradient at (pi_t, l_t) is used twice: to move the anchor (pi^, l^), and as the guess
of the next one. So there is one evaluation an iteration, of 1 + N rewards, and none at the anchor:
that would be extragradient. Q is not weighted by occupancies.

Symbols -> names: eta `fixed_step`; tau `fixed_temperature`; l `multiplier`; pi^ and l^
`anchor` and `anchor_multiplier`.
Needs: the kernel and the Slater gap. Guarantees [secondary], the paper's abstract, discounted
rewards: RPG-PD's last policy converges sublinearly, OPG-PD's linearly.

Departures: finite horizon [derived]; policies of RPG-PD are not kept off the edge of the simplex.
Provenance: names and numbers of equations, (6), (9) and (41) [code], the README of the authors'
notebooks; regularised, and optimistic gradients [secondary]; every formula as it stands above and
every constant [unverified]: neither the paper's text nor the notebooks could be read. eta = 0.1
and tau = 0.01 are ours.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.primal_dual import PrimalDual, no_bonus, slater_cap
from cmdplab.algorithms.row import KERNEL, REFUSED, SLATER_GAP, Row
from cmdplab.algorithms.schedules import Constant, Setting
from cmdplab.algorithms.task import Task
from cmdplab.settings import SETTINGS
from cmdplab.types import Array

# The formulas of both engines: scalars in, a scalar out, in this order of operations.


def simplex_shift(total: float, count: float) -> float:
    """theta = ( sum of the count largest entries - 1 ) / count."""
    return (total - 1.0) / count


def projected(y: float, shift: float) -> float:
    """[ y - theta ]_+, an entry of the nearest point of the simplex."""
    return max(y - shift, 0.0)


FORMULAS = (simplex_shift, projected)


class LastIterateNumbers(NamedTuple):
    """A row resolved for given sizes."""

    eta: float
    cap: float  # on the multipliers
    multiplicative: float  # 1: weights are multiplied; 0: projected onto the simplex


@dataclass(frozen=True, kw_only=True)
class LastIterate(Row):
    """One optimistic method."""

    fixed_step: float = SETTINGS["fixed_step"].default  # eta
    multiplicative: float = 0.0
    dual_cap: Callable[[Setting], float] = slater_cap
    bonus_scale: float = 1.0  # there is no bonus
    unknown_rewards: str = REFUSED

    def numbers(self, task: Task) -> LastIterateNumbers:
        """This row, resolved for a task."""
        cap = self.dual_cap(self.setting(task))
        return LastIterateNumbers(self.fixed_step, cap, self.multiplicative)


class LastIterateState(NamedTuple):
    """All that such a method carries from one iteration to the next: the guess is in it already."""

    policy: Array  # [H, X, A], pi_t, evaluated next
    anchor: Array  # [H, X, A], pi^_t; ln pi^_t where weights are multiplied
    multiplier: Array  # [N], lambda_t
    anchor_multiplier: Array  # [N], lambda^_t
    episode: int  # iterations done

    @classmethod
    def first(cls, row: LastIterate, task: Task) -> LastIterateState:
        """The uniform policy, multipliers zero, and nothing to guess by."""
        policy, none = task.uniform, np.zeros(len(task.threshold))
        anchor = policy.copy()
        if row.multiplicative:
            anchor = np.log(np.where(policy > 0.0, policy, 1.0)) + task.closed
        return cls(policy, anchor, none, none.copy(), 0)


DING = "Ding, Wei, Zhang and Ribeiro (2023), arXiv:2306.11700"

RPG_PD = PrimalDual(
    name="RPG-PD",
    bonus=no_bonus,
    bonus_scale=1.0,
    policy_step=Constant(SETTINGS["fixed_step"].default),
    dual_step=Constant(SETTINGS["fixed_step"].default),
    temperature=Constant(SETTINGS["fixed_temperature"].default),
    kernel="known",
    summary="known kernel, no learner: regularised primal-dual with one step and one temperature",
    paper=DING,
    needs=(KERNEL, SLATER_GAP),
    unknown_rewards=REFUSED,
    guarantee="last iterate: sublinear, to within what step and temperature are chosen for",
    provenance="regularised update [secondary]; its form as in UOpt-RPGPD, with P known; eta and "
    "tau [ours]",
    unverified="its Eq. (6) was not read: form, step, temperature and the bound of multipliers",
)

OPG_PD = LastIterate(
    name="OPG-PD",
    summary="known kernel, no learner: optimistic gradients, projected onto the simplex",
    paper=DING,
    needs=(KERNEL, SLATER_GAP),
    guarantee="last iterate: linear, of discounted rewards, at a rate that the problem decides",
    provenance="optimistic gradients [secondary]; projected onto each simplex "
    "[memory: unverified]; eta [ours]",
    unverified="its Eq. (9) was not read: form, step and the bound of multipliers",
)

OMWU_PD = LastIterate(
    name="OMWU-PD",
    multiplicative=1.0,
    summary="known kernel, no learner: optimistic multiplicative weights",
    paper=DING,
    needs=(KERNEL, SLATER_GAP),
    provenance="optimistic multiplicative weights [code], by their name alone; eta [ours]",
    unverified="its Eq. (41) was not read: form, step and the bound of multipliers",
)
