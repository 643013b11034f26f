"""Two algorithms on common seeds: their differences, seed by seed."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cmdplab.errors import InputError
from cmdplab.statistics.intervals import bca_interval
from cmdplab.statistics.samples import checked_sample, need_two
from cmdplab.types import Array


class Paired(NamedTuple):
    """The comparison of a first with a second algorithm: differences are first less second."""

    first: str
    second: str
    difference: float  # the median or mean of the differences
    low: float
    high: float
    level: float
    seeds: int
    smaller: int  # seeds on which the first is smaller
    larger: int  # seeds on which it is larger
    sign_p: float
    signed_rank_p: float
    holm_p: float  # sign_p after Holm's correction over all `comparisons`
    comparisons: int

    @property
    def words(self) -> str:
        """The comparison in one sentence, which claims no difference if the interval holds zero."""
        seeds = f"of {self.seeds} seeds"
        p = f"sign test p = {self.holm_p:.2g}"
        if self.comparisons > 1:
            p += f" after Holm over {self.comparisons} comparisons"
        if self.smaller == self.larger == 0:
            return f"{self.first} and {self.second} agree on {self.seeds} {seeds}"
        if self.low <= 0.0 <= self.high:
            middle, low, high = _rounded(self.difference, self.low, self.high)
            return (
                f"{self.first} and {self.second} cannot be told apart: they differ by {middle}"
                f" [{low}, {high}], {self.first} is smaller on {self.smaller} {seeds} ({p})"
            )
        if self.high < 0.0:
            word, many = "smaller", self.smaller
            middle, low, high = _rounded(-self.difference, -self.high, -self.low)
        else:
            word, many = "larger", self.larger
            middle, low, high = _rounded(self.difference, self.low, self.high)
        return f"{self.first} is {word} by {middle} [{low}, {high}] on {many} {seeds} ({p})"


def compare_pair(
    first: ArrayLike,
    second: ArrayLike,
    names: tuple[str, str] = ("A", "B"),
    *,
    statistic: str = "median",
    level: float = 0.95,
    resamples: int = 4999,
    seed: int = 0,
) -> Paired:
    """The paired comparison of two samples [S], entry i of both from the same seed.

    The interval is the expanded BCa interval of the median (or mean) difference, with its limits;
    the sign test is exact under no assumption but independent seeds, the signed-rank test is exact
    if differences are symmetric about their median. With S seeds neither p-value can be below
    2^(1-S): five seeds never reach 0.05, even where the interval excludes zero.
    """
    differences = _differences(first, second, names)
    interval = bca_interval(differences, statistic, level, resamples=resamples, seed=seed)
    p = sign_test(differences)
    return Paired(
        first=names[0],
        second=names[1],
        difference=interval.middle,
        low=interval.low,
        high=interval.high,
        level=level,
        seeds=len(differences),
        smaller=int(np.sum(differences < 0)),
        larger=int(np.sum(differences > 0)),
        sign_p=p,
        signed_rank_p=signed_rank_test(differences),
        holm_p=p,
        comparisons=1,
    )


def compare_all(
    samples: Mapping[str, ArrayLike],
    *,
    statistic: str = "median",
    level: float = 0.95,
    resamples: int = 4999,
    seed: int = 0,
) -> list[Paired]:
    """Every pair of algorithms, in the order given, with Holm's correction over all pairs.

    The correction is of the p-values; each interval has its level on its own.
    """
    if len(samples) < 2:
        raise InputError("a comparison takes at least two algorithms")
    pairs = [
        compare_pair(
            samples[a],
            samples[b],
            (a, b),
            statistic=statistic,
            level=level,
            resamples=resamples,
            seed=seed,
        )
        for a, b in combinations(samples, 2)
    ]
    adjusted = holm([pair.sign_p for pair in pairs])
    return [
        pair._replace(holm_p=float(p), comparisons=len(pairs))
        for pair, p in zip(pairs, adjusted, strict=True)
    ]


def by_common_seed(first: Mapping[int, float], second: Mapping[int, float]) -> tuple[Array, Array]:
    """Two samples [S] in the order of the seeds, which must be the same."""
    if first.keys() != second.keys():
        alone = sorted(first.keys() ^ second.keys())
        raise InputError(f"seeds that only one of the two has: {', '.join(map(str, alone))}")
    seeds = sorted(first)
    return np.array([first[s] for s in seeds]), np.array([second[s] for s in seeds])


def sign_test(differences: ArrayLike) -> float:
    """The exact two-sided p-value that the median difference is zero: min(1, 2 P(X <= m)).

    m is the smaller of the numbers of positive and negative differences, n their sum (zeros are
    left out), X ~ Binomial(n, 1/2).
    """
    sample = checked_sample(differences, "the differences")
    above, below = int(np.sum(sample > 0)), int(np.sum(sample < 0))
    return float(min(1.0, 2 * special.bdtr(min(above, below), above + below, 0.5)))


def signed_rank_test(differences: ArrayLike) -> float:
    """Wilcoxon's exact two-sided p-value that differences are symmetric about zero.

    Zeros are left out and ties share their mean rank; the law of the sum of the positive ranks is
    counted over all 2^n signs, given those ranks, so ties need no approximation.
    """
    sample = checked_sample(differences, "the differences")
    sample = sample[sample != 0]
    _, which, ties = np.unique(np.abs(sample), return_inverse=True, return_counts=True)
    ranks = (2 * np.cumsum(ties) - ties + 1)[which]  # twice the mean ranks: whole numbers
    law = np.zeros(int(ranks.sum()) + 1)
    law[0] = 1.0
    for rank in ranks:
        law[rank:] = (law[rank:] + law[:-rank]) / 2
        law[:rank] /= 2
    positive = int(ranks[sample > 0].sum())
    return float(min(1.0, 2 * min(law[: positive + 1].sum(), law[positive:].sum())))


def holm(p_values: ArrayLike) -> Array:
    """Holm's adjusted p-values: max over j <= i of min(1, (m - j + 1) p_(j)) for the i-th smallest.

    Rejecting where it is at most alpha errs anywhere with probability at most alpha, however the m
    tests depend on each other.
    """
    p = np.asarray(p_values, dtype=np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise InputError("p-values are a list of numbers between 0 and 1")
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    factors = np.arange(len(p), 0, -1)
    adjusted[order] = np.maximum.accumulate(np.minimum(1.0, factors * p[order]))
    return adjusted


def _differences(first: ArrayLike, second: ArrayLike, names: tuple[str, str]) -> Array:
    a, b = (
        checked_sample(values, f"the values of {name}")
        for values, name in zip((first, second), names, strict=True)
    )
    if len(a) != len(b):
        raise InputError(
            f"{names[0]} has {len(a)} seeds and {names[1]} has {len(b)}: pairs need the same seeds"
        )
    need_two(len(a), "comparison")
    return a - b


def _rounded(middle: float, low: float, high: float) -> tuple[str, str, str]:
    """Three numbers to the first digit of the interval's width."""
    width = high - low
    places = max(0, int(-np.floor(np.log10(width)))) if width > 0 else 99
    form = f".{places}f" if places <= 6 else ".4g"
    return format(middle, form), format(low, form), format(high, form)
