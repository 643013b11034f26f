"""UOpt-RPGPD (Kitamura et al., 2024) and the ablations and schedules its paper speaks of.

The algorithm, in the paper's symbols (docs/notation.md), for k = 1, 2, ... without end:

    eta_k = (k + 3)^-alpha_eta,  tau_k = (k + 3)^-alpha_tau,  exponents (0.53, 0.4)
    beta  = sum_y [ 2 sqrt(Pbar(y)) phi + 5 phi^2 ],
    phi   = sqrt( (2 llnp(2n) + 2 ln(48 X^2 A H / delta)) / (n v 1) )                       (Eq. 3)
    then the common update of `primal_dual`, with dual cap H (1 + tau_k ln A) / slack.

Needs: the Slater gap (for the dual cap only; `released` does not clip). No number of episodes.
Guarantees: Uniform-PAC, hence convergence, sublinear strong regret and PAC, for bonus_scale = 1
and exponents inside the theorem's region. The experiment scales every bonus by 1e-3, as does our
default: the guarantee is then heuristic.

`printed` is the paper's text, with unvisited pairs held at the optimistic cap, as by the unscaled
bonus (docs/deviations.md has the reason). `released` has the formulas of the authors' notebook.
"""

from __future__ import annotations

from dataclasses import replace

from cmdplab.algorithms import confidence
from cmdplab.algorithms.families.primal_dual import PrimalDual, as_released
from cmdplab.algorithms.row import EPISODES, SAID_TO_EXTEND, SLATER_GAP
from cmdplab.algorithms.schedules import Constant

PAPER = "Kitamura et al. (2024), arXiv:2401.17780"

UOPT_RPGPD = PrimalDual(
    name="UOpt-RPGPD",
    bonus=confidence.uniform_pac,
    paper=PAPER,
    needs=(SLATER_GAP,),
    guarantee="Uniform-PAC: convergence, sublinear strong regret and PAC at once",
    unknown_rewards=SAID_TO_EXTEND,
    provenance="[paper]; unvisited pairs at the cap: ours",
    summary="regularised primal-dual with the Uniform-PAC bonus and decaying step and temperature",
)

UOPT_RPGPD_RELEASED = replace(
    as_released(UOPT_RPGPD, confidence.uniform_pac_released), needs=(), provenance="[code]"
)


def no_regularization(row: PrimalDual) -> PrimalDual:
    """Return ablation (i) of Section 5: tau_k = 0."""
    summary = "ablation: no entropy and no multiplier regularisation (tau = 0)"
    return replace(
        row,
        name="No-regularization",
        temperature=Constant(0.0),
        summary=summary,
        guarantee="",
    )


def no_upac_bonus(row: PrimalDual, naive: PrimalDual) -> PrimalDual:
    """Return ablation (ii) of Section 5: a naive row's bonus in place of the Uniform-PAC one."""
    return replace(
        row,
        name="No-UPAC-bonus",
        bonus=naive.bonus,
        summary="ablation: the naive bonus, which grows with ln K",
        guarantee="",
        needs=(EPISODES, *row.needs),
        provenance=f"{row.provenance}; bonus: {naive.provenance}",
        unverified="bonus" if naive.unverified else "",
    )


def no_adjustment(row: PrimalDual) -> PrimalDual:
    """Return ablation (iii) of Section 5: eta_k = tau_k = 0.1."""
    fixed = Constant(0.1)
    return replace(
        row,
        name="No-adjustment",
        policy_step=fixed,
        dual_step=fixed,
        temperature=fixed,
        summary="ablation: fixed step size and temperature",
        guarantee="",
    )


def corollary(row: PrimalDual) -> PrimalDual:
    """Return the row with the exponents of Corollary 4.2: alpha_eta = 11/14, alpha_tau = 1/7."""
    summary = "UOpt-RPGPD with the corollary's exponents (11/14, 1/7)"
    guarantee = f"{row.guarantee}; regret of order K^(6/7)" if row.guarantee else ""
    return replace(
        row.with_exponents(11 / 14, 1 / 7),
        name="UOpt-RPGPD-corollary",
        summary=summary,
        guarantee=guarantee,
    )


def failing_schedule(row: PrimalDual, exponent: float, name: str) -> PrimalDual:
    """Return the row with eta_k = tau_k = (k + shift)^-exponent.

    Section 3 says that this schedule fails to guarantee Uniform-PAC.
    """
    summary = f"eta = tau = k^-{exponent:g}, for which Section 3 has no guarantee"
    failing = row.with_exponents(exponent, exponent)
    return replace(failing, name=name, summary=summary, guarantee="")
