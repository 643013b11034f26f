"""Statistics against closed forms, simulated coverage, and what must not change them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st
from scipy import stats

from cmdplab.errors import InputError
from cmdplab.figures.bands import summarised
from cmdplab.statistics import (
    FEWEST,
    bca_interval,
    binomial_interval,
    by_common_seed,
    compare_all,
    compare_pair,
    compare_with,
    count_band,
    fewest,
    fit_exponent,
    holm,
    mean_band,
    median_band,
    median_curve,
    median_interval,
    pointwise_median_band,
    power_law,
    quantile_curves,
    seeds_needed,
    sign_test,
    signed_rank_test,
    strongest_median_band,
    tail_warning,
    too_few,
)

S, T = 20, 40
TRIALS = 1500  # a simulated coverage near 0.95 then has a standard error of 0.006
FEW = 299  # resamples: the products stay so small that BLAS starts no threads


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(seed))


def ar1(draws: np.random.Generator, shape: tuple[int, ...], keep: float = 0.9) -> np.ndarray:
    """Stationary, with standard normal margins."""
    steps = draws.standard_normal(shape)
    for t in range(1, shape[-1]):
        steps[..., t] = keep * steps[..., t - 1] + np.sqrt(1 - keep**2) * steps[..., t]
    return steps


def many_curves(kind: str, draws: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Curves [TRIALS, S, T] and their true mean [T]."""
    shape, zero = (TRIALS, S, T), np.zeros(T)
    if kind == "random walk":
        return np.cumsum(draws.standard_normal(shape), axis=-1), zero
    if kind == "AR(1)":
        return ar1(draws, shape), zero
    if kind == "exponential steps":
        return np.cumsum(draws.exponential(size=shape), axis=-1), np.arange(1.0, T + 1)
    if kind == "exponential scale":
        return draws.exponential(size=(TRIALS, S, 1)) * np.linspace(1, 3, T), np.linspace(1, 3, T)
    assert kind == "exponential margins"
    return (ar1(draws, shape) ** 2 + ar1(draws, shape) ** 2) / 2, zero + 1


def spread(samples: np.ndarray) -> np.ndarray:
    return np.std(samples, axis=-1)


def covered(band: tuple, truth: np.ndarray) -> bool:
    return bool(((band[0] <= truth) & (truth <= band[2])).all())


# Quantiles


def test_quantiles_are_those_of_each_point_and_nothing_is_smoothed():
    curves = np.array([[1.0, 9.0, 0.0], [2.0, 0.0, 0.0], [4.0, 1.0, 7.0]])
    np.testing.assert_array_equal(median_curve(curves), [2.0, 1.0, 0.0])
    np.testing.assert_array_equal(quantile_curves(curves, (0.0, 1.0)), [[1, 0, 0], [4, 9, 7]])
    np.testing.assert_allclose(quantile_curves(curves, (0.75,)), [[3.0, 5.0, 3.5]])
    with pytest.raises(InputError, match="between 0 and 1"):
        quantile_curves(curves, (1.5,))


# BCa


def test_the_textbook_bca_interval_is_that_of_scipy():
    values = rng().exponential(size=15)
    for mine, function in (
        (bca_interval(values, "mean", expanded=False, resamples=20_000), np.mean),
        (bca_interval(values, spread, expanded=False, resamples=20_000), np.std),
    ):
        other = stats.bootstrap(
            (values,), function, n_resamples=20_000, method="BCa", random_state=rng(1)
        ).confidence_interval
        tolerance = 0.03 * (mine.high - mine.low)
        np.testing.assert_allclose((mine.low, mine.high), tuple(other), atol=tolerance)
        np.testing.assert_allclose(mine.middle, function(values), rtol=1e-14)


def test_a_median_has_an_interval_from_six_values_on():
    # The whole range of S values holds the median with probability 1 - 2 / 2^S.
    assert 1.0 - 2.0 / 2.0**FEWEST >= 0.95 > 1.0 - 2.0 / 2.0 ** (FEWEST - 1)
    assert too_few(6) == ""
    assert too_few(5, "instances") == "5 instances are too few for an interval: at least 6"
    assert too_few(1) == "one seed is too few for an interval: at least 6"
    assert too_few(6, level=0.99).endswith("at least 8")
    few = median_interval([3.0, 1.0, 2.0])
    assert (few.middle, few.seeds) == (2.0, 3)
    assert np.isnan([few.low, few.high]).all()


@pytest.mark.parametrize("samples", [6, 7, 10, 20, 33])
def test_the_interval_of_a_median_is_that_of_scipy_s_quantile_test(samples):
    values = rng(samples).normal(size=samples)
    found = median_interval(values)
    other = stats.quantile_test(values, q=0, p=0.5).confidence_interval(0.95)
    assert (found.low, found.high) == (other.low, other.high)
    assert found.middle == np.median(values)


def test_one_number_of_fewest_samples_is_asked_everywhere():
    assert (fewest(), fewest(0.9), fewest(0.99), fewest(0.5)) == (FEWEST, 5, 8, 2)
    few = rng().normal(size=(FEWEST - 1, 3))
    refused = [bca_interval, mean_band, median_band, count_band, pointwise_median_band]
    for of in refused:
        values = few[:, 0] if of is bca_interval else np.abs(few)
        with pytest.raises(InputError, match=f"5 seeds are too few for .*: at least {FEWEST}"):
            of(values)
    assert np.isnan(median_interval(few[:, 0]).low)
    assert compare_pair(few[:, 0], few[:, 1]).outcome == "undecided"
    assert summarised({"a": few}).bands == {}
    assert list(summarised({"a": rng().normal(size=(FEWEST, 3))}).bands) == ["a"]


def test_expanded_intervals_are_wider_and_a_function_may_be_the_statistic():
    values = rng().normal(size=8)
    plain, wide = bca_interval(values, "mean", expanded=False), bca_interval(values, "mean")
    assert wide.low < plain.low < plain.high < wide.high
    assert bca_interval(values, lambda x: x.mean(axis=-1))[:5] == wide[:5]
    with pytest.raises(InputError, match="last axis"):
        bca_interval(values, lambda x: np.asarray(x.mean()))
    with pytest.raises(InputError, match="choose from mean, median"):
        bca_interval(values, "mode")


@given(seed=st.integers(0, 50), shift=st.floats(-100, 100), scale=st.floats(0.01, 100))
def test_bca_moves_with_shifts_and_scales_and_ignores_the_order(seed, shift, scale):
    values = rng(seed).exponential(size=9)
    here = np.array(bca_interval(values, "mean", resamples=499)[:3])
    moved = bca_interval(scale * rng(1).permutation(values) + shift, "mean", resamples=499)
    np.testing.assert_allclose(moved[:3], scale * here + shift, rtol=1e-9, atol=1e-9)


def test_bca_of_a_constant_has_no_width_and_of_one_seed_does_not_exist():
    assert bca_interval([0.1] * 6, "median")[:3] == (0.1, 0.1, 0.1)
    with pytest.raises(InputError, match="one seed is too few for an interval: at least 6"):
        bca_interval([1.0])
    with pytest.raises(InputError, match="must be finite, but number 2 is nan"):
        bca_interval([1.0, np.nan, 2.0])
    with pytest.raises(InputError, match="too few for a level"):
        bca_interval([1.0, 2.0], level=0.999, resamples=99)
    # 0.1 of ten draws is one draw, though not in floats.
    assert np.isfinite(bca_interval(range(6), level=0.9, resamples=9).low)
    with pytest.raises(InputError, match="between 0 and 1"):
        bca_interval([1.0, 2.0], level=95)


@pytest.mark.parametrize(
    ("kind", "statistic", "least"),
    [
        pytest.param("normal", "mean", 0.92, marks=pytest.mark.slow),
        pytest.param("normal", "median", 0.92, marks=pytest.mark.slow),
        ("exponential", "mean", 0.9),
    ],
)
def test_bca_covers(kind, statistic, least):
    shape = (600, S)
    samples = rng(3).normal(size=shape) if kind == "normal" else rng(3).exponential(size=shape) - 1
    intervals = [
        bca_interval(each, statistic, resamples=999, seed=i) for i, each in enumerate(samples)
    ]
    assert least <= np.mean([i.low <= 0 <= i.high for i in intervals]) <= 0.985


# Bands


@pytest.mark.parametrize(
    "kind",
    ["random walk", "AR(1)", "exponential steps", "exponential scale", "exponential margins"],
)
@pytest.mark.slow
def test_a_band_for_the_mean_covers_the_whole_curve(kind):
    curves, truth = many_curves(kind, rng(11))
    hits = [covered(mean_band(y, resamples=FEW, seed=i), truth) for i, y in enumerate(curves)]
    assert 0.92 <= np.mean(hits) <= 0.98


@pytest.mark.parametrize("seeds", [6, pytest.param(10, marks=pytest.mark.slow)])
def test_with_few_seeds_a_band_covers_normal_curves(seeds):
    curves, truth = many_curves("random walk", rng(12))
    hits = [
        covered(mean_band(y[:seeds], resamples=FEW, seed=i), truth) for i, y in enumerate(curves)
    ]
    assert 0.92 <= np.mean(hits) <= 0.995  # on the safe side for ten


@pytest.mark.parametrize("kind", [pytest.param("random walk", marks=pytest.mark.slow), "AR(1)"])
def test_a_band_for_the_median_covers_the_whole_curve(kind):
    curves, truth = many_curves(kind, rng(13))
    hits = [
        covered(median_band(np.exp(y), resamples=FEW, seed=i), np.exp(truth))
        for i, y in enumerate(curves)
    ]
    assert np.mean(hits) >= 0.93


def test_pointwise_intervals_would_not_cover_the_curve():
    curves, truth = many_curves("AR(1)", rng(11))
    half = stats.t.ppf(0.975, S - 1) * curves.std(axis=1, ddof=1) / np.sqrt(S)
    inside = np.abs(curves.mean(axis=1) - truth) <= half
    assert inside.mean() > 0.93
    assert inside.all(axis=1).mean() < 0.7


@pytest.mark.parametrize("seeds", [5, 8, 20])
def test_at_one_point_a_band_is_at_least_students_interval(seeds):
    values = rng(seeds).normal(size=(seeds, 1))
    band = mean_band(values, 0.9, resamples=9999)
    student = stats.t.ppf(0.95, seeds - 1) * values.std(ddof=1) / np.sqrt(seeds)
    assert band.high[0] - band.middle[0] >= 0.95 * student


def test_the_same_curve_over_and_over_has_the_band_of_one_point():
    column = rng().normal(size=(12, 1))
    one, many = mean_band(column), mean_band(np.tile(column, 2000))
    np.testing.assert_allclose(many.high, one.high[0])
    np.testing.assert_allclose(many.low, one.low[0])


@pytest.mark.parametrize("band_of", [mean_band, median_band, count_band])
def test_bands_ignore_the_order_of_seeds_and_close_where_seeds_agree(band_of):
    curves = rng().poisson(3.0, size=(S, 30)).astype(float)
    curves[:, [4, 20]] = 0.1
    band, other = band_of(curves), band_of(rng(1).permutation(curves))
    for mine, yours in zip(band[:3], other[:3], strict=True):
        np.testing.assert_array_equal(mine, yours)
    assert (band.level, band.seeds) == (0.95, S)
    closed = band.low == band.high
    np.testing.assert_array_equal(np.flatnonzero(closed), [4, 20])
    assert (band.middle[closed] == 0.1).all()
    assert ((band.low <= band.middle) & (band.middle <= band.high)).all()
    assert (band_of(np.ones((6, 4))).high == 1.0).all()


def test_bands_for_the_mean_move_with_shifts_and_scales_of_each_point():
    draws = rng(2)
    curves = ar1(draws, (8, 40))
    shift, scale = draws.normal(size=40), draws.exponential(size=40) * 1e-3
    band, moved = mean_band(curves), mean_band(scale * curves + shift)
    for mine, yours in zip(band[:3], moved[:3], strict=True):
        np.testing.assert_allclose(yours, scale * mine + shift, rtol=1e-7, atol=1e-12)


def test_bands_for_the_median_move_with_any_increasing_function():
    curves = rng(2).normal(size=(15, 10))
    band, moved = median_band(curves), median_band(np.exp(curves) - 3.0)
    for mine, yours in zip(band[:3], moved[:3], strict=True):
        np.testing.assert_array_equal(yours, np.exp(mine) - 3.0)


def test_a_band_for_the_median_at_one_point_is_the_exact_interval():
    column = np.arange(1.0, 21.0)[:, None]
    band = median_band(column, resamples=9999)
    assert 1 - 2 * stats.binom.cdf(5, 20, 0.5) > 0.95 > 1 - 2 * stats.binom.cdf(6, 20, 0.5)
    assert (band.low[0], band.middle[0], band.high[0]) == (6.0, 10.5, 15.0)


def test_one_seed_has_no_band_and_few_seeds_none_for_the_median():
    for band_of in (mean_band, median_band, count_band):
        with pytest.raises(InputError, match="one seed is too few for a band: at least 6"):
            band_of(np.ones((1, 5)))
        with pytest.raises(InputError, match="not finite at point 3"):
            band_of([[1.0, 2.0, 3.0], [1.0, 2.0, np.inf]] * 3)
        with pytest.raises(InputError, match="one row for each seed"):
            band_of([1.0, 2.0])
    with pytest.raises(InputError, match="5 seeds are too few"):
        median_band(rng().normal(size=(5, 1)))
    with pytest.raises(InputError, match="8 seeds are too few"):
        median_band(rng().normal(size=(8, 200)))


def test_a_band_for_counts_is_that_of_their_logarithms_and_finite_for_a_lone_mistake():
    draws = rng(4)
    rates = np.geomspace(300.0, 0.01, 80)
    pieces = draws.poisson(draws.gamma(4, 0.25, (S, 1)) * -np.diff(rates, append=0.0))
    counts = np.cumsum(pieces[:, ::-1], axis=1)[:, ::-1]
    assert ((counts > 0).sum(axis=0) == 1).any()
    band, logs = count_band(counts), mean_band(np.log1p(counts))
    np.testing.assert_allclose(np.log1p(band.high), logs.high, atol=1e-12)
    np.testing.assert_allclose(np.log1p(band.low), np.maximum(logs.low, 0), atol=1e-12)
    assert np.isfinite(band.high).all()
    assert (band.low >= 0).all()
    with pytest.raises(InputError, match="negative"):
        count_band(-counts)


def test_bands_of_counts_cover():
    draws, hits = rng(5), []
    pieces = -np.diff(np.geomspace(300.0, 0.5, 40), append=0.0)
    steps = draws.poisson(draws.gamma(4, 0.25, (600 * S, 1)) * pieces)
    counts = np.cumsum(steps[:, ::-1], axis=1)[:, ::-1]
    truth = np.expm1(np.log1p(counts).mean(axis=0))
    for i, sample in enumerate(counts.reshape(600, S, -1)):
        hits.append(covered(count_band(sample, resamples=FEW, seed=i), truth))
    assert 0.92 <= np.mean(hits) <= 0.99


# Frequencies


def test_exact_binomial_intervals_have_their_closed_forms():
    none, all_of_them = binomial_interval(0, 500), binomial_interval(500, 500)
    np.testing.assert_allclose(none[:3], [0, 0, 1 - 0.025 ** (1 / 500)])
    np.testing.assert_allclose(all_of_them[:3], [0.025 ** (1 / 500), 1, 1], rtol=1e-12)
    some = binomial_interval(7, 40, 0.9)
    np.testing.assert_allclose(stats.binom.sf(6, 40, some.low), 0.05)
    np.testing.assert_allclose(stats.binom.cdf(7, 40, some.high), 0.05)
    assert (some.middle, some.successes, some.trials) == (7 / 40, 7, 40)
    for successes, trials in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(InputError):
            binomial_interval(successes, trials)


def test_exact_binomial_intervals_cover_at_least_as_often_as_they_say():
    ends = np.array([binomial_interval(k, 30)[:3:2] for k in range(31)])
    for p in np.linspace(0.01, 0.99, 99):
        inside = (ends[:, 0] <= p) & (p <= ends[:, 1])
        assert stats.binom.pmf(np.arange(31), 30, p)[inside].sum() >= 0.95


# Paired comparisons


def test_the_words_of_a_comparison():
    b = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    a = b - [0.10, 0.11, 0.12, 0.12, 0.14, 0.15]
    pair = compare_pair(a, b, ("UOpt", "OptDual"))
    said = "is smaller by 0.12 [0.10, 0.15] on 6 of 6 seeds (sign test p = 0.031)"
    assert pair.words == "UOpt " + said
    assert (pair.smaller, pair.larger, pair.seeds, pair.outcome) == (6, 0, 6, "smaller")
    assert compare_pair(b, a).words == "A " + said.replace("smaller", "larger")
    assert compare_pair(b, b).words == "A and B agree on 6 of 6 seeds"
    told = compare_pair([0.0] * 6, [0.1, -0.1, 0.2, -0.3, 0.1, -0.1]).words
    assert told.startswith("A and B cannot be told apart: they differ by 0.0 [-0.2, 0.3]")
    few = compare_pair(a[:5], b[:5], ("UOpt", "OptDual"))
    said = "UOpt and OptDual: undecided, UOpt is smaller on 5 of 5 seeds; one comparison need"
    assert few.words.startswith(said)
    assert few.words.endswith("6 seeds")
    assert np.isnan(few.low)


def test_a_sentence_claims_a_difference_only_where_holm_allows_it():
    base = rng().normal(size=6)
    pairs = compare_all({"A": base, "B": base + 1, "C": base + 2})  # 3 x 2 / 64 = 0.094
    assert {pair.outcome for pair in pairs} == {"undecided"}
    assert seeds_needed(3) == 7
    assert "3 comparisons need 7 seeds" in pairs[0].words
    seven = rng().normal(size=7)
    pairs = compare_all({"A": seven, "B": seven + 1, "C": seven + 2})
    assert {pair.outcome for pair in pairs} == {"smaller"}
    # Alone it would be a difference (p = 0.03), among 45 it is none, though the interval says so.
    ten = rng(1).normal(size=(9, 12))
    one = dict(enumerate(map(str, range(10))))
    samples = {one[n]: row for n, row in enumerate(ten)}
    samples["9"] = ten[0] - np.where(np.arange(12) < 10, 1.0, -1.0)
    pair = next(p for p in compare_all(samples) if (p.first, p.second) == ("0", "9"))
    assert pair.sign_p < 0.05 < pair.holm_p
    assert pair.outcome == "not told apart"
    assert "cannot be told apart" in pair.words


def test_everything_against_one_in_every_measure():
    base = rng().normal(size=8)
    measured = {"regret": {"A": base, "B": base + 1}, "violation": {"A": base, "B": base - 1}}
    first, second = compare_with("A", measured)
    assert (first.first, first.second, first.measure) == ("B", "A", "regret")
    assert (first.outcome, second.outcome) == ("larger", "smaller")
    assert first.holm_p == 2 * first.sign_p
    assert first.words.startswith("B is larger in regret by 1")
    with pytest.raises(InputError, match="there is no C to compare with in regret: choose A, B"):
        compare_with("C", measured)
    with pytest.raises(InputError, match="at least two"):
        compare_with("A", {"regret": {"A": base}})


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [6, 10, 20])
def test_among_equal_algorithms_hardly_ever_is_a_difference_claimed(seeds):
    samples = np.exp(rng(seeds).standard_normal((TRIALS, 5, seeds)))
    claimed, excluded = 0, 0
    for each in samples:
        pairs = compare_all({str(n): values for n, values in enumerate(each)})
        claimed += any(pair.outcome in ("smaller", "larger") for pair in pairs)
        excluded += any(pair.low > 0 or pair.high < 0 for pair in pairs)
    assert claimed / TRIALS <= 0.05
    assert excluded / TRIALS > 0.1  # which is what intervals alone would claim


# Tails


def test_a_tail_warning_compares_the_two_tails_around_the_median():
    assert tail_warning([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]) == ""
    said = tail_warning([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 40.0])
    assert said.startswith("a heavy tail: of 7 samples the longer tail is 12.0 times the other")
    assert tail_warning([-6.0, -5.0, -4.0, -3.0, -2.0, -1.0, -40.0])
    assert "the only one" in tail_warning([1.0] * 9 + [2.0])
    assert tail_warning([3.0] * 8) == ""
    assert bca_interval([1.0, 2, 3, 4, 5, 6, 40], "mean").caution == said
    assert bca_interval([1.0, 2, 3, 4, 5, 6, 40], "median").caution == ""
    curves = np.exp(2.0 * ar1(rng(), (10, 30), 0.99))
    assert "at half of the points" in mean_band(curves).caution
    assert mean_band(np.log(curves)).caution == ""
    assert compare_pair([1.0, 2, 3, 4, 5, 6, 40], [0.0] * 7, statistic="mean").caution == said


@pytest.mark.parametrize(("samples", "found"), [(6, 0.45), (10, 0.73), (20, 0.96)])
def test_the_tail_warning_finds_what_it_says(samples, found):
    normal = rng(1).normal(size=(TRIALS, samples))
    shares = [np.mean([bool(tail_warning(x)) for x in of(normal)]) for of in (np.asarray, np.exp)]
    assert shares == pytest.approx([0.1, found], abs=0.04)


@pytest.mark.slow
@pytest.mark.parametrize("seeds", [6, 10, 20])
def test_heavy_tails_break_the_intervals_of_means_and_not_those_of_medians(seeds):
    stated = {6: (0.85, 0.68), 10: (0.88, 0.70), 20: (0.90, 0.75)}[seeds]
    normal = rng(seeds).standard_normal((600, seeds))
    for samples, mean, median, said in (
        (np.exp(normal), np.exp(0.5), 1.0, stated[0]),
        (stats.norm.sf(normal) ** (-1 / 1.5), 3.0, 2.0 ** (1 / 1.5), stated[1]),
    ):
        found = [bca_interval(x, "mean", resamples=999, seed=i) for i, x in enumerate(samples)]
        assert np.mean([i.low <= mean <= i.high for i in found]) == pytest.approx(said, abs=0.05)
        exact = [median_interval(x) for x in samples]
        assert np.mean([i.low <= median <= i.high for i in exact]) >= 0.935


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "said"), [(6, 0.58), (10, 0.74), (20, 0.89)])
def test_heavy_tails_break_the_band_of_means_and_not_that_of_medians(seeds, said):
    curves = np.exp(ar1(rng(seeds), (400, seeds, T)))
    means = [mean_band(y, resamples=FEW, seed=i) for i, y in enumerate(curves)]
    hits = [covered(band, np.full(T, np.exp(0.5))) for band in means]
    assert np.mean(hits) == pytest.approx(said, abs=0.07)
    medians = [strongest_median_band(y) for y in curves]
    whole = [covered(band, np.ones(T)) for band in medians if band.at_once]
    assert not whole or np.mean(whole) >= 0.92
    inside = [(band.low <= 1.0) & (band.high >= 1.0) for band in medians]
    assert np.mean(inside) >= 0.94


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "said"), [(6, 0.47), (10, 0.65), (20, 0.88)])
def test_one_bad_instance_in_ten_breaks_the_band_of_geometric_means(seeds, said):
    draws = rng(seeds)
    bad = np.where(draws.random((400, seeds, 1)) < 0.1, 30.0, 1.0)
    counts = bad * draws.gamma(100, 0.01, bad.shape) * np.geomspace(3e4, 50.0, T)
    many = np.where(np.arange(10_000) < 1000, 30.0, 1.0) * rng(9).gamma(100, 0.01, 10_000)
    of_all = many[:, None] * np.geomspace(3e4, 50.0, T)
    truth, middle = np.expm1(np.log1p(of_all).mean(axis=0)), np.median(of_all, axis=0)
    hits = [covered(count_band(y, resamples=FEW, seed=i), truth) for i, y in enumerate(counts)]
    assert np.mean(hits) == pytest.approx(said, abs=0.08)  # 1 - 0.9^S: whether one was seen
    assert np.mean([covered(strongest_median_band(y), middle) for y in counts]) >= 0.93


def test_pairing_removes_what_seeds_have_in_common():
    luck = 100 * rng().normal(size=S)
    a, b = luck + rng(1).normal(size=S), luck + rng(2).normal(size=S) + 3
    pair = compare_pair(a, b, statistic="mean")
    assert -5 < pair.low < pair.difference < pair.high < -1
    np.testing.assert_allclose(pair.difference, np.mean(a - b))
    swapped = compare_pair(b, a, statistic="mean")
    assert (swapped.smaller, swapped.sign_p) == (pair.larger, pair.sign_p)


def test_pairs_need_the_same_seeds():
    first, second = by_common_seed({3: 0.3, 1: 0.1}, {1: 1.0, 3: 3.0})
    np.testing.assert_array_equal([first, second], [[0.1, 0.3], [1.0, 3.0]])
    with pytest.raises(InputError, match="only one of the two has: 2, 3"):
        by_common_seed({1: 0.0, 2: 0.0}, {1: 0.0, 3: 0.0})
    with pytest.raises(InputError, match="A has 2 seeds and B has 3"):
        compare_pair([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match="the values of B must be finite"):
        compare_pair([1, 2], [1, np.nan])
    with pytest.raises(InputError, match="choose from median, mean"):
        compare_pair([1, 2], [2, 3], statistic="mode")
    assert compare_pair([1], [2]).outcome == "undecided"
    with pytest.raises(InputError, match="at least two algorithms"):
        compare_all({"A": [1, 2]})


def test_sign_tests_are_exact():
    assert sign_test([-1, -2, -3, -1, -5]) == 2 / 32
    assert sign_test([1, 1, -1, 0, 0]) == 1.0
    assert sign_test([0, 0]) == 1.0
    values = rng().normal(0.5, 1.0, 30)
    expected = stats.binomtest(int((values > 0).sum()), 30).pvalue
    np.testing.assert_allclose(sign_test(values), expected)


def test_signed_rank_tests_are_exact_with_ties_too():
    for n in (1, 5, 12, 40):
        values = rng(n).normal(0.3, 1.0, n)
        np.testing.assert_allclose(
            signed_rank_test(values), stats.wilcoxon(values, method="exact").pvalue
        )
    tied = np.array([1.0, 1.0, -1.0, 2.0, 2.0, 3.0])  # mean ranks 2 2 2 4.5 4.5 6
    signs = np.array(np.meshgrid(*[[0, 1]] * 6)).reshape(6, -1)
    sums = np.array([2, 2, 2, 4.5, 4.5, 6]) @ signs
    np.testing.assert_allclose(signed_rank_test([*tied, 0.0]), 2 * np.mean(sums >= 19))
    assert signed_rank_test([0.0, 0.0]) == 1.0


def test_holm_is_the_worked_example_and_never_below_the_plain_p():
    np.testing.assert_allclose(holm([0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02])
    assert holm([0.7, 0.9]).max() == 1.0
    with pytest.raises(InputError):
        holm([0.5, 1.5])
    base = rng().normal(size=12)
    pairs = compare_all({"A": base, "B": base + 1, "C": base + rng(1).normal(size=12)})
    assert [(p.first, p.second) for p in pairs] == [("A", "B"), ("A", "C"), ("B", "C")]
    np.testing.assert_allclose([p.holm_p for p in pairs], holm([p.sign_p for p in pairs]))
    assert "p = 0.0015 after Holm over 3 comparisons" in pairs[0].words


# Exponents


def test_the_exponent_of_a_power_law_is_its_exponent():
    x = np.geomspace(1e-3, 1.0, 50)
    fit = fit_exponent(x, np.arange(1.0, 7.0)[:, None] * x**-2.5)
    np.testing.assert_allclose(fit[:3], [-2.5] * 3, rtol=1e-12)
    assert fit[3:] == (50, 6, "", False)
    bent = np.where(x < 0.1, x**-1.0, 0.1 * x**-2.0) * [[1.0], [2.0]]
    np.testing.assert_allclose(fit_exponent(x, bent, (0.0, 0.099)).slope, -1.0)
    np.testing.assert_allclose(fit_exponent(x, bent, (0.1, 1.0)).slope, -2.0)


def test_the_interval_of_an_exponent_is_over_runs_not_points():
    x = np.geomspace(1.0, 1e4, 100)
    slopes = rng().normal(0.6, 0.1, 10)
    fit = fit_exponent(x, x ** slopes[:, None])
    fine = np.geomspace(1.0, 1e4, 2000)
    finer = fit_exponent(fine, fine ** slopes[:, None])
    over_runs = bca_interval(slopes, "mean")
    np.testing.assert_allclose(fit[:3], [over_runs.middle, over_runs.low, over_runs.high])
    np.testing.assert_allclose(fit[:3], finer[:3], rtol=1e-9)
    rescaled = fit_exponent(7 * x, 1e-3 * rng(1).permutation(x ** slopes[:, None]))
    np.testing.assert_allclose(fit[:3], rescaled[:3], rtol=1e-9)


def test_few_runs_have_an_exponent_and_no_interval():
    x = np.geomspace(1.0, 100.0, 20)
    for runs in range(1, FEWEST):
        fit = fit_exponent(x, np.arange(1.0, runs + 1.0)[:, None] * x**0.7)
        assert fit.slope == pytest.approx(0.7)
        assert np.isnan([fit.low, fit.high]).all()
        assert (fit.seeds, fit.why_not) == (runs, "")


def test_a_bent_curve_has_its_last_slope_and_calls_it_local():
    x = np.geomspace(1.0, 100.0, 9)
    runs = np.arange(1.0, 7.0)[:, None]
    fit = power_law(x, runs * np.where(x < 10.0, x**1.7, 10.0**0.2 * x**1.5))
    assert fit.local
    np.testing.assert_allclose(fit[:3], 1.5)
    whole = power_law(x, runs * x**1.5)
    assert not whole.local
    np.testing.assert_allclose(whole[:3], 1.5)
    assert power_law(x[:3], runs * x[:3]).local  # too few slopes to agree
    assert power_law(x, runs * (x - 1.0)).why_not == "not positive at x = 1"
    with pytest.raises(InputError, match="do not fit"):
        power_law(x[1:], runs * x)


def test_slopes_that_drift_in_every_run_do_not_agree_however_runs_differ():
    # Intervals over runs are wide and overlap; within each run the slope falls from 1.2 to 1.
    x = np.geomspace(1.0, 256.0, 9)
    slopes = np.linspace(0.5, 1.5, 8)[:, None] + np.linspace(0.1, -0.1, 8)
    y = np.exp(np.cumsum(np.hstack([np.zeros((8, 1)), slopes * np.log(2.0)]), axis=1))
    assert power_law(x, y).local


def test_no_exponent_where_the_data_carry_none():
    x = np.geomspace(1.0, 100.0, 20)
    y = np.array([[1.0], [2.0]]) * x
    zero = y.copy()
    zero[1, 7] = 0.0
    for fit, why in (
        (fit_exponent(x, y, (1.0, 5.0)), "only 7 points"),
        (fit_exponent(np.linspace(1.0, 3.0, 20), y), "only 0.48 decades"),
        (fit_exponent(x, zero), "not positive at 1 of 20 points"),
        (fit_exponent(x, y, (200.0, 300.0)), "only 0 points"),
    ):
        assert why in fit.why_not
        assert np.isnan(fit[:3]).all()
    with pytest.raises(InputError, match="do not fit"):
        fit_exponent(x[1:], y)
    with pytest.raises(InputError, match="is empty"):
        fit_exponent(x, y, (2.0, 1.0))
