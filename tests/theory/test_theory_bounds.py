"""The constants, exponents and orders of the theory, and conversions between kinds of bounds."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.schedules import Constant, Setting
from cmdplab.algorithms.uopt_rpgpd import UOPT_RPGPD
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.errors import InputError
from cmdplab.theory import bounds, constants, conversions
from cmdplab.theory.bounds import COROLLARY, EXPERIMENT, Exponents
from cmdplab.theory.conversions import UniformPac

ONE = Setting(X=1, A=1, H=1, N=0, K=1, delta=0.1, slack=math.inf)
SMALL = Setting(X=3, A=1, H=2, N=1, K=1, delta=0.1, slack=1.0)

inside = st.tuples(st.floats(0.51, 0.9), st.floats(0.02, 0.9)).map(
    lambda pair: Exponents(pair[0], pair[1] * (0.99 - pair[0]))
)


def test_constants_by_hand():
    # A = 1, so H_ent = H = 2; b_gap = 1.
    assert constants.entropy_horizon(SMALL) == 2.0
    found = constants.constants(SMALL)
    assert found == (72.0, 2.0, 8.0, 2)
    assert found.combined(1.0) == 82.0
    assert found.combined(0.5) == 80.5
    assert found.summed_over_steps(1.0) == 2 * 74.0 + 8.0
    assert constants.first_potential_bound(SMALL) == 2.0
    # The paper's size: H_ent = 10 (1 + ln 3).
    paper = Setting(X=30, A=3, H=10, N=1, K=1, delta=0.1, slack=2.0)
    H_ent = 20.98612288668110
    assert constants.entropy_horizon(paper) == pytest.approx(H_ent, rel=1e-15)
    assert constants.constants(paper).first == pytest.approx(2 * H_ent**2 * 36.0)
    assert constants.constants(paper).third == pytest.approx(0.5 * (10 + H_ent / 2) ** 2)


def test_without_constraints_nothing_depends_on_a_slater_gap():
    found = constants.constants(ONE)
    assert found == (2.0, 2.0, 0.0, 1)
    assert constants.multiplier_bound(ONE, 0.3) == 0.0
    assert constants.first_potential_bound(ONE) == 0.0


def test_multiplier_bounds_by_hand():
    s = SMALL._replace(A=3, slack=0.5)
    assert constants.multiplier_bound(s, 0.0) == 4.0
    assert constants.multiplier_bound(s, 2.0) == pytest.approx(4.0 * (1 + 2 * math.log(3)))
    assert constants.violation_bound(s, 0.5) == pytest.approx(2.0 * (1 + 0.5 * math.log(3)))


def test_settings_come_from_problems_and_are_checked():
    problem = random_problem(4, 3, 2, 1)
    assert constants.setting_of(problem, 0.5, 0.2)[:7] == (4, 3, 2, 1, 1, 0.2, 0.5)
    with pytest.raises(InputError, match="Slater"):
        constants.setting_of(problem, 0.0)
    with pytest.raises(InputError, match="delta"):
        constants.setting_of(problem, 1.0, 0.0)


@pytest.mark.parametrize("states", [2, 3, 10, 50])
def test_the_logarithm_of_a_power_of_two_less_two(states):
    assert constants.log_power_of_two_less_two(states) == pytest.approx(
        math.log(2**states - 2), rel=1e-14
    )


def test_that_logarithm_at_the_ends():
    assert constants.log_power_of_two_less_two(1) == -math.inf
    assert constants.log_power_of_two_less_two(10**6) == pytest.approx(10**6 * math.log(2))
    with pytest.raises(InputError):
        constants.log_power_of_two_less_two(0)


def test_the_region_of_the_theorem():
    assert not bounds.outside_theorem(EXPERIMENT)
    assert not bounds.outside_theorem(COROLLARY)
    for wrong in [(0.5, 0.4), (0.6, 0.4), (0.9, 0.2), (1.0, 0.1)]:
        assert "outside" in bounds.outside_theorem(Exponents(*wrong))
        with pytest.raises(InputError, match="outside"):
            bounds.regret_exponent(Exponents(*wrong))


def test_exponents_are_those_of_the_row():
    assert bounds.exponents_of(UOPT_RPGPD) == EXPERIMENT
    assert bounds.exponents_of(algorithm("UOpt-RPGPD-corollary", "printed")) == COROLLARY
    with pytest.raises(InputError, match="powers of k"):
        bounds.exponents_of(replace(UOPT_RPGPD, temperature=Constant(0.1)))


def test_exponents_by_hand():
    assert bounds.mistake_exponents(COROLLARY) == pytest.approx((7.0, 7.0))
    assert bounds.regret_exponent(COROLLARY) == pytest.approx(6 / 7)
    assert bounds.mistake_exponents(EXPERIMENT) == pytest.approx((66.6667, 2.5), rel=1e-5)
    assert bounds.regret_exponent(EXPERIMENT) == pytest.approx(0.985)


@given(exponents=inside)
def test_the_regret_exponent_is_the_smaller_of_two(exponents):
    alpha_eta, alpha_tau = exponents
    expected = 1.0 - min((alpha_eta - 0.5) / 2.0, alpha_tau)
    assert bounds.regret_exponent(exponents) == pytest.approx(expected)


def test_the_burn_in_by_hand():
    # c = 1/4: (96 ln 48)^4 fits a float.
    assert math.exp(bounds.log_burn_in(Exponents(0.6, 0.15))) == pytest.approx(
        (96.0 * math.log(48.0)) ** 4
    )
    assert bounds.log10_burn_in(EXPERIMENT) == pytest.approx(46.4, abs=0.1)
    assert bounds.log10_burn_in(COROLLARY) == pytest.approx(45.3, abs=0.1)


@given(exponents=inside)
def test_from_the_burn_in_on_powers_beat_logarithms(exponents):
    # Lemma F.13: k^c >= 12 ln k for k >= k*; checked as c ln k >= ln(12 ln k).
    c = 1.0 - sum(exponents)
    for beyond in (1.0, 1.5, 10.0):
        log_k = beyond * bounds.log_burn_in(exponents)
        assert c * log_k >= math.log(12.0 * log_k)


def test_orders_of_mistakes_by_hand():
    # Everything 1: eps^-2/(alpha_eta - 1/2), eps^-1/alpha_tau, k*.
    at = bounds.log_mistakes_order(ONE, COROLLARY, 0.1)
    assert at[:2] == pytest.approx((7 * math.log(10), 7 * math.log(10)))
    assert at.burn_in == bounds.log_burn_in(COROLLARY)
    assert at.total == pytest.approx(math.log(2e7 + math.exp(at.burn_in)))
    # The corollary before it was rounded up: b_gap^-7 (1+N)^7/2 X^7/2 A^7/4 H^49/2 eps^-7.
    s = Setting(X=30, A=3, H=10, N=2, K=1, delta=0.1, slack=0.5)
    expected = 7 * math.log(2) + 3.5 * math.log(3 * 30) + 1.75 * math.log(3) + 24.5 * math.log(10)
    first = bounds.log_mistakes_order(s, COROLLARY, 1.0)
    assert first.optimisation == pytest.approx(expected)
    assert first.bias == pytest.approx(7 * math.log(20))


def test_a_large_slater_gap_does_not_lower_the_bias():
    near, far = (SMALL._replace(slack=gap) for gap in (1.0, 2.0))
    orders = [bounds.log_mistakes_order(s, COROLLARY, 0.1) for s in (near, far)]
    assert orders[0].bias == orders[1].bias
    assert orders[0].optimisation > orders[1].optimisation


@given(exponents=inside, log_k=st.floats(0.0, 200.0), gap=st.floats(0.01, 2.0))
def test_orders_of_regret_are_the_conversion_of_orders_of_mistakes(exponents, log_k, gap):
    # Z eps^-a becomes Z^(1/a) K^(1 - 1/a).
    s = SMALL._replace(slack=gap)
    regret = bounds.log_regret_order(s, exponents, math.exp(log_k))
    mistakes = bounds.log_mistakes_order(s, exponents, 1.0)
    for log_regret, log_Z, a in zip(
        regret[:2], mistakes[:2], bounds.mistake_exponents(exponents), strict=True
    ):
        assert log_regret == pytest.approx(log_Z / a + (1 - 1 / a) * log_k, abs=1e-9)


def test_other_orders_by_hand():
    half = SMALL._replace(slack=0.5)
    # (2 * 3 * 16 * 4 / 0.1)^(7/2), and k*.
    expected = np.logaddexp(3.5 * math.log(3840.0), bounds.log_burn_in(COROLLARY))
    assert bounds.log_potential_order(half, COROLLARY, 0.1) == pytest.approx(expected)
    # 9 * 16 / 0.01 + 3 * 8 / 0.1
    assert bounds.log_optimism_order(SMALL, 0.1) == pytest.approx(math.log(14400 + 240))
    # (2 / (0.1 * 0.5))^7
    assert bounds.log_bias_episodes(half, COROLLARY, 0.1) == pytest.approx(7 * math.log(40))
    with pytest.raises(InputError, match="epsilon"):
        bounds.log_optimism_order(SMALL, 0.0)


def test_after_the_bias_episodes_the_bias_is_below_epsilon():
    s = SMALL._replace(A=4, slack=0.25)
    k = math.ceil(math.exp(bounds.log_bias_episodes(s, Exponents(0.6, 0.3), 0.2)))
    tau = (k + 3) ** -0.3
    assert tau * constants.entropy_horizon(s) / 0.25 <= 0.2


gaps_of = st.lists(st.floats(-2.0, 5.0), min_size=1, max_size=60).map(np.array)


def test_mistakes_by_hand():
    gaps = np.array([0.5, -1.0, 0.2, 0.5, 3.0])
    np.testing.assert_array_equal(
        conversions.mistake_counts(gaps, np.array([0.0, 0.2, 0.4999, 0.5, 3.0])), [4, 3, 3, 1, 0]
    )
    assert conversions.regret_from_mistakes(gaps) == pytest.approx(4.2)


@given(gaps=gaps_of)
def test_strong_regret_is_the_integral_of_the_mistakes(gaps):
    strong = np.maximum(gaps, 0.0).sum()
    assert conversions.regret_from_mistakes(gaps) == pytest.approx(strong, abs=1e-12)


@given(gaps=gaps_of, points=st.integers(1, 80))
def test_a_grid_of_counts_encloses_the_regret(gaps, points):
    grid = np.geomspace(1e-4, 5.0, points)
    counts = conversions.mistake_counts(gaps, grid)
    interval = conversions.regret_from_grid(grid, counts, len(gaps), 5.0)
    strong = np.maximum(gaps, 0.0).sum()
    assert interval.lower - 1e-9 <= strong <= interval.upper + 1e-9
    finer = np.union1d(grid, np.geomspace(2e-4, 4.9, 50))
    narrow = conversions.regret_from_grid(
        finer, conversions.mistake_counts(gaps, finer), len(gaps), 5.0
    )
    assert interval.lower <= narrow.lower + 1e-9
    assert narrow.upper <= interval.upper + 1e-9


def test_grids_that_make_no_sense_are_refused():
    for grid, counts in [([], []), ([1.0], [3]), ([2.0, 1.0], [1, 0]), ([1.0, 2.0], [0, 1])]:
        with pytest.raises(InputError):
            conversions.regret_from_grid(np.array(grid), counts, 2, 5.0)


def test_a_uniform_pac_bound_by_hand():
    bound = UniformPac(math.log(2.0), exponent=3.0, delta=0.1)
    assert conversions.pac_log_episodes(bound, 0.1) == pytest.approx(math.log(2000.0))
    # u = 1, K = 2000: e = 0.1, regret <= 2000 e + 2 (0.1^-2 - 1) / 2 + 1 = 200 + 99 + 1.
    assert math.exp(conversions.log_regret(bound, 2000, 1.0)) == pytest.approx(300.0)
    # Few episodes: nothing is better than K u.
    assert math.exp(conversions.log_regret(bound, 2, 1.0)) == pytest.approx(2.0)
    logarithmic = UniformPac(0.0, exponent=2.0, delta=0.1, log_range=3.0, log_power=2.0)
    assert math.exp(logarithmic.log_mistakes(math.exp(-1))) == pytest.approx(math.e**2 * 16.0)


@given(
    log_scale=st.floats(-2.0, 3.0),
    exponent=st.floats(1.0, 8.0),
    beta=st.floats(0.0, 2.0),
    episodes=st.integers(1, 3000),
)
@example(log_scale=1.0, exponent=1.5, beta=1.0, episodes=1)
def test_the_worst_sequence_that_a_bound_allows_stays_below_its_regret(
    log_scale, exponent, beta, episodes
):
    u = 4.0
    log_range = max(math.log(u), 1.0, 1.0 + log_scale / exponent)
    bound = UniformPac(log_scale, exponent, 0.1, log_range, beta)
    # The i-th largest gap may be as large as ceil(F(eps)) >= i allows.
    grid = np.geomspace(1e-6, u * (1 - 1e-9), 4000)
    allowed = np.ceil(np.exp([bound.log_mistakes(eps) for eps in grid]))
    gaps = [grid[allowed >= i].max(initial=0.0) for i in range(1, episodes + 1)]
    assert sum(gaps) <= math.exp(conversions.log_regret(bound, episodes, u)) * (1 + 1e-9)


@given(log_scale=st.floats(-600.0, 600.0), exponent=st.floats(1.0, 70.0), log_u=st.floats(-9, 9))
def test_the_smallest_range_that_converts_is_accepted_however_it_is_rounded(
    log_scale, exponent, log_u
):
    needed = max(log_u, 1.0, 1.0 + log_scale / exponent)
    for log_range in (needed, needed * (1.0 - 4e-16), needed * (1.0 + 4e-16)):
        bound = UniformPac(log_scale, exponent, 0.1, log_range, 1.0)
        for episodes in (1, 1000):
            assert math.isfinite(conversions.log_settled_level(bound, episodes))
            assert math.isfinite(conversions.log_regret(bound, episodes, math.exp(log_u)))
    short = UniformPac(log_scale, exponent, 0.1, needed - 1e-6, 1.0)
    with pytest.raises(InputError, match="Z_2"):
        conversions.log_regret(short, 1, math.exp(log_u))


@given(log_scale=st.floats(-2.0, 3.0), exponent=st.floats(0.3, 8.0), beta=st.floats(0.0, 2.0))
def test_all_but_so_many_episodes_come_below_a_level_that_falls_to_zero(log_scale, exponent, beta):
    bound = UniformPac(log_scale, exponent, 0.1, 2.0 + log_scale / exponent, beta)
    levels = [conversions.log_settled_level(bound, K) for K in (1, 10, 1e3, 1e6, 1e300)]
    assert levels[-1] < levels[0]
    for K, level in zip((10, 1e3, 1e6, 1e300), levels[1:], strict=True):
        if level < bound.log_range:
            assert bound._log_mistakes(level) <= np.log(K) + 1e-9
    assert conversions.log_settled_level(UniformPac(0.0, 2.0, 0.1), 100) == pytest.approx(
        math.log(0.1)
    )


@given(log_scale=st.floats(0.0, 500.0), exponent=st.floats(1.1, 70.0))
def test_regret_grows_with_the_power_of_the_theorem(log_scale, exponent):
    bound = UniformPac(log_scale, exponent, 0.1)
    early, late = log_scale + 50.0 * exponent, log_scale + 60.0 * exponent
    episodes = [math.exp(each) for each in (early, late) if each < 700]
    if len(episodes) == 2:
        slope = np.diff([conversions.log_regret(bound, K, 1.0) for K in episodes])[0]
        assert slope / (late - early) == pytest.approx(1 - 1 / exponent, abs=0.05)


def test_bounds_that_do_not_convert_are_refused():
    with pytest.raises(InputError, match="at least 1"):
        conversions.log_regret(UniformPac(0.0, 0.5, 0.1), 10, 1.0)
    with pytest.raises(InputError, match="Z_2"):
        conversions.log_regret(UniformPac(9.0, 1.0, 0.1, 1.0, 1.0), 10, 1.0)
    with pytest.raises(InputError, match="below the range"):
        UniformPac(0.0, 1.0, 0.1, 1.0, 1.0).log_mistakes(9.0)
    with pytest.raises(InputError, match="delta"):
        UniformPac(0.0, 1.0, 2.0)
