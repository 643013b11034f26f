"""FlexDOME (Zuo, Wang and He, 2026): a decaying safety margin on a regularised primal-dual.

UOpt-RPGPD's update with other exponents, whose dual step aims at b^n + eps_k instead of b^n:

    lambda^{k+1,n} = clip( lambda^n + eta_k (b^n + eps_k - V~^n_1(x_1) - tau_k lambda^n), 0, cap )
    eta_k = (k + 3)^(-5/6),  tau_k = (k + 3)^(-1/6),  eps_k = H (k + 3)^(-1/6)

Symbols -> names: eps_k `margin`, the rest as for UOpt-RPGPD. Not in the paper's Table 1.
Needs: the Slater gap, for the dual cap. Claims: strong violation of order 1, up to logarithms,
strong regret of order K^(5/6), convergence of the last iterate [paper abstract; secondary].
Departures and provenance: the exponents are quoted at second hand [secondary] and eta's is
[derived]; the margin's factor H is ours [unverified]; the bonus is UOpt-RPGPD's [derived]. The
authors' experiments scale the margin by 1e-5 [secondary]; our default is 1e-2.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from cmdplab.algorithms.row import OUR_EXTENSION, SLATER_GAP
from cmdplab.algorithms.schedules import Setting
from cmdplab.algorithms.uopt_rpgpd import UOPT_RPGPD
from cmdplab.types import Array


def margin(k: Array, s: Setting) -> Array:
    """Return eps_k = H (k + 3)^(-1/6)   [unverified: the factor H]."""
    return np.asarray(s.H * (k + 3.0) ** (-1.0 / 6.0))


FLEXDOME = replace(
    UOPT_RPGPD.with_exponents(5.0 / 6.0, 1.0 / 6.0),
    name="FlexDOME",
    margin=margin,
    margin_scale=1e-2,
    summary="UOpt-RPGPD's update with a safety margin that decays",
    paper="Zuo, Wang and He (2026), arXiv:2602.10917",
    needs=(SLATER_GAP,),
    guarantee="claimed: near-constant strong violation, strong regret of order K^(5/6)",
    unknown_rewards=OUR_EXTENSION,
    provenance="exponents [secondary], [derived]; margin's factor ours; bonus of UOpt-RPGPD",
    unverified="exponents; the margin's factor; bonus",
)
