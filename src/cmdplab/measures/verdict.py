"""The verdict on one run: converging, settled, oscillating, worsening or undecided.

`curves` are the columns of a run's record by name (docs/records.md). The words rest on the tail
envelope E(k), the largest error from episode k to the end, over the last quadruplings of episodes
(`envelope`), and on a fit of c + a k^-p to the mean errors (`decay`). The size of an
error has no influence: a slow decay is no bias, and a small constant no convergence. The first of
these rules that holds gives the verdict:

- *worsening*: the largest error grows from each quadrupling to the next, by ever more than it would
  towards a limit.
- *oscillating, not shrinking*: in each of the last two quadruplings errors rise and fall by a
  quarter of the largest of them or more, and the largest does not fall.
- *settled at c*: errors neither fall nor grow over the last two quadruplings beyond their noise, or
  what they lose dies out and their extrapolated limit c is within a tenth.
- *converging at k^-p* and, with swings, *oscillating, shrinking at k^-p*: the envelope falls as
  mean errors do, and the limit c may be 0 and is small: its upper confidence bound is at most a
  quarter of the error. The sentence contains that bound.
- *undecided*: none of these. The episodes that would tell are those at which a power law and a
  limit, both continued from here, differ by a quarter.

In functions, `found` is the envelope of a run, `mean` the fit to its errors, K its last episode.
A verdict describes the run up to its end. Later episodes may differ: nobody can see bursts that are
rarer than quadruplings, or swings slower than the run. benchmarks/truths.py and
benchmarks/thousand_truths.py measure the verdicts on runs with known limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum
from typing import NamedTuple

import numpy as np

from cmdplab.measures.decay import Decay, decay
from cmdplab.measures.envelope import FEWEST, ONSET, SHORTEST, Envelope, envelope
from cmdplab.types import Array

NEGATIVE_GAP = "a negative gap means more reward than the optimum, paid for by a violation"
ROUNDING = 1e-9  # smaller errors, as shares of H, are rounding
PLAYABLE = 10**10  # episodes: about a day on one core at the size of the paper
SWINGS = 0.25  # the least swing, as a share of the largest error of a quadrupling
FLAT = 0.02  # noisy errors are constant up to this local exponent: 3 % in a quadrupling
GROWS = 0.05  # noisy errors grow beyond the local exponent -0.05: 7 % in a quadrupling
SHARP = 0.002  # the least exponent that counts for smooth errors
NOISE = 0.15  # replaces GROWS for swings: the largest of n draws of noise grows like sqrt(ln n)
SHARE = 0.9  # a limit above this share of the error is near
ON = 0.9  # errors that grow by less than this share of their last growth approach a limit
DYING = 0.85  # the largest ratio of the end's exponent to the last one if a decay dies out
SMALL = 0.25  # the largest upper bound for the limit of converging errors, in shares of the error
ZERO = 0.015  # the largest lower bound for that limit, in shares of the error
LEAST = 0.05  # the least share of the error stated as a bound, since c + a k^-p is a model
FASTER = 1.3  # the largest ratio of the last two exponents of mean errors of a power law
ALIKE = 6.0  # the largest ratio of an exponent of E to an exponent of mean errors
APART = 1.25  # two continuations that differ by this factor can be distinguished


class Kind(StrEnum):
    """The kind of a verdict, in words."""

    converging = "converging"
    settled = "settled"
    oscillating = "oscillating, not shrinking"
    shrinking = "oscillating, shrinking"
    worsening = "worsening"
    undecided = "undecided"
    mixed = "mixed"  # of several runs alone


class Verdict(NamedTuple):
    """The verdict on one run."""

    kind: Kind
    exponents: tuple[float, ...]  # of E over the last quadruplings, the latest last
    rate: float | None = None  # p of k^-p
    level: float | None = None  # c, or the largest error that does not shrink
    limit: float | None = None  # the upper confidence bound for the limit c of falling errors
    why: str = ""  # the reason of an undecided verdict
    needs: int | None = None  # number of episodes that would decide

    @property
    def words(self) -> str:
        """The verdict with its numbers."""
        return in_words(self.kind, self.rate, self.level, self.needs, self.limit)


def in_words(
    kind: Kind,
    rate: float | None,
    level: float | None,
    needs: int | None,
    limit: float | None = None,
    spread: str = "",
) -> str:
    """Return a verdict as words with its numbers.

    rate : p of k^-p. spread : its interval as text.
    level : the error at which the run settled, or the largest error that does not shrink.
    needs : the number of episodes that would decide.
    limit : an upper bound for the limit of falling errors; None leaves it out.
    """
    match kind:
        case Kind.converging | Kind.shrinking:
            bound = "" if limit is None else f"; a limit of up to {_upwards(limit)} is not excluded"
            return f"{kind} at k^-{rate:.2g}{spread}{bound}"
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


def _upwards(bound: float) -> str:
    """Return a positive bound as text with two digits, rounded upwards."""
    digit = 10.0 ** (np.floor(np.log10(bound)) - 1.0)
    return f"{np.ceil(bound / digit * (1.0 - 1e-12)) * digit:.2g}"


def verdict(curves: dict[str, Array], horizon: int) -> Verdict:
    """Return the verdict on a run from its curves; the horizon sets the scale of rounding."""
    found = envelope(curves)
    if len(found.start) < FEWEST:
        why = f"{FEWEST} quadruplings behind episode {ONSET} need {SHORTEST:,} episodes"
        return Verdict(Kind.undecided, (), why=why, needs=SHORTEST)
    if found.sup[-1] <= ROUNDING * horizon:
        return Verdict(Kind.settled, (), level=0.0)
    tiny = np.finfo(np.float64).tiny
    found = found._replace(highest=np.maximum(found.highest, tiny), end=max(found.end, tiny))
    return judge(found, decay(curves))


def judge(found: Envelope, mean: Decay) -> Verdict:
    """Return the verdict on an envelope and a fit to its errors, by the module's rules in order."""
    exponents = tuple(float(p) for p in found.exponents()[1 - FEWEST :])
    level = float(found.highest[-1])
    swinging = found.swing[-2:] >= SWINGS * found.highest[-2:]
    swings, one_swing = bool(np.all(swinging)), bool(np.any(swinging) and not np.all(swinging))
    if not one_swing and _worsens(found, NOISE if swings else seen(found, GROWS)):
        return Verdict(Kind.worsening, exponents, level=level)
    grows = found.exponents_within()[-2:]
    # If mean errors fall slowly, the largest of ever more draws of noise can hide it.
    hidden = bool(np.all((mean.exponents > FLAT) & (mean.exponents < NOISE)))
    if swings and np.all(grows <= FLAT) and grows[-1] >= -NOISE and not hidden:
        return Verdict(Kind.oscillating, exponents, level=level)
    rest = None if swings or one_swing else _rest(found, mean)
    if rest is not None:
        return Verdict(Kind.settled, exponents, level=rest)
    high = min(mean.high, mean.peaks) if swings else mean.high
    if high <= SMALL and mean.low <= ZERO and _falls(found, exponents, mean):
        kind = Kind.shrinking if swings or one_swing else Kind.converging
        return Verdict(kind, exponents, exponents[-1], limit=max(high, LEAST) * found.end)
    return _undecided(found, exponents, mean)


def extrapolated(sup: Array) -> float | None:
    """Return Aitken's limit c of the last three values of E [J], or None if they do not level off.

    c = E_3 - (E_2 - E_3)^2 / ((E_1 - E_2) - (E_2 - E_3)) is the limit of c + a k^-q. It is 0 for a
    power law, and E / 2 for 1 / ln k.
    """
    before, last = -np.diff(sup[-3:])
    if not 0.0 < last < before:
        return None
    return float(sup[-1] - last**2 / (before - last))


def _worsens(found: Envelope, clearly: float) -> bool:
    """Return True if errors grow by an exponent above `clearly`, and not towards a limit."""
    grows = found.exponents_within()[1 - FEWEST :]
    before, last = np.diff(found.highest[-3:])
    return bool(np.all(grows < -clearly) and last >= ON * before and found.end >= found.highest[-2])


def _rest(found: Envelope, mean: Decay) -> float | None:
    """Return the limit of errors that are constant, or within a tenth of a limit; else None."""
    if abs(mean.exponents[-1]) <= FLAT:
        if _flat(found):
            return found.end
        above = _levels_off(found)
        if above is not None:
            return above
    limit = extrapolated(found.sup)
    return limit if limit and limit >= SHARE * found.sup[-1] and _dies_out(found) else None


def _levels_off(found: Envelope) -> float | None:
    """Return the limit of errors that grow by less and less, if it is near; else None."""
    before, last = np.diff(found.highest[-3:])
    if not 0.0 < last < ON * before or found.end < found.highest[-1]:
        return None
    limit = float(found.highest[-1] + last**2 / (before - last))
    return limit if SHARE * limit <= found.highest[-1] else None


def noise(found: Envelope) -> float:
    """Return the swing of the error in the last quadrupling, as a share of its largest error."""
    return float(found.swing[-1] / found.highest[-1])


def seen(found: Envelope, most: float) -> float:
    """Return the smallest exponent that can be told from noise, at most `most`."""
    return min(most, max(SHARP, noise(found)))


def _flat(found: Envelope) -> bool:
    """Return True if errors are constant from K/16 on, apart from noise."""
    rates = np.array([found.exponents_within()[-1], found.last_exponent])
    falls = rates > seen(found, FLAT) + np.array([0.0, noise(found)])
    return not np.any(falls | (rates < -seen(found, GROWS) - noise(found)))


def _dies_out(found: Envelope) -> bool:
    """Return True if errors fall slowly, and still more slowly at the end, but do fall.

    Towards a limit the exponents shrink by a factor from each quadrupling to the next. A slow power
    law behind a fast one keeps its exponent.
    """
    rate = found.exponents()[-1]
    return bool(rate <= 0.1 and 0.1 * rate < found.last_exponent <= DYING * rate)


def _falls(found: Envelope, exponents: tuple[float, ...], mean: Decay) -> bool:
    """Return True if envelope and mean errors fall at similar rates, the means like a power law."""
    pace = float(np.mean(mean.exponents))
    alike = pace / ALIKE <= min(exponents[-2:]) and max(exponents[-2:]) <= ALIKE * pace
    falls = alike and np.mean(exponents) >= pace / 4.0 and found.last_exponent > 0.0
    return bool(falls and mean.exponents[1] <= FASTER * mean.exponents[0])


def _undecided(found: Envelope, exponents: tuple[float, ...], mean: Decay) -> Verdict:
    listed = ", ".join(f"{p:.2g}" for p in exponents)
    K = 4.0 * found.start[-1]
    why = f"the local exponents {listed} of the envelope are neither zero nor steady"
    if found.highest[-1] > found.highest[-2]:
        why = "the largest errors still grow, and not steadily"
    elif _falls(found, exponents, mean):
        why = f"errors fall, and a limit of up to {_upwards(mean.high * found.end)} is not excluded"
    needs = int(float(f"{K * 4.0 ** _quadruplings(found):.2g}"))
    return Verdict(Kind.undecided, exponents, why=why, needs=needs)


def _quadruplings(found: Envelope) -> int:
    """Return the number of quadruplings that separates a power law from a limit, both continued."""
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
    """Return the verdict that all runs share, with medians of its numbers, or a count of kinds.

    `seeds` are the curves of each run. The largest of the bounds for a limit is stated.
    """
    verdicts = [verdict(curves, horizon) for curves in seeds]
    kinds = Counter(each.kind for each in verdicts)
    if len(kinds) > 1:
        total = len(verdicts)
        return "; ".join(f"{kind} in {n} of {total}" for kind, n in kinds.most_common())
    rates, levels, limits, needs = (
        [getattr(each, field) for each in verdicts if getattr(each, field) is not None]
        for field in ("rate", "level", "limit", "needs")
    )
    rate, level = (float(np.median(each)) if each else None for each in (rates, levels))
    needed, bound = max(needs, default=None), max(limits, default=None)
    return in_words(verdicts[0].kind, rate, level, needed, bound)
