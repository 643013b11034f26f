"""The paper's Table 1 as data: proved orders of ten online CMDP algorithms, with N = 1 constraint.

An order is a product of powers, up to constants and logarithms. The orders are kept as the table
prints them. If that is a slip or a rounding, `corrected` has the order of the source.
A bound gives the growth of a quantity, not its size: its constants are hidden.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Literal, NamedTuple

from cmdplab.errors import InputError


class Order(NamedTuple):
    """An order O~( slack^. X^. A^. H^. K^. epsilon^. ), given by its exponents."""

    slack: float = 0.0  # Slater gap
    X: float = 0.0  # states
    A: float = 0.0  # actions
    H: float = 0.0  # horizon
    K: float = 0.0  # episodes
    epsilon: float = 0.0  # accuracy

    def at(self, X: int, A: int, H: int, K: int, epsilon: float, slack: float) -> float:
        """Return the product of powers at a point, by a sum of logarithms, or infinity."""
        point = (slack, X, A, H, K, epsilon)
        for symbol, number in zip(self._fields, point, strict=True):
            if not 0.0 < number < math.inf:
                raise InputError(f"{symbol} is {number:g}, not a positive number")
        total = math.fsum(p * math.log(x) for p, x in zip(self, point, strict=True))
        return math.exp(total) if total < _LARGEST_LOG else math.inf

    def formula(self) -> str:
        """Return the order in one line, such as `slack^-1 X^3/2 A^1/2 H^3 K^1/2`."""
        powers = [_power(symbol, p) for symbol, p in self._asdict().items() if p]
        return " ".join(powers) or "1"

    def __str__(self) -> str:
        return self.formula()


_LARGEST_LOG = math.log(1.7976931348623157e308)

Violation = Literal["same", "zero", "constant", "none"]


class Guarantee(NamedTuple):
    """A row of Table 1. Strong measures sum positive parts only; weak ones let errors cancel."""

    name: str
    kind: Literal["LP", "PD"]
    source: str
    regret: Order | None = None
    regret_strong: bool = False
    violation: Violation = "none"  # same: the order of the regret; constant: free of K
    violation_strong: bool = False
    pac: Order | None = None  # episodes that miss by more than epsilon, in value or violation
    last_iterate: bool = False  # True if the iterates converge to optimal policies
    corrected: Order | None = None  # the regret of the source, if the table's differs
    corrected_pac: Order | None = None
    slip: str = ""  # a note for the reader of the row


def evaluated(
    name: str, X: int, A: int, H: int, K: int, epsilon: float, slack: float
) -> dict[str, float | str | None]:
    """Return the printed orders of a row at a point: numbers for a listing, not bounds on a run."""
    if name not in TABLE_1:
        raise InputError(f"{name!r} is not in Table 1: choose from {', '.join(TABLE_1)}")
    row = TABLE_1[name]
    regret, pac = (o and o.at(X, A, H, K, epsilon, slack) for o in (row.regret, row.pac))
    violation = regret if row.violation == "same" else row.violation
    return {"name": name, "regret": regret, "violation": violation, "pac": pac}


def _power(symbol: str, exponent: float) -> str:
    return symbol if exponent == 1.0 else f"{symbol}^{Fraction(exponent).limit_denominator(100)}"


_EFRONI = "Efroni, Mannor and Pirotta (2020), arXiv:2003.02189"
_LIU = "Liu, Zhou, Kalathil, Kumar and Tian (2021), arXiv:2106.02684"

# Strong regret (True or False), the violation, strong violation (True or False).
_STRONG: tuple[bool, Violation, bool] = (True, "same", True)
_WEAK: tuple[bool, Violation, bool] = (False, "same", False)
_SAFE: tuple[bool, Violation, bool] = (False, "zero", True)

_ROWS = (
    Guarantee("OptCMDP", "LP", _EFRONI, Order(X=1, A=1 / 2, H=2, K=1 / 2), *_STRONG),
    Guarantee(
        "OptPress-LP",
        "LP",
        _LIU,
        Order(slack=-1, X=3 / 2, A=1 / 2, H=3, K=1 / 2),
        *_SAFE,
        slip="Its authors write OptPess-LP; the slack is that of the safe policy it is given, and "
        "as no policy it plays violates, its weak regret is also its strong regret.",
    ),
    Guarantee(
        "DOPE",
        "LP",
        "Bura, HasanzadeZonuzy, Kalathil, Shakkottai and Chamberland (2022), arXiv:2112.00885",
        Order(slack=-1, X=1, A=1 / 2, H=3, K=1 / 2),
        *_SAFE,
        slip="The slack is that of the safe policy it is given, and as no policy it plays "
        "violates, its weak regret is also its strong regret.",
    ),
    Guarantee(
        "Online-CRL",
        "LP",
        "HasanzadeZonuzy, Bura, Kalathil and Shakkottai (2021), arXiv:2008.00311",
        pac=Order(X=2, A=1, H=2, epsilon=-2),
    ),
    Guarantee(
        "OPDOP",
        "PD",
        "Ding, Wei, Yang, Wang and Jovanovic (2021), AISTATS",
        Order(X=1, A=1 / 2, H=5 / 2, K=1 / 2),
        *_WEAK,
        corrected=Order(X=1, A=1 / 2, H=3, K=1 / 2),
        slip="H^5/2 should be H^3: the source proves X sqrt(A H^5 T) with T = H K steps.",
    ),
    Guarantee(
        "OptPrimalDual-CMDP",
        "PD",
        _EFRONI,
        Order(slack=-1, X=3 / 2, A=1 / 2, H=2, K=1 / 2),
        *_WEAK,
        slip="The row is headed OptPD-CMDP; the caption has the name in full.",
    ),
    Guarantee(
        "OptPress-PD",
        "PD",
        _LIU,
        regret=Order(slack=-1, X=3 / 2, A=1 / 2, H=3, K=1 / 2),
        violation="constant",
        slip="Its authors write OptPess-PrimalDual.",
    ),
    Guarantee(
        "Triple-Q",
        "PD",
        "Wei, Liu and Ying (2022), AISTATS",
        regret=Order(slack=-1, X=1 / 2, A=1 / 2, H=4, K=4 / 5),
        violation="zero",
        slip="The 0 is weak and in expectation, and holds only for "
        "K >= max((16 sqrt(X A H^6 iota^3) / slack)^5, e^(1 / slack)), "
        "iota = 128 ln(sqrt(2 X A H) K).",
    ),
    Guarantee(
        "Regularized-PD",
        "PD",
        "Müller, Alatur, Cevher, Ramponi and He (2024), arXiv:2402.15776",
        Order(slack=-2, X=1 / 2, A=1 / 4, H=9 / 2, K=0.93),
        *_STRONG,
        slip="K^0.93 is K^13/14 rounded up [unverified].",
    ),
    Guarantee(
        "UOpt-RPGPD",
        "PD",
        "Kitamura et al. (2024), arXiv:2401.17780",
        Order(slack=-1, X=1 / 2, A=2 / 7, H=4, K=6 / 7),
        *_STRONG,
        pac=Order(slack=-7, X=7 / 2, A=2, H=25, epsilon=-7),
        last_iterate=True,
        corrected=Order(slack=-1, X=1 / 2, A=1 / 4, H=7 / 2, K=6 / 7),
        corrected_pac=Order(slack=-7, X=7 / 2, A=7 / 4, H=49 / 2, epsilon=-7),
        slip="Theorem 4.1 gives A^7/4 H^49/2 and hence A^1/4 H^7/2, which the corollary and the "
        "table round up to A^2 H^25 and A^2/7 H^4.",
    ),
)

TABLE_1: dict[str, Guarantee] = {row.name: row for row in _ROWS}  # in the order of the table
