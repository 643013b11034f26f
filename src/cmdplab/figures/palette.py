"""One look for each algorithm, in every figure and on every page.

The colours are those of Okabe and Ito, distinct for the colour-blind, with a wine and two greys.
Related algorithms share a colour and differ in their dash. The ten of the paper's Table 1 are
distinct in grey too: those of one dash differ in lightness.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import cycle
from typing import NamedTuple

BLUE, ORANGE, GREEN, VERMILION, PINK = "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7"
SKY, WINE, BLACK, GREY = "#56B4E9", "#882255", "#000000", "#A0A0A0"
COLOURS = (PINK, SKY, WINE, BLACK, BLUE, VERMILION, GREEN, ORANGE)
LABELS = {  # of columns of records
    "gap": "optimality gap",
    "violation": "constraint violation",
    "multiplier_1": "multiplier of constraint 1",
}
DASHES = ("-", "--", ":", "-.")  # as Matplotlib writes them


class Look(NamedTuple):
    """Colour, dash and width of a line."""

    colour: str
    dash: str
    width: float = 1.3


LOOKS: dict[str, Look] = {
    "UOpt-RPGPD": Look(BLUE, "-", 2.2),
    "No-adjustment": Look(ORANGE, "--", 1.5),
    "No-UPAC-bonus": Look(GREEN, "-.", 1.5),
    "OptPrimalDual-CMDP": Look(VERMILION, "-", 0.9),
    "No-regularization": Look(GREY, "-", 0.35),
    "UOpt-RPGPD-corollary": Look(BLUE, "--"),
    "UOpt-RPGPD-1/k": Look(BLUE, ":"),
    "UOpt-RPGPD-1/sqrt(k)": Look(BLUE, "-."),
    "Naive-primal-dual": Look(VERMILION, "--"),
    "OptCMDP": Look(GREEN, "--"),
    "OptCMDP-bonus": Look(GREEN, "-"),
    "OptDual-CMDP": Look(GREEN, ":"),
    "OptPress-LP": Look(WINE, "-."),
    "OptPress-PD": Look(WINE, "--"),
    "DOPE": Look(BLACK, "-"),
    "Regularized-PD": Look(BLACK, ":"),
    "Online-CRL": Look(ORANGE, ":"),
    "OPDOP": Look(PINK, "-."),
    "FlexDOME": Look(PINK, "-"),
    "Triple-Q": Look(SKY, "-"),
    "Triple-Q-no-reset": Look(SKY, "--"),
    "OPSE": Look(ORANGE, "-"),
    "Ghosh-Zhou-Shroff": Look(ORANGE, "-."),
    "UCBVI-CH": Look(PINK, "--"),
    "UCBVI-BF": Look(PINK, ":"),
    "UCRL2": Look(SKY, ":"),
    "RPG-PD": Look(WINE, "-"),
}


def looks(labels: Sequence[str]) -> dict[str, Look]:
    """Return the look of each label, such as NAME, NAME:PRESET or NAME (bonus scale 0.01).

    The first label of a registered algorithm has that algorithm's look. Other labels get pairs of a
    colour and a dash that no algorithm has, then pairs whose algorithms are not drawn.
    """
    assigned: dict[str, Look] = {}
    for label in labels:
        own = LOOKS.get(re.split(r":| \(", label)[0])
        if own is not None and own not in assigned.values():
            assigned[label] = own
    owned = {(look.colour, look.dash) for look in LOOKS.values()}
    taken = {(look.colour, look.dash) for look in assigned.values()}
    pairs = [(colour, dash) for dash in DASHES for colour in COLOURS]
    nobodys = [pair for pair in pairs if pair not in owned]
    free = cycle([*nobodys, *(pair for pair in pairs if pair in owned - taken)] or pairs)
    return {label: assigned.get(label) or Look(*next(free)) for label in labels}
