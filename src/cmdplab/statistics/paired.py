"""Algorithms on common seeds: their differences seed by seed, and the claims that they allow.

A sentence claims a difference only if Holm's p-value over all the comparisons made is at most 1 -
level. Hence some sentence errs with probability at most 1 - level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from cmdplab.errors import InputError
from cmdplab.statistics.intervals import Interval, bca_interval, median_interval
from cmdplab.statistics.samples import LEVEL, checked_sample, fewest, too_few
from cmdplab.types import Array


class Paired(NamedTuple):
    """Comparison of two algorithms by their differences, first less second, on common seeds."""

    first: str
    second: str
    difference: float  # the median or mean of the differences
    low: float  # NaN, as `high`, if the seeds are too few for an interval
    high: float
    level: float
    seeds: int
    smaller: int  # seeds on which the first is smaller
    larger: int  # seeds on which it is larger
    sign_p: float
    signed_rank_p: float
    holm_p: float  # sign_p after Holm's correction over all `comparisons`
    comparisons: int
    measure: str = ""  # the compared quantity
    caution: str = ""  # a warning about a mean of samples with a heavy tail, or empty

    @property
    def needed(self) -> int:
        """Return the least number of seeds with which these comparisons can claim a difference."""
        return seeds_needed(self.comparisons, self.level)

    @property
    def outcome(self) -> str:
        """Return `smaller`, `larger`, `same`, `not told apart`, or (too few seeds) `undecided`."""
        if self.smaller == self.larger == 0:
            return "same"
        if self.seeds < self.needed:
            return "undecided"
        if self.holm_p > 1.0 - self.level + ROUNDING:
            return "not told apart"
        return "smaller" if self.smaller > self.larger else "larger"

    @property
    def words(self) -> str:
        """Return the outcome as a sentence with its numbers."""
        seeds, of = f"of {self.seeds} seeds", f" in {self.measure}" * bool(self.measure)
        both = f"{self.first} and {self.second}"
        outcome = self.outcome
        if outcome == "same":
            return f"{both} agree{of} on {self.seeds} {seeds}"
        count = f"{self.first} is smaller on {self.smaller} {seeds}"
        if outcome == "undecided":
            more = "one comparison" if self.comparisons == 1 else f"{self.comparisons} comparisons"
            return f"{both}{of}: undecided, {count}; {more} need {self.needed} seeds"
        p = f"sign test p = {self.holm_p:.2g}"
        if self.comparisons > 1:
            p += f" after Holm over {self.comparisons} comparisons"
        if outcome == "not told apart":
            middle, low, high = _rounded(self.difference, self.low, self.high)
            return (
                f"{both} cannot be told apart{of}: they differ by {middle}"
                f" [{low}, {high}], {count} ({p})"
            )
        sign, many = (-1.0, self.smaller) if outcome == "smaller" else (1.0, self.larger)
        ends = sorted((sign * self.low, sign * self.high))
        middle, low, high = _rounded(sign * self.difference, *ends)
        return f"{self.first} is {outcome}{of} by {middle} [{low}, {high}] on {many} {seeds} ({p})"


ROUNDING = 1e-12  # of p-values: a p-value of exactly 0.05 claims a difference


def seeds_needed(comparisons: int, level: float = LEVEL) -> int:
    """Return the least number of seeds with which m = `comparisons` can claim a difference.

    This is the smallest S with m 2^(1-S) <= 1 - level, but at least `fewest(level)`. 2^(1-S) is the
    least p-value of a sign test of S seeds, and m times it is the first step of Holm's correction.
    """
    return max(fewest(level), int(np.ceil(1.0 + np.log2(comparisons / (1.0 - level)) - 1e-9)))


def compare_pair(
    first: ArrayLike,
    second: ArrayLike,
    names: tuple[str, str] = ("A", "B"),
    *,
    statistic: str = "median",
    level: float = LEVEL,
    resamples: int = 4999,
    seed: int = 0,
) -> Paired:
    """Return the paired comparison of two samples [S], where entry i of both comes from one seed.

    first, second : the samples. names : the names of their algorithms. statistic : "median" or
    "mean".

    The interval of a median difference lies between order statistics (`median_interval`). That of a
    mean difference is the expanded BCa interval, with its limits (`caution`). The sign test is
    exact for independent seeds. The signed-rank test is exact if differences are symmetric about
    their median. With S seeds neither p-value can be below 2^(1-S). Hence fewer seeds than
    `seeds_needed` claim nothing, and below six there is no interval.
    """
    differences = _differences(first, second, names)
    if statistic not in ("median", "mean"):
        raise InputError(f"unknown statistic {statistic!r}: choose from median, mean")
    if too_few(len(differences), level=level) or statistic == "median":
        interval = median_interval(differences, level)
    else:
        interval = bca_interval(differences, "mean", level, resamples=resamples, seed=seed)
    return _paired(differences, interval, names)


def _paired(differences: Array, interval: Interval, names: tuple[str, str]) -> Paired:
    p = sign_test(differences)
    return Paired(
        first=names[0],
        second=names[1],
        difference=interval.middle,
        low=interval.low,
        high=interval.high,
        level=interval.level,
        seeds=len(differences),
        smaller=int(np.sum(differences < 0)),
        larger=int(np.sum(differences > 0)),
        sign_p=p,
        signed_rank_p=signed_rank_test(differences),
        holm_p=p,
        comparisons=1,
        caution=interval.caution,
    )


def compare_all(
    samples: Mapping[str, ArrayLike],
    *,
    statistic: str = "median",
    level: float = LEVEL,
    resamples: int = 4999,
    seed: int = 0,
) -> list[Paired]:
    """Return the comparison of every pair of algorithms, with Holm's correction over all pairs.

    samples : for each algorithm its values [S], entry i of all from one seed.
    statistic : "median" or "mean" of the differences.

    Only the p-values are corrected. Each interval has its level separately.
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
    return corrected(pairs)


def compare_with(
    versus: str,
    measured: Mapping[str, Mapping[str, ArrayLike]],
    *,
    level: float = LEVEL,
) -> list[Paired]:
    """Compare every algorithm with `versus` in every measure, with Holm's correction over all.

    measured : for each measure the samples [S] of each algorithm, entry i of all from one seed.
    """
    for measure, samples in measured.items():
        if versus not in samples:
            known = ", ".join(samples)
            raise InputError(f"there is no {versus} to compare with in {measure}: choose {known}")
        if len(samples) < 2:
            raise InputError("a comparison takes at least two algorithms")
    pairs = [
        compare_pair(samples[name], samples[versus], (name, versus), level=level)._replace(
            measure=measure
        )
        for measure, samples in measured.items()
        for name in samples
        if name != versus
    ]
    return corrected(pairs)


def corrected(pairs: Sequence[Paired]) -> list[Paired]:
    """Return these comparisons with Holm's p-values over all of them."""
    adjusted = holm([pair.sign_p for pair in pairs])
    return [
        pair._replace(holm_p=float(p), comparisons=len(pairs))
        for pair, p in zip(pairs, adjusted, strict=True)
    ]


def by_common_seed(first: Mapping[int, float], second: Mapping[int, float]) -> tuple[Array, Array]:
    """Return the values of two maps by seed as arrays [S] in one order; refuse different seeds."""
    if first.keys() != second.keys():
        alone = sorted(first.keys() ^ second.keys())
        raise InputError(f"seeds that only one of the two has: {', '.join(map(str, alone))}")
    seeds = sorted(first)
    return np.array([first[s] for s in seeds]), np.array([second[s] for s in seeds])


def sign_test(differences: ArrayLike) -> float:
    """Return the exact two-sided p-value that `differences` [S] have the median zero.

    It is min(1, 2 P(X <= m)). m is the smaller of the numbers of positive and negative differences,
    and n is their sum (zeros are left out). X ~ Binomial(n, 1/2).
    """
    sample = checked_sample(differences, "the differences")
    above, below = int(np.sum(sample > 0)), int(np.sum(sample < 0))
    return float(min(1.0, 2 * special.bdtr(min(above, below), above + below, 0.5)))


def signed_rank_test(differences: ArrayLike) -> float:
    """Return Wilcoxon's exact two-sided p-value that `differences` [S] are symmetric about zero.

    Zeros are left out, and equal sizes share their mean rank. The distribution of the sum of the
    positive ranks is counted over all 2^n signs of the n differences, so that ties need no
    approximation.
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
    """Return Holm's adjusted p-values of m tests, [m], in the order of `p_values` [m].

    The i-th smallest p_(i) becomes max_{j <= i} min(1, (m - j + 1) p_(j)). If all tests with an
    adjusted p-value of at most alpha are rejected, some rejection is wrong with probability at most
    alpha. This holds for every dependence of the tests.
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
    return a - b


def _rounded(middle: float, low: float, high: float) -> tuple[str, str, str]:
    """Return three numbers as text, rounded to the first digit of the interval's width."""
    width = high - low if low <= high else 0.0
    places = max(0, int(-np.floor(np.log10(width)))) if width > 0 else 99
    form = f".{places}f" if places <= 6 else ".4g"
    return format(middle, form), format(low, form), format(high, form)
