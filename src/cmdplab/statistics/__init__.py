"""What several seeds say together: quantiles, intervals, bands, comparisons, fitted exponents.

A sample is one number for each seed, [S]; curves are one row for each seed, [S, T]. Nothing is
smoothed, one seed gives neither an interval nor a band, and every function is deterministic: its
random draws come from a counter-based generator keyed by its own `seed` argument, and rows are put
in a fixed order first, so that the order of the seeds does not matter.
"""

from cmdplab.statistics.bands import Band, count_band, mean_band, median_band
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
    holm,
    sign_test,
    signed_rank_test,
)
from cmdplab.statistics.samples import FEWEST, median_curve, quantile_curves, too_few

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
    "count_band",
    "fit_exponent",
    "holm",
    "mean_band",
    "median_band",
    "median_curve",
    "median_interval",
    "power_law",
    "quantile_curves",
    "sign_test",
    "signed_rank_test",
    "too_few",
]
