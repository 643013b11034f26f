"""Statistics over seeds: quantiles, intervals, bands, comparisons and fitted exponents.

A sample is one number for each of S seeds, [S]. Curves are one row of T points for each seed,
[S, T]. `level` is the probability with which an interval or band covers, and `resamples` is the
number of simulated samples. Medians are the default: their intervals hold for every distribution,
intervals of means do not (`benchmarks/interval_coverage.py` simulates their coverage). Fewer than
`FEWEST` seeds give no interval, no band and no claim. Nothing is smoothed. Random draws depend on
the argument `seed` alone. The order of the rows does not matter, because they are sorted first.
"""

from cmdplab.statistics.bands import (
    Band,
    count_band,
    mean_band,
    median_band,
    pointwise_median_band,
    strongest_median_band,
)
from cmdplab.statistics.exponents import Exponent, fit_exponent, power_law
from cmdplab.statistics.intervals import (
    Frequency,
    Interval,
    bca_interval,
    binomial_interval,
    median_interval,
)
from cmdplab.statistics.paired import (
    Paired,
    by_common_seed,
    compare_all,
    compare_pair,
    compare_with,
    holm,
    seeds_needed,
    sign_test,
    signed_rank_test,
)
from cmdplab.statistics.samples import (
    FEWEST,
    fewest,
    median_curve,
    quantile_curves,
    tail_warning,
    too_few,
)

__all__ = [
    "FEWEST",
    "Band",
    "Exponent",
    "Frequency",
    "Interval",
    "Paired",
    "bca_interval",
    "binomial_interval",
    "by_common_seed",
    "compare_all",
    "compare_pair",
    "compare_with",
    "count_band",
    "fewest",
    "fit_exponent",
    "holm",
    "mean_band",
    "median_band",
    "median_curve",
    "median_interval",
    "pointwise_median_band",
    "power_law",
    "quantile_curves",
    "seeds_needed",
    "sign_test",
    "signed_rank_test",
    "strongest_median_band",
    "tail_warning",
    "too_few",
]
