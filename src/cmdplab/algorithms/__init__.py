"""The one list of algorithms: (name, preset) -> row. A new algorithm is a line here."""

from __future__ import annotations

from difflib import get_close_matches

from cmdplab.algorithms import naive_primal_dual as naive
from cmdplab.algorithms import uopt_rpgpd as uopt
from cmdplab.algorithms.primal_dual import PrimalDual
from cmdplab.errors import InputError

PRESETS = ("released", "printed")


def _family(base: PrimalDual, primal_dual: PrimalDual) -> tuple[PrimalDual, ...]:
    return (
        base,
        uopt.no_regularization(base),
        uopt.no_upac_bonus(base, primal_dual),
        uopt.no_adjustment(base),
        primal_dual,
        uopt.corollary(base),
        uopt.failing_schedule(base, 1.0, "UOpt-RPGPD-1/k"),
        uopt.failing_schedule(base, 0.5, "UOpt-RPGPD-1/sqrt(k)"),
        naive.appendix_c(primal_dual),
    )


ALGORITHMS: dict[tuple[str, str], PrimalDual] = {
    (row.name, row.preset): row
    for row in (
        *_family(uopt.UOPT_RPGPD_RELEASED, naive.OPT_PRIMAL_DUAL_RELEASED),
        *_family(uopt.UOPT_RPGPD, naive.OPT_PRIMAL_DUAL),
    )
}

FIGURE_1 = (
    "UOpt-RPGPD",
    "OptPrimalDual-CMDP",
    "No-regularization",
    "No-UPAC-bonus",
    "No-adjustment",
)


def algorithm(name: str, preset: str = "released") -> PrimalDual:
    """The row of that name, with the formulas of a preset.

    `released`: those of the authors' notebook, which holds the five algorithms of Figure 1; the
    other rows apply its formulas to what the paper only speaks of. `printed`: the paper's.
    """
    if preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}: choose one of {', '.join(PRESETS)}")
    names = {known.lower(): known for known, of in ALGORITHMS if of == preset}
    if name.lower() not in names:
        near = get_close_matches(name.lower(), names, n=1, cutoff=0.4)
        hint = f"did you mean {names[near[0]]!r}?" if near else f"choose from {[*names.values()]}"
        raise InputError(f"unknown algorithm {name!r}: {hint}")
    return ALGORITHMS[names[name.lower()], preset]
