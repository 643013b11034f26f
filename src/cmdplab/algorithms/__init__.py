"""The one list of algorithms: (name, preset) -> row. A new algorithm is a line here.

`as_row` accepts each form of an algorithm: a row, a name, a learner from outside or the import path
of one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from difflib import get_close_matches

from cmdplab import plugins
from cmdplab.algorithms import naive_primal_dual as naive, uopt_rpgpd as uopt
from cmdplab.algorithms.custom import (
    OUTSIDE,
    Custom,
    Given,
    custom,
    import_path,
    imported,
    registered as registered_outside,
)
from cmdplab.algorithms.dope import DOPE, DOPE_RELEASED
from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.families.safe import Safe
from cmdplab.algorithms.families.unconstrained import UCBVI_BF, UCBVI_CH, UCRL2
from cmdplab.algorithms.flexdome import FLEXDOME
from cmdplab.algorithms.ghosh import GHOSH, GHOSH_RELEASED
from cmdplab.algorithms.online_crl import ONLINE_CRL
from cmdplab.algorithms.opdop import OPDOP
from cmdplab.algorithms.opse import OPSE, OPSE_RELEASED
from cmdplab.algorithms.opt_cmdp import OPT_CMDP, OPT_CMDP_BONUS, OPT_CMDP_RELEASED, OPT_DUAL
from cmdplab.algorithms.opt_press import OPT_PRESS_LP, OPT_PRESS_PD
from cmdplab.algorithms.regularized_pd import REGULARIZED_PD
from cmdplab.algorithms.row import SUPPORT, Row
from cmdplab.algorithms.rpg_pd import RPG_PD
from cmdplab.algorithms.triple_q import TRIPLE_Q, TRIPLE_Q_NO_RESET, TRIPLE_Q_RELEASED
from cmdplab.errors import InputError

PRESETS = ("released", "printed")


def _paper(base: PrimalDual, primal_dual: PrimalDual) -> tuple[PrimalDual, ...]:
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


_ROWS: tuple[Row, ...] = (
    *_paper(uopt.UOPT_RPGPD_RELEASED, naive.OPT_PRIMAL_DUAL_RELEASED),
    *_paper(uopt.UOPT_RPGPD, naive.OPT_PRIMAL_DUAL),
    OPT_CMDP_RELEASED,
    OPT_CMDP,
    OPT_CMDP_BONUS,
    OPT_DUAL,
    OPT_PRESS_LP,
    DOPE_RELEASED,
    DOPE,
    ONLINE_CRL,
    OPDOP,
    OPT_PRESS_PD,
    TRIPLE_Q_RELEASED,
    TRIPLE_Q,
    TRIPLE_Q_NO_RESET,
    REGULARIZED_PD,
    FLEXDOME,
    OPSE_RELEASED,
    OPSE,
    GHOSH_RELEASED,
    GHOSH,
    UCBVI_CH,
    UCBVI_BF,
    UCRL2,
    RPG_PD,
)

ALGORITHMS: dict[tuple[str, str], Row] = {(row.name, row.preset): row for row in _ROWS}

FIGURE_1 = (
    "UOpt-RPGPD",
    "OptPrimalDual-CMDP",
    "No-regularization",
    "No-UPAC-bonus",
    "No-adjustment",
)

# The original papers write OptPess, for optimistic pessimism; Table 1 abbreviates OptPrimalDual.
ALIASES = {
    "optpess-lp": "OptPress-LP",
    "optpess-pd": "OptPress-PD",
    "optpess-primaldual": "OptPress-PD",
    "optpress-primaldual": "OptPress-PD",
    "optpd-cmdp": "OptPrimalDual-CMDP",
    "regularized pd": "Regularized-PD",
    "opse-lcmdp": "OPSE",
    "ghosh": "Ghosh-Zhou-Shroff",
}


def check_settings(rows: Iterable[Row], given: Mapping[str, object]) -> None:
    """Refuse a setting, by its name, that changes none of these algorithms. None is not given."""
    known = list(rows)
    for name, value in given.items():
        if value is not None and not any(row.reads(name) for row in known):
            whose = " or ".join(dict.fromkeys(row.name for row in known))
            having = dict.fromkeys(row.name for row in ALGORITHMS.values() if row.reads(name))
            have = "have" if len(having) > 1 else "has"
            raise InputError(f"{whose} has no {name}: {', '.join(having)} {have} one")


def needing_slack() -> list[str]:
    """Return the algorithms (or presets) that need a Slater gap or safe policy."""
    rows = [row for row in _ROWS if row.needs_slack]
    both = {row.name for row in _ROWS if not row.needs_slack}
    named = [f"{row.name} ({row.preset})" if row.name in both else row.name for row in rows]
    return list(dict.fromkeys(named))


def algorithm(name: str, preset: str | None = None) -> Row:
    """Return the row of that name, with the formulas of a preset.

    `released` has the formulas of published code. For the paper's own algorithms that is the
    authors' notebook. It holds the five algorithms of Figure 1. The other rows apply its formulas
    to algorithms that the paper only mentions. `printed` has the formulas of the papers. The
    default is `released` if it exists and needs no facts of the kernel that a learner lacks.

    An installed package may register further names, which have no presets.
    """
    name = str(name)
    inside = _inside(name)
    if inside is not None:
        head, _, tail = inside.partition(":")
        return Safe(algorithm(head, tail or preset))
    if preset is not None and preset not in PRESETS:
        raise InputError(f"unknown preset {preset!r}: choose one of {', '.join(PRESETS)}")
    names = {known.lower(): known for known, _ in ALGORITHMS}
    wanted = ALIASES.get(name.lower(), name).lower()
    if wanted not in names:
        return _from_outside(name, preset, names)
    known = [each for each in PRESETS if (names[wanted], each) in ALGORITHMS]
    if preset is not None and preset not in known:
        raise InputError(f"{names[wanted]} has only the preset {known[0]!r}")
    blind = [each for each in known if SUPPORT not in ALGORITHMS[names[wanted], each].needs]
    return ALGORITHMS[names[wanted], preset or (blind or known)[0]]


def _inside(name: str) -> str | None:
    """Return NAME or NAME:PRESET of Safe(NAME); None of any other name."""
    found = re.fullmatch(r"safe\((.+)\)", name.strip(), re.IGNORECASE)
    return None if found is None else found[1].strip()


def _from_outside(name: str, preset: str | None, ours: dict[str, str]) -> Row:
    """Return the row that an installed package registers. Refuse an unknown name with a hint."""
    outside = {low: one[0].name for low, one in plugins.plugins(plugins.ALGORITHMS).items()}
    if name.lower() in outside and preset is not None:
        raise InputError(f"{name} is {OUTSIDE} and has no presets")
    found = registered_outside(name)
    if found is not None:
        return found
    names = ours | outside
    near = get_close_matches(name.lower(), names, n=1, cutoff=0.6)
    listed = ", ".join(names.values())
    hint = f"did you mean {names[near[0]]!r}?" if near else f"choose from {listed}"
    raise InputError(f"unknown algorithm {name!r}: {hint}")


def is_own(name: str) -> bool:
    """Return True if a name is in our list, in any case, or an alias of one that is."""
    names = {known.lower() for known, _ in ALGORITHMS}
    return name.lower() in names or name.lower() in ALIASES or _inside(name) is not None


def is_outside(name: str) -> bool:
    """Return True if a name or an import path is of a learner from outside. Nothing is imported."""
    head, _, tail = name.partition(":")
    return _inside(name) is None and not is_own(head) and tail not in PRESETS


def as_row(given: Given, preset: str | None = None) -> Row:
    """Return the row of a value that stands for an algorithm.

    The value is a row; NAME or NAME:PRESET; Safe(NAME), which wraps the row; the import path
    package.module:name of a learner, which runs that module's code; a learner with `init`, `policy`
    and `observe`; a function or class that makes one from a `Task`. A learner from outside may not
    have a name of our own.
    """
    if isinstance(given, str):
        return _named(given, preset)
    row = given if isinstance(given, Row) else custom(given)
    if isinstance(row, Custom) and is_own(row.name):
        raise InputError(
            f"{row.name} is a name of cmdplab's own: give your learner another, "
            "custom(learner, name=...)"
        )
    return row


def _named(text: str, preset: str | None) -> Row:
    if _inside(text) is not None:
        return algorithm(text, preset)
    head, colon, tail = text.partition(":")
    if is_own(head):
        plugins.refuse_shadow(plugins.ALGORITHMS, head)
    elif colon and tail not in PRESETS:
        if preset is not None:
            raise InputError(f"{text} is {OUTSIDE} and has no presets")
        return imported(text)
    return algorithm(head, tail or preset)


def written_name(given: Given) -> str:
    """Return the name of an algorithm in a folder of runs, by which other processes find it."""
    if isinstance(given, str):
        return given
    if isinstance(given, Row):
        return _found_again(given)
    custom(given)  # refuses an object that is no algorithm
    return import_path(given)


def _found_again(row: Row) -> str:
    """Return the name under which a folder can find a row again; refuse a row in memory alone.

    The name is "name:preset" for a registered row, or a plugin's name or import path.
    """
    if not isinstance(row, Custom) and ALGORITHMS.get((row.name, row.preset)) == row:
        return f"{row.name}:{row.preset}"
    if isinstance(row, Safe) and algorithm(row.name, row.preset) == row:
        return f"{row.name}:{row.preset}"
    named = plugins.is_path(row.name) or plugins.plugin(plugins.ALGORITHMS, row.name)
    if isinstance(row, Custom) and named and as_row(row.name) == row:
        return row.name
    raise InputError(
        f"{row.name} is a row in memory, which a folder of runs cannot name: give the name of a "
        "registered one, or package.module:name"
    )
