"""RPG-PD: regularised primal-dual planning for a known kernel (Ding, Wei, Zhang, Ribeiro, 2023).

It learns nothing: an "episode" is one iteration on the exact values, for any policy played. With
v_t^n = b^n - V[r^n] of the policy pi_t, and Q_t,tau of r^0 + sum_n l_t^n r^n plus its entropy:

    pi_{t+1} ~ pi_t^(1 - eta tau) exp( eta Q_t,tau )
    l_{t+1} = Proj_[0, cap]( (1 - eta tau) l_t + eta v_t ),    cap = H (1 + tau ln A) / slack

Symbols -> names: eta `fixed_step`; tau `fixed_temperature`; l `multiplier`.
Needs: the kernel and the Slater gap. Guarantee [secondary], the paper's abstract, discounted
rewards: the last policy converges sublinearly.

Departures: finite horizon [derived]; policies are not kept off the edge of the simplex.
Provenance: the number of the equation, (6) [code], the README of the authors' notebooks;
regularised [secondary]; the formula as it stands above and every constant [unverified]: neither
the paper's text nor the notebooks could be read. eta = 0.1 and tau = 0.01 are ours.
"""

from __future__ import annotations

from cmdplab.algorithms.families.primal_dual import PrimalDual, no_bonus
from cmdplab.algorithms.row import KERNEL, REFUSED, SLATER_GAP
from cmdplab.algorithms.schedules import Constant
from cmdplab.settings import SETTINGS

RPG_PD = PrimalDual(
    name="RPG-PD",
    bonus=no_bonus,
    bonus_scale=1.0,
    policy_step=Constant(SETTINGS["fixed_step"].default),
    dual_step=Constant(SETTINGS["fixed_step"].default),
    temperature=Constant(SETTINGS["fixed_temperature"].default),
    kernel="known",
    summary="known kernel, no learner: regularised primal-dual with one step and one temperature",
    paper="Ding, Wei, Zhang and Ribeiro (2023), arXiv:2306.11700",
    needs=(KERNEL, SLATER_GAP),
    unknown_rewards=REFUSED,
    guarantee="last iterate: sublinear, to within what step and temperature are chosen for",
    provenance="regularised update [secondary]; its form as in UOpt-RPGPD, with P known; eta and "
    "tau [ours]",
    unverified="its Eq. (6) was not read: form, step, temperature and the bound of multipliers",
)
