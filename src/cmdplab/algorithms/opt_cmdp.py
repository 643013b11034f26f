"""OptCMDP and its relatives OptCMDP-bonus and OptDual-CMDP (Efroni, Mannor and Pirotta, 2020).

Symbols -> names: beta(y) `width`, the optimistic kernel P' (`freedom` = 1: chosen in the box),
lambda `multiplier`, t_lambda the inverse of `queue.step`. With known rewards, each episode:

    OptCMDP        (pi_k, P') maximise V^pi[P', r^0]  s.t.  V^pi[P', r^n] >= b^n,
                   over policies and kernels |P' - Pbar| <= beta, entry by entry
    OptCMDP-bonus  the same on Pbar, with r^n + H sum_y beta(y) for every n = 0..N
    OptDual-CMDP   (pi_k, P') maximise V^pi[P', r^0 + sum_n lambda_k^n r^n],
                   lambda_{k+1}^n = [lambda_k^n + (b^n - V^{pi_k}[P', r^n]) / t_lambda]_+,
                   t_lambda = H sqrt(N K) / rho,  rho = H / slack

Needs: the number of episodes K, inside the logarithm of the widths; OptDual-CMDP also the Slater
gap, for its step. No safe policy.
Guarantees, with probability 1 - delta: OptCMDP, strong regret and strong violation of order
X A^(1/2) H^2 K^(1/2), without a Slater point; OptDual-CMDP, weak ones of order H^2 sqrt(X^3 A K).
Nothing about a last iterate, and OptCMDP violates while it learns.

The bonus_scale of OptCMDP and OptDual-CMDP defaults to 1e-2, not to 1e-3 as elsewhere [ours]: their
optimism is in the choice of the kernel alone, and with smaller boxes they can stay with a bad
policy. The scales of all algorithms come from decades on five problems: docs/algorithms/scales.md.

Departures: without a solution of the program (off the good event, or with bonus_scale < 1) the
policy of the largest margin is played, not the last one. States that the optimistic plan never
visits take the action that is greedy for its multipliers.

`released` is OptCMDP as the DOPE repository runs it. All steps share their counts. The successors
are restricted to the true support of the kernel, which a learner does not know. It has
L = ln(6 X^2 H K / delta) and no scale, and plays any action where the plan never comes. Its program
has many optimal policies while the boxes are wide. The solver chooses one of them, and its choice
decides the regret of the first hundreds of episodes: docs/algorithms/optcmdp.md.
Provenance: the program of OptCMDP [code] in three repositories; the widths' constants [code], their
logarithm [derived]: confidence.py; OptCMDP-bonus and OptDual-CMDP [unverified].
"""

from __future__ import annotations

from dataclasses import replace

from cmdplab.algorithms import confidence
from cmdplab.algorithms.families.planner import Planner, Queue
from cmdplab.algorithms.naive_primal_dual import dual_step
from cmdplab.algorithms.row import EPISODES, IN_PAPER, SLATER_GAP, STATIONARY, SUPPORT
from cmdplab.algorithms.schedules import Setting

PAPER = "Efroni, Mannor and Pirotta (2020), arXiv:2003.02189"


def horizon(s: Setting) -> float:
    """Return H, the largest cost of a wrong kernel per unit of width."""
    return float(s.H)


OPT_CMDP = Planner(
    name="OptCMDP",
    width=confidence.bernstein_width,
    bonus_scale=1e-2,
    summary="the optimistic linear program over policies and kernels, solved in every episode",
    paper=PAPER,
    needs=(EPISODES,),
    guarantee="strong regret and strong violation of order sqrt(K)",
    unknown_rewards=IN_PAPER,
    provenance="program [code]; widths [code]; their logarithm [derived]",
)

OPT_CMDP_RELEASED = replace(
    OPT_CMDP,
    preset="released",
    width=confidence.bernstein_width_dope,
    bonus_scale=1.0,
    delta=0.01,
    dynamics="stationary",
    uniform_elsewhere=1.0,
    needs=(EPISODES, STATIONARY, SUPPORT),
    guarantee="",  # its logarithm has fewer factors than a union bound needs
    provenance="program, widths, pooled counts and support [code]",
)

OPT_CMDP_BONUS = replace(
    OPT_CMDP,
    name="OptCMDP-bonus",
    freedom=0.0,
    guarantee="",
    bonus_scale=1e-3,
    objective_bonus=horizon,
    utility_bonus=horizon,
    summary="OptCMDP with a bonus on every reward in place of the choice of a kernel",
    provenance="program [unverified]; widths [code]; their logarithm [derived]",
    unverified="the program",
)

OPT_DUAL = replace(
    OPT_CMDP,
    name="OptDual-CMDP",
    queue=Queue(step=dual_step),
    needs=(EPISODES, SLATER_GAP),
    guarantee="weak regret and weak violation of order sqrt(K)",
    summary="the optimistic plan for multipliers that are updated once an episode",
    provenance="update [unverified]; step as of OptPrimalDual-CMDP; widths as of OptCMDP",
    unverified="the update",
)
