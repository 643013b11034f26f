"""Statistics over seeds: quantiles, intervals, bands, comparisons and fitted exponents.

A sample is one number for each seed, [S]. Curves are one row for each seed, [S, T]. Medians are the
default: their intervals hold for every distribution, those of means do not (`bca_interval` and
`mean_band` have the simulated coverage, from `benchmarks/interval_coverage.py`). Fewer than
`FEWEST` seeds give no interval, no band and no claim. Nothing is smoothed. Every function is
deterministic: its random draws come from a counter-based generator keyed by its own `seed`
argument. Rows are put in a fixed order first, so that the order of the seeds does not matter.
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
