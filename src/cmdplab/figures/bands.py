"""The line of several seeds, and the band around it.

The line is the median, unless a mean is asked for, and its band is about that line. From `FEWEST`
seeds on there is one: at all points at once where the seeds of every line of a figure suffice for
it, else at each point on its own. With fewer seeds there is a line and no band.
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


def mean_curve(table: Array) -> Array:
    """[T]: sum_s y_s / S over the seeds of a table [S, T]."""
    return np.asarray(table.mean(axis=0))


def geometric_mean_curve(table: Array) -> Array:
    """[T]: exp(sum_s ln(1 + y_s) / S) - 1 over the seeds of a table of counts [S, T]."""
    return np.asarray(np.expm1(np.log1p(table).mean(axis=0)))


class Middle(NamedTuple):
    """A summary over seeds, and the band that covers it."""

    name: str
    curve: Callable[[Array], Array]  # [S, T] -> [T]
    band: Callable[[Array], Band]


MEDIAN = Middle("median", median_curve, strongest_median_band)
MEAN = Middle("mean", mean_curve, mean_band)
GEOMETRIC_MEAN = Middle("geometric mean", geometric_mean_curve, count_band)
MIDDLES = (MEDIAN.name, MEAN.name)  # what a person may ask for; of counts a mean is geometric


def middle_of(name: str, *, counts: bool = False) -> Middle:
    """The middle of that name; of counts, which one bad seed decides, a mean is geometric."""
    if name not in MIDDLES:
        raise InputError(f"unknown middle {name!r}: choose {' or '.join(MIDDLES)}")
    if name == MEDIAN.name:
        return MEDIAN
    return GEOMETRIC_MEAN if counts else MEAN


class Summary(NamedTuple):
    """The middle that every line of a figure shows, and the bands of those that have one."""

    middle: Middle
    bands: dict[str, Band]

    @property
    def cautions(self) -> list[str]:
        """Which lines are means of heavy tails."""
        return [f"{name}: {band.caution}" for name, band in self.bands.items() if band.caution]


def summarised(tables: Mapping[str, Array], middle: Middle = MEDIAN) -> Summary:
    """The bands of all tables [S, T] with enough seeds; all of them at once, or none is.

    Tables with fewer than `FEWEST` seeds get a line, and no band.
    """
    enough = {name: table for name, table in tables.items() if not too_few(len(table))}
    bands = {name: middle.band(table) for name, table in enough.items()}
    if not all(band.at_once for band in bands.values()):
        bands = {name: pointwise_median_band(table) for name, table in enough.items()}
    return Summary(middle, bands)


def spread_out(x: Array, spacing: Callable[..., Array]) -> Indices:
    """At most `POINTS` positions of an increasing x [T], as far apart as `spacing` puts them.

    `spacing` is `np.linspace` or `np.geomspace`; the first and the last are always among them.
    """
    wanted = np.searchsorted(x, spacing(x[0], x[-1], POINTS))
    return np.unique(np.clip(np.append(wanted, [0, len(x) - 1]), 0, len(x) - 1))


def words(summary: Summary, tables: Mapping[str, Array], envelope: bool) -> str:
    """Explain lines and shades: in the figure itself, where no caption can get lost."""
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
