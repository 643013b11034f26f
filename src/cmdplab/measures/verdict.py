"""One run in words, from its tail envelope: converging, settled, oscillating, worsening, undecided.

The words rest on the local exponents p of the envelope E(k) over the last quadruplings of episodes,
never on the size of an error: a slow decay is no bias, and a small constant no convergence.

- *converging at k^-p*: errors fall without swings, and p is stable: E extrapolated from the last
  three quadruplings (Aitken's limit) is zero and the end of the run does not flatten, or the end
  falls no slower than before;
- *settled at c*: errors neither fall nor grow over the last two quadruplings, as far as their own
  noise lets one see, or what they lose dies out and their extrapolated limit c is within a tenth;
- *oscillating, not shrinking*, and *oscillating, shrinking at k^-p*: in each of the last two
  quadruplings errors rise and fall by a quarter of the largest of them, or more;
- *worsening*: the largest error within a quadrupling grows from each to the next, and not by less
  and less, as it would towards a limit;
- *undecided*: none of these. The episodes that would tell are those at which a power law and a
  limit, both continued from here, differ by a quarter.

A verdict describes the run up to its end. What comes later may be different: bursts that are rarer
than quadruplings, or swings slower than the run, cannot be seen by anyone. Nor can a limit below a
twelfth of E: *converging* says that none is in sight. benchmarks/truths.py has the score.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from cmdplab.measures.envelope import FEWEST, ONSET, SHORTEST, Envelope, envelope
from cmdplab.types import Array

NEGATIVE_GAP = "a negative gap means more reward than the optimum, paid for by a violation"
ROUNDING = 1e-9  # of H: what is smaller is rounding
PLAYABLE = 10**10  # episodes: about a day on one core at the size of the paper
SWINGS = 0.25  # of the largest error of a quadrupling
FLAT = 0.02  # of noisy errors, a local exponent below: 3 % in a quadrupling
GROWS = 0.05  # of noisy errors, a local exponent below -0.05: 7 % in a quadrupling
SHARP = 0.002  # of smooth errors: exponents beyond are seen, however small
NOISE = 0.15  # instead of it for swings: the largest of n draws of noise grows like sqrt(ln n)
STEADY = 0.08  # of E: an extrapolated limit below is none, within that share above one is
SHARE = 0.9
HIDDEN = 0.35  # of E: an extrapolated limit above may be what is left when a swing has died out
ON = 0.9  # of what a quadrupling added: errors to which the next adds less grow towards a limit
LOOSE = 0.5  # by which the exponents of a swing may differ, relatively: its peaks are few
NOISY = 0.1  # of the largest error: a swing from which on exponents need be no steadier than that
DYING = 0.85  # the end's exponent beside the last, at most, of a decay that dies out
SLOWER, FASTER = 0.98, 1.3  # the end's exponent beside the last, of a decay that goes on
BEFORE = (0.6, 1.5)  # the last beside the one before
APART = 1.25  # two continuations that differ by this factor can be told apart


class Kind(StrEnum):
    """What a verdict says."""

    converging = "converging"
    settled = "settled"
    oscillating = "oscillating, not shrinking"
    shrinking = "oscillating, shrinking"
    worsening = "worsening"
    undecided = "undecided"
    mixed = "mixed"  # of several runs alone


class Verdict(NamedTuple):
    """On one run."""

    kind: Kind
    exponents: tuple[float, ...]  # of E over the last quadruplings, the latest last
    rate: float | None  # p of k^-p
    level: float | None  # c, or the largest error that does not shrink
    why: str  # of an undecided one
    needs: int | None  # episodes that would decide

    @property
    def words(self) -> str:
        """The verdict with its number."""
        return in_words(self.kind, self.rate, self.level, self.needs)


def in_words(
    kind: Kind, rate: float | None, level: float | None, needs: int | None, spread: str = ""
) -> str:
    """A verdict with its number; `spread` is the interval of a rate."""
    match kind:
        case Kind.converging | Kind.shrinking:
            return f"{kind} at k^-{rate:.2g}{spread}"
        case Kind.settled:
            return "settled at 0 (rounding)" if level == 0.0 else f"settled at {level:.2g}"
        case Kind.oscillating:
            return f"{kind} from {level:.2g}"
        case Kind.worsening:
            return f"worsening, at {level:.2g}"
        case _:
            if needs and needs > PLAYABLE:
                return f"{kind}: no run that can be played would tell"
            return f"{kind}" + (f" before {needs:,} episodes" if needs else "")


def verdict(curves: dict[str, Array], horizon: int) -> Verdict:
    """The verdict on the curves of a run; H is the scale of rounding alone."""
    found = envelope(curves)
    if len(found.start) < FEWEST:
        why = f"{FEWEST} quadruplings behind episode {ONSET} need {SHORTEST:,} episodes"
        return Verdict(Kind.undecided, (), None, None, why, SHORTEST)
    if found.sup[-1] <= ROUNDING * horizon:
        return Verdict(Kind.settled, (), None, 0.0, "", None)
    tiny = np.finfo(np.float64).tiny
    found = found._replace(highest=np.maximum(found.highest, tiny), end=max(found.end, tiny))
    exponents = tuple(float(p) for p in found.exponents()[1 - FEWEST :])
    return judge(found, exponents)


def judge(found: Envelope, exponents: tuple[float, ...]) -> Verdict:
    """The rules in the order of the module's description."""
    level = float(found.highest[-1])
    swinging = found.swing[-2:] >= SWINGS * found.highest[-2:]
    swings, one_swing = bool(np.all(swinging)), bool(np.any(swinging) and not np.all(swinging))
    if not one_swing and _worsens(found, NOISE if swings else seen(found, GROWS)):
        return Verdict(Kind.worsening, exponents, None, level, "", None)
    grows = found.exponents_within()[-2:]
    if swings and np.all(grows <= FLAT) and grows[-1] >= -NOISE:
        return Verdict(Kind.oscillating, exponents, None, level, "", None)
    falls = Kind.shrinking if swings else Kind.converging
    noisy = bool(np.all(found.swing[-2:] >= NOISY * found.highest[-2:]))
    if noisy and _falls_loosely(found, exponents):
        return Verdict(falls, exponents, exponents[-1], None, "", None)
    if swings or one_swing:  # one: the first, or the last
        return _undecided(found, exponents)
    limit, above = extrapolated(found.sup), _levels_off(found)
    if _flat(found):
        return Verdict(Kind.settled, exponents, None, found.end, "", None)
    if above is not None:
        return Verdict(Kind.settled, exponents, None, above, "", None)
    if limit is not None and limit >= SHARE * found.sup[-1] and _dies_out(found):
        return Verdict(Kind.settled, exponents, None, limit, "", None)
    steady = limit is not None and abs(limit) <= STEADY * found.sup[-1] and _goes_on(found)
    if steady or _keeps_its_rate(found):
        return Verdict(Kind.converging, exponents, exponents[-1], None, "", None)
    return _undecided(found, exponents)


def extrapolated(sup: Array) -> float | None:
    """Aitken's limit of the last three: c of c + a k^-q exactly; None where they do not level off.

    c = E_3 - (E_2 - E_3)^2 / ((E_1 - E_2) - (E_2 - E_3)). Zero for a power law; E / 2 for 1 / ln k.
    """
    before, last = -np.diff(sup[-3:])
    if not 0.0 < last < before:
        return None
    return float(sup[-1] - last**2 / (before - last))


def _worsens(found: Envelope, clearly: float) -> bool:
    """From each quadrupling to the next, and not by less and less, as it would towards a limit."""
    grows = found.exponents_within()[1 - FEWEST :]
    before, last = np.diff(found.highest[-3:])
    return bool(np.all(grows < -clearly) and last >= ON * before and found.end >= found.highest[-2])


def _levels_off(found: Envelope) -> float | None:
    """The limit of errors that grow by less and less, where it is near."""
    before, last = np.diff(found.highest[-3:])
    if not 0.0 < last < ON * before or found.end < found.highest[-1]:
        return None
    limit = float(found.highest[-1] + last**2 / (before - last))
    return limit if SHARE * limit <= found.highest[-1] else None


def noise(found: Envelope) -> float:
    """By how much errors rise and fall in the last quadrupling, as a share of the largest."""
    return float(found.swing[-1] / found.highest[-1])


def seen(found: Envelope, most: float) -> float:
    """The smallest exponent that noise lets one see; `most`, at most."""
    return min(most, max(SHARP, noise(found)))


def _flat(found: Envelope) -> bool:
    """From K/16 to K/4 and from there to the end, but for noise within the last quadrupling."""
    rates = np.array([found.exponents_within()[-1], found.last_exponent])
    falls = rates > seen(found, FLAT) + np.array([0.0, noise(found)])
    return not np.any(falls | (rates < -seen(found, GROWS) - noise(found)))


def _dies_out(found: Envelope) -> bool:
    """Whether what is left of a decay is slow, and slower at the end, but not gone.

    Towards a limit the exponents shrink by a factor from each quadrupling to the next; a slow power
    law behind a fast one keeps its exponent.
    """
    rate = found.exponents()[-1]
    return bool(rate <= 0.1 and 0.1 * rate < found.last_exponent <= DYING * rate)


def _goes_on(found: Envelope) -> bool:
    """Whether the end of the run falls as fast as what was before, but for a third."""
    rate = found.exponents()[-1]
    return bool(abs(found.last_exponent - rate) <= rate / 3.0 + noise(found))


def _falls_loosely(found: Envelope, exponents: tuple[float, ...]) -> bool:
    """Whether errors that swing fall in each quadrupling, at rates of the same size, and to 0."""
    if min(exponents) <= FLAT or np.ptp(exponents) > LOOSE * np.mean(exponents):
        return False
    limit = extrapolated(found.sup)
    if limit is not None and limit > HIDDEN * found.sup[-1]:
        return False
    return found.last_exponent >= LOOSE * exponents[-1]


def _keeps_its_rate(found: Envelope) -> bool:
    """Whether the end falls no slower than before, as it would towards a limit or like 1 / ln k."""
    before, last = found.exponents()[-2:]
    if min(before, last) <= FLAT:
        return False
    goes_on = SLOWER <= found.last_exponent / last <= FASTER
    return bool(goes_on and BEFORE[0] <= last / before <= BEFORE[1])


def _undecided(found: Envelope, exponents: tuple[float, ...]) -> Verdict:
    listed = ", ".join(f"{p:.2g}" for p in exponents)
    K = 4.0 * found.start[-1]
    why = f"the local exponents {listed} of the envelope are neither zero nor steady"
    if found.highest[-1] > found.highest[-2]:
        why = "the largest errors still grow, and not steadily"
    needs = int(float(f"{K * 4.0 ** _quadruplings(found):.2g}"))
    return Verdict(Kind.undecided, exponents, None, None, why, needs)


def _quadruplings(found: Envelope) -> int:
    """After how many more a power law and a limit, both continued from here, are told apart."""
    limit, rate = extrapolated(found.sup), found.exponents()[-1]
    if limit is None or not 0.0 < limit < found.sup[-1] or rate <= 0.0:
        return 1
    share = limit / found.sup[-1]
    shrinks = (found.sup[-1] - limit) / (found.sup[-2] - limit)
    for more in range(1, 20):
        if share + (1.0 - share) * shrinks**more >= APART * 4.0 ** (-rate * more):
            return more
    return 20


def common_verdict(seeds: Sequence[dict[str, Array]], horizon: int) -> str:
    """The verdict that all seeds share, with medians of its numbers; else how they differ."""
    return together([verdict(curves, horizon) for curves in seeds])


def together(verdicts: Sequence[Verdict]) -> str:
    """The words for several runs, each judged by itself."""
    kinds = Counter(each.kind for each in verdicts)
    if len(kinds) > 1:
        total = len(verdicts)
        return "; ".join(f"{kind} in {n} of {total}" for kind, n in kinds.most_common())
    rates, levels, needs = (
        [getattr(each, field) for each in verdicts if getattr(each, field) is not None]
        for field in ("rate", "level", "needs")
    )
    rate, level = (float(np.median(each)) if each else None for each in (rates, levels))
    return in_words(verdicts[0].kind, rate, level, max(needs, default=None))
