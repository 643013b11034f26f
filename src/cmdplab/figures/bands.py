"""The line of several seeds, and the simultaneous band around it.

The line is always what its band is about. The median, where the seeds suffice for its band at every
line of a figure; else, from five seeds on, a mean, whose sup-t band needs fewer. With fewer seeds
the line is the median and there is no band.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from cmdplab.errors import InputError
from cmdplab.statistics import Band, count_band, mean_band, median_band, median_curve
from cmdplab.types import Array, Indices

FEWEST = 5  # seeds: with fewer no band is drawn
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


MEDIAN = Middle("median", median_curve, median_band)
MEAN = Middle("mean", mean_curve, mean_band)
GEOMETRIC_MEAN = Middle("geometric mean", geometric_mean_curve, count_band)


class Summary(NamedTuple):
    """The middle that every line of a figure shows, and the bands of those that have one."""

    middle: Middle
    bands: dict[str, Band]


def summarised(tables: Mapping[str, Array], fallback: Middle) -> Summary:
    """Medians if all tables [S, T] with at least five seeds carry a median's band; else `fallback`.

    Tables with fewer seeds get a line, and no band.
    """
    enough = {name: table for name, table in tables.items() if len(table) >= FEWEST}
    try:
        return Summary(MEDIAN, {name: MEDIAN.band(table) for name, table in enough.items()})
    except InputError:  # too few seeds; curves that are not finite are refused below once more
        return Summary(fallback, {name: fallback.band(table) for name, table in enough.items()})


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
    where = f"at {len(band.low)} points at once"
    return f"{text}\ndark: {100 * band.level:g} % band of the {summary.middle.name}, {where}"
