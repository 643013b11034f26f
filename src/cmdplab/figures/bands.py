"""The line of several seeds, and the band around it.

The line is the median, unless a mean is asked for, and the band is a band of that line. From
`FEWEST` seeds on there is a band. It holds at all points at once if the seeds of every line of a
figure suffice, otherwise at each point on its own. With fewer seeds there is a line without a band.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.statistics import (
    Band,
    count_band,
    mean_band,
    median_curve,
    pointwise_median_band,
    strongest_median_band,
    too_few,
)
from cmdplab.types import Array, Indices

HEAVY = "heavy tails: the band of a mean may cover far less than it says"
POINTS = 100  # a band holds at so many points at once; more would widen it beyond use


class Middle(NamedTuple):
    """A summary over seeds, and the band that covers it."""

    name: str
    curve: Callable[[Array], Array]  # [S, T] -> [T]
    band: Callable[[Array], Band]


MEDIAN = Middle("median", median_curve, strongest_median_band)
MEAN = Middle("mean", lambda table: np.asarray(table.mean(axis=0)), mean_band)
GEOMETRIC_MEAN = Middle(  # exp(sum_s ln(1 + y_s) / S) - 1
    "geometric mean", lambda table: np.asarray(np.expm1(np.log1p(table).mean(axis=0))), count_band
)
MIDDLES = (MEDIAN.name, MEAN.name)  # what a person may ask for; of counts a mean is geometric


def middle_of(name: str, *, counts: bool = False) -> Middle:
    """Return the middle of a name.

    The mean of counts is geometric, because one bad seed decides their plain mean.
    """
    if name not in MIDDLES:
        raise InputError(f"unknown middle {name!r}: choose {' or '.join(MIDDLES)}")
    if name == MEDIAN.name:
        return MEDIAN
    return GEOMETRIC_MEAN if counts else MEAN


class Summary(NamedTuple):
    """The middle of every line of a figure, and the bands of the lines that have one."""

    middle: Middle
    bands: dict[str, Band]

    @property
    def cautions(self) -> list[str]:
        """Return a warning for each line that is a mean of heavy tails."""
        return [f"{name}: {band.caution}" for name, band in self.bands.items() if band.caution]


def summarised(tables: Mapping[str, Array], middle: Middle = MEDIAN) -> Summary:
    """Return the bands of all tables [S, T] with enough seeds, all of one kind.

    Tables with fewer than `FEWEST` seeds get a line without a band.
    """
    enough = {name: table for name, table in tables.items() if not too_few(len(table))}
    bands = {name: middle.band(table) for name, table in enough.items()}
    if not all(band.at_once for band in bands.values()):
        bands = {name: pointwise_median_band(table) for name, table in enough.items()}
    return Summary(middle, bands)


def spread_out(x: Array, spacing: Callable[..., Array]) -> Indices:
    """Return at most `POINTS` indices of an increasing x [T], spaced by `spacing`.

    `spacing` is `np.linspace` or `np.geomspace`. The first and the last index are always included.
    """
    wanted = np.searchsorted(x, spacing(x[0], x[-1], POINTS))
    return np.unique(np.clip(np.append(wanted, [0, len(x) - 1]), 0, len(x) - 1))


def words(summary: Summary, tables: Mapping[str, Array], envelope: bool) -> str:
    """Return the explanation of lines and shades, which stands in the figure itself."""
    counts = sorted({len(table) for table in tables.values()})
    if counts == [1]:
        text = "one seed"
    else:
        text = f"{summary.middle.name} over {' or '.join(map(str, counts))} seeds"
    if envelope:
        text += "; light: every episode"
    if not summary.bands:
        return text
    band = next(iter(summary.bands.values()))
    where = f"at {len(band.low)} points at once" if band.at_once else "at each point on its own"
    text = f"{text}\ndark: {100 * band.level:g} % band of the {summary.middle.name}, {where}"
    return text + f"\n{HEAVY}" * bool(summary.cautions)
