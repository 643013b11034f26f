"""Table 1 as data: typed a second time from the paper's source, and evaluated by hand."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import pytest

from cmdplab.algorithms.table1 import TABLE_1, Guarantee, Order, evaluated
from cmdplab.errors import InputError

# name | kind | regret | its violation | PAC | its violation | last iterate; g is the Slater gap
PRINTED = r"""
OptCMDP            | LP | X A^{1/2} H^2 K^{1/2} _+                | same_+ | -                              | -    | no
OptPress-LP        | LP | g^{-1} X^{3/2} A^{1/2} H^3 K^{1/2}      | 0_+    | -                              | -    | no
DOPE               | LP | g^{-1} X A^{1/2} H^3 K^{1/2}            | 0_+    | -                              | -    | no
Online-CRL         | LP | -                                       | -      | X^{2} A H^2 e^{-2}             | same | no
OPDOP              | PD | X A^{1/2} H^{5/2} K^{1/2}               | same   | -                              | -    | no
OptPrimalDual-CMDP | PD | g^{-1} X^{3/2} A^{1/2} H^2 K^{1/2}      | same   | -                              | -    | no
OptPress-PD        | PD | g^{-1} X^{3/2} A^{1/2} H^3 K^{1/2}      | const  | -                              | -    | no
Triple-Q           | PD | g^{-1} X^{1/2} A^{1/2} H^4 K^{4/5}      | 0      | -                              | -    | no
Regularized-PD     | PD | g^{-2} X^{1/2} A^{1/4} H^{9/2} K^{0.93} _+ | same_+ | -                           | -    | no
UOpt-RPGPD         | PD | g^{-1} X^{1/2} A^{2/7} H^{4} K^{6/7} _+ | same_+ | g^{-7} X^{7/2} A^{2} H^{25} e^{-7} | same | yes
"""  # noqa: E501
FIELDS = {"g": "slack", "e": "epsilon"}
WORDS = {"same": "same", "0": "zero", "const": "constant", "-": "none"}
POINT = {"X": 30, "A": 3, "H": 10, "K": 10**5, "epsilon": 0.1, "slack": 4.8}


def order(text: str) -> Order | None:
    powers = re.findall(r"([gXAHKe])(?:\^\{?([-\d./]+)\}?)?", text)
    exponents = {FIELDS.get(s, s): float(Fraction(p or "1")) for s, p in powers}
    return Order(**exponents) if exponents else None


def rows() -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in PRINTED.strip().splitlines()]


def test_the_rows_are_those_of_the_table_in_its_order():
    assert list(TABLE_1) == [row[0] for row in rows()]
    assert all(name == row.name for name, row in TABLE_1.items())


@pytest.mark.parametrize("cells", rows(), ids=lambda cells: cells[0])
def test_a_row_says_what_the_table_prints(cells):
    name, kind, regret, violation, pac, pac_violation, last_iterate = cells
    row = TABLE_1[name]
    assert row.kind == kind
    assert row.regret == order(regret)
    assert row.regret_strong == regret.endswith("_+")
    assert row.violation == WORDS[violation.removesuffix("_+")]
    assert row.violation_strong == violation.endswith("_+")
    assert row.pac == order(pac)
    assert (row.pac is None) == (pac_violation == "-")  # where there is one, it is for both
    assert row.last_iterate == (last_iterate == "yes")
    assert row.source


def test_formulas_print_fractions_and_parse_back():
    assert str(TABLE_1["OptPress-LP"].regret) == "slack^-1 X^3/2 A^1/2 H^3 K^1/2"
    assert str(TABLE_1["OptCMDP"].regret) == "X A^1/2 H^2 K^1/2"
    assert str(TABLE_1["UOpt-RPGPD"].pac) == "slack^-7 X^7/2 A^2 H^25 epsilon^-7"
    assert str(TABLE_1["Regularized-PD"].regret).endswith("K^93/100")
    assert str(Order()) == "1"
    for row in TABLE_1.values():
        for each in (row.regret, row.pac, row.corrected, row.corrected_pac):
            if each:
                text = each.formula().replace("slack", "g").replace("epsilon", "e")
                assert order(text) == each


def test_orders_at_points_worked_out_by_hand():
    point = {"X": 4, "A": 9, "H": 2, "K": 100, "epsilon": 0.5, "slack": 0.25}
    assert TABLE_1["OptCMDP"].regret.at(**point) == pytest.approx(4 * 3 * 4 * 10)
    assert TABLE_1["OptPress-LP"].regret.at(**point) == pytest.approx(4 * 8 * 3 * 8 * 10)
    assert TABLE_1["Online-CRL"].pac.at(**point) == pytest.approx(16 * 9 * 4 * 4)
    pac = 4**7 * 2**7 * 81 * 2**25 * 2**7
    assert TABLE_1["UOpt-RPGPD"].pac.at(**point) == pytest.approx(pac)
    assert Order().at(**point) == 1.0


def test_orders_beyond_the_floats_are_infinite_or_zero():
    assert Order(K=1).at(**{**POINT, "K": 10**400}) == math.inf
    assert Order(K=1 / 2).at(**{**POINT, "K": 10**400}) == pytest.approx(1e200)
    assert Order(K=-1).at(**{**POINT, "K": 10**400}) == 0.0


@pytest.mark.parametrize("name", TABLE_1)
def test_harder_problems_have_larger_orders(name):
    row = TABLE_1[name]
    for each in filter(None, (row.regret, row.pac, row.corrected, row.corrected_pac)):
        here = each.at(**POINT)
        for harder in ("X", "A", "H"):
            assert each.at(**{**POINT, harder: 2 * POINT[harder]}) > here
        for easier in ("slack", "epsilon"):
            assert each.at(**{**POINT, easier: 2 * POINT[easier]}) <= here


@pytest.mark.parametrize("name", [name for name, row in TABLE_1.items() if row.regret])
def test_regret_grows_but_more_slowly_than_the_episodes(name):
    regret = TABLE_1[name].regret
    ratio = regret.at(**{**POINT, "K": 2 * POINT["K"]}) / regret.at(**POINT)
    assert 1.0 < ratio < 2.0
    assert regret.epsilon == 0.0


def changed(printed: Order, corrected: Order) -> dict[str, tuple[float, float]]:
    pairs = zip(Order._fields, printed, corrected, strict=True)
    return {symbol: (p, c) for symbol, p, c in pairs if p != c}


def test_slips_of_an_exponent_are_corrected_beside_the_printed_order():
    opdop, uopt = TABLE_1["OPDOP"], TABLE_1["UOpt-RPGPD"]
    assert changed(opdop.regret, opdop.corrected) == {"H": (5 / 2, 3)}
    assert changed(uopt.regret, uopt.corrected) == {"A": (2 / 7, 1 / 4), "H": (4, 7 / 2)}
    assert changed(uopt.pac, uopt.corrected_pac) == {"A": (2, 7 / 4), "H": (25, 49 / 2)}
    rest = [row for row in TABLE_1.values() if row.name not in ("OPDOP", "UOpt-RPGPD")]
    assert all(row.corrected is row.corrected_pac is None for row in rest)


def test_the_corrected_orders_of_uopt_follow_from_the_theorems():
    # Theorem 4.1, first term: (slack^-2 X A^1/2 H^7 epsilon^-2)^(1 / (alpha_eta - 1/2)) at 11/14.
    uopt, power = TABLE_1["UOpt-RPGPD"], 1 / (11 / 14 - 1 / 2)
    first = Order(slack=-2, X=1, A=1 / 2, H=7, epsilon=-2)
    assert uopt.corrected_pac == pytest.approx([power * p for p in first])
    # Uniform-PAC with C epsilon^-a gives the regret C^(1/a) K^(1 - 1/a).
    a = -uopt.corrected_pac.epsilon
    regret = Order(*(p / a for p in uopt.corrected_pac))._replace(K=1 - 1 / a, epsilon=0.0)
    assert uopt.corrected == pytest.approx(regret)


def test_caveats_are_told():
    told = {name: row.slip for name, row in TABLE_1.items()}
    assert "H^3" in told["OPDOP"]
    assert "16 sqrt(X A H^6 iota^3)" in told["Triple-Q"]
    assert "weak" in told["Triple-Q"]
    assert "13/14" in told["Regularized-PD"]
    assert math.ceil(100 * 13 / 14) / 100 == TABLE_1["Regularized-PD"].regret.K
    assert all("OptPess" in told[name] for name in ("OptPress-LP", "OptPress-PD"))
    assert all(slip == "" or slip.endswith(".") for slip in told.values())
    assert Guarantee("a", "LP", "b").slip == ""


def test_a_row_evaluated_is_ready_for_a_listing():
    uopt = evaluated("UOpt-RPGPD", **POINT)
    assert uopt["regret"] == uopt["violation"] == TABLE_1["UOpt-RPGPD"].regret.at(**POINT)
    assert evaluated("Online-CRL", **POINT)["regret"] is None
    assert evaluated("Triple-Q", **POINT)["violation"] == "zero"
    assert json.loads(json.dumps(uopt)) == uopt


def test_points_and_names_outside_the_table_are_refused():
    with pytest.raises(InputError, match="slack is 0"):
        Order(slack=-1).at(**{**POINT, "slack": 0.0})
    with pytest.raises(InputError, match="epsilon is nan"):
        Order().at(**{**POINT, "epsilon": math.nan})
    with pytest.raises(InputError, match="'SARSA' is not in Table 1"):
        evaluated("SARSA", **POINT)
