"""Each formula against a number worked out by hand."""

from __future__ import annotations

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cmdplab.algorithms import FIGURE_1, algorithm, confidence, equations as eq
from cmdplab.algorithms.families import planner
from cmdplab.algorithms.families.primal_dual import OPTIMISTIC_CAP, UNIFORM_ROW
from cmdplab.algorithms.running import boxes
from cmdplab.algorithms.schedules import Setting

PAPER = Setting(X=30, A=3, H=10, N=1, K=100_000, delta=0.1, slack=4.8)


def test_iterated_log_is_zero_until_e():
    assert eq.iterated_log(0.0) == eq.iterated_log(2.0) == 0.0
    assert eq.iterated_log(math.exp(math.e)) == pytest.approx(1.0)


def test_confidence_radius():
    # n = 4: llnp(8) = ln(ln 8) = 0.7320993; (2 * 0.7320993 + 3) / 4 = 1.1160497
    assert eq.confidence_radius(4.0, 2.0, 3.0, math.inf) == pytest.approx(math.sqrt(1.1160497))
    assert eq.confidence_radius(4.0, 2.0, 3.0, 1.0) == 1.0
    assert eq.confidence_radius(0.0, 2.0, 3.0, math.inf) == math.sqrt(3.0)


def test_uniform_pac_bonus_as_printed():
    # A row concentrated on one state: S = 1, so beta = 2 phi + 5 * 30 * phi^2.
    b = confidence.uniform_pac(PAPER)
    assert b.log == pytest.approx(2 * math.log(48 * 900 * 3 * 10 / 0.1))
    beta = eq.bonus(0.1, 1.0, 0.0, b.root, b.dev, b.flat, b.tail)
    assert beta == pytest.approx(2 * 0.1 + 150 * 0.01)


def test_uniform_pac_bonus_as_released():
    b = confidence.uniform_pac_released(PAPER)
    assert eq.bonus(0.1, 1.0, 0.0, b.root, b.dev, b.flat, b.tail) == pytest.approx(0.1 + 0.05)


def test_naive_bonuses():
    printed, released = (
        confidence.bernstein_bonus(PAPER),
        confidence.bernstein_bonus_released(PAPER),
    )
    assert printed.log == pytest.approx(math.log(4 * 900 * 3 * 10 * 1e5 / 0.1))
    assert released.log == pytest.approx(math.log(6 * 30 * 3 * 10 * 1e5 / 0.1))
    assert (printed.dev, printed.tail) == (2.0, pytest.approx(140.0))
    assert (released.dev, released.tail) == (10.0, pytest.approx(1400.0))


def beta_of(make, n, row):
    b = make(PAPER)
    phi = eq.confidence_radius(n, b.iterated, b.log, math.inf)
    sums = float(np.sqrt(row).sum()), float(np.sqrt(row * (1 - row)).sum())
    return eq.bonus(phi, *sums, b.root, b.dev, b.flat, b.tail)


@pytest.mark.parametrize(
    ("n", "released", "printed"),
    [(1, 185, 0.72), (100, 96, 0.66), (1000, 49, 0.66), (10**4, 23, 0.68), (10**6, 8.7, 0.73)],
)
def test_the_naive_bonus_over_the_uniform_pac_one_is_what_the_deviations_say(n, released, printed):
    draws = np.random.default_rng(0)
    rows = [draws.multinomial(n, row) / n for row in draws.dirichlet(np.full(30, 0.1), 200)]
    for naive, uniform, said in (
        (confidence.bernstein_bonus_released, confidence.uniform_pac_released, released),
        (confidence.bernstein_bonus, confidence.uniform_pac, printed),
    ):
        ratios = [beta_of(naive, n, row) / beta_of(uniform, n, row) for row in rows]
        assert np.median(ratios) == pytest.approx(said, rel=0.05)


def test_the_presets_of_uopt_rpgpd_differ_in_nine_places():
    printed, released = (algorithm("UOpt-RPGPD", preset) for preset in ("printed", "released"))
    a, b = confidence.uniform_pac(PAPER), confidence.uniform_pac_released(PAPER)
    places = {f"bonus.{name}" for name in a._fields if getattr(a, name) != getattr(b, name)}
    names = [each.name for each in fields(printed)]
    places |= {name for name in names if getattr(printed, name) != getattr(released, name)}
    schedules = {"policy_step", "dual_step", "temperature"}  # one place: row 11
    assert schedules <= places
    said = {"preset", "bonus", "needs", "guarantee", "provenance", "unverified"}
    changed = places - schedules - said | {"shift"}
    assert changed == {
        "bonus.root", "bonus.tail", "bonus_multiplier", "unvisited", "entropy_weighting",
        "terminal_entropy", "dual_lookahead", "dual_cap", "shift",
    }  # fmt: skip
    assert len(changed) == 9


def test_the_naive_bonus_of_appendix_c_taken_literally():
    b, n = confidence.appendix_c_bonus(PAPER), 50.0
    phi = eq.confidence_radius(n, b.iterated, b.log, math.inf)
    log = math.log(1e5 / 0.1)
    beta = eq.bonus(phi, 3.0, 2.0, b.root, b.dev, b.flat, b.tail)
    assert beta == pytest.approx(log / n + math.sqrt(log / n))


def test_action_value_is_capped_and_survives_an_infinite_bonus():
    assert eq.action_value(0.5, 2.0, 0.1, 1.0, 9.0) == pytest.approx(1.7)
    assert eq.action_value(0.5, 2.0, math.inf, 1.0, 9.0) == 9.0


def test_entropy_printed_and_released():
    # pi = (.7, .2, .1): the printed entropy is .802, the notebook's .262 (weighted by pi twice).
    pi = (0.7, 0.2, 0.1)
    for weighting, entropy in ((0.0, 0.8018186), (1.0, 0.2621735)):
        total = sum(eq.policy_term(p, math.log(p), 0.0, 1.0, weighting) for p in pi)
        assert total == pytest.approx(-sum(p ** (1 + weighting) * math.log(p) for p in pi))
        assert total == pytest.approx(entropy, abs=1e-6)


def test_an_action_of_probability_zero_has_no_entropy():
    assert eq.policy_term(0.0, -5000.0, 3.0, 0.5, 0.0) == 0.0


def test_deviation_and_the_range_of_regularised_rewards():
    assert eq.deviation(0.2) == pytest.approx(0.4)  # sqrt(0.2 * 0.8)
    assert eq.deviation(1.0) == 0.0
    assert eq.entropy_range(0.5, math.log(3)) == pytest.approx(1 + 0.5 * 1.0986123)


def test_what_stands_for_a_pair_that_was_never_visited():
    assert eq.count_weight(3.0, 1.0, 0.2) == 0.25
    assert eq.count_weight(0.0, 1.0, 0.2) == 0.2
    assert eq.unvisited_bonus(0.5, 0.0, 2.0) == 2.5
    assert eq.unvisited_bonus(0.5, 1.0, math.inf) == 0.5


def test_entropy_goes_with_the_objective_only():
    assert [eq.reward_temperature(n, 0.3) for n in range(3)] == [0.3, 0.0, 0.0]


def test_an_action_is_drawn_by_inverse_cdf():
    assert eq.draw_step(1, 0.25, 0.6, 0.5, 0) == (0.75, 1, True)
    assert eq.draw_step(1, 0.25, 0.75, 0.5, 0) == (0.75, 1, False)
    assert eq.draw_step(2, 0.0, 0.6, 0.5, 1) == (0.5, 1, False)  # no mass: never drawn


def test_the_ends_of_a_box_by_hand():
    assert boxes.box_half(1.0, 0.25, 7.0) == 0.25
    assert boxes.box_half(1.0, 0.25, 0.0) == 1.0
    assert boxes.box_half(0.0, 0.25, 0.0) == 0.0
    assert boxes.box_ends(0.5, 0.25, 1.0) == (0.25, 0.75)
    assert boxes.box_ends(0.125, 0.25, 1.0) == (0.0, 0.375)
    assert boxes.box_ends(0.5, 0.25, 0.0) == (0.0, 0.0)  # a state that cannot follow


def test_rules_of_a_planner_by_hand():
    assert planner.signal(0.5, 2.0, 0.25, 4.0, 0.125) == 0.5
    assert planner.safe_target(3.0, 5.0, 0.5) == 4.0
    doubling = (1.0, 1.0, math.inf)
    assert [planner.asks_for_plan(n, 4.0, *doubling) for n in (7.0, 8.0)] == [False, True]
    assert not planner.asks_for_plan(8.0, 4.0, 1.0, 1.0, 4.0)  # often enough: no longer asked


def test_schedules_and_the_dual_cap():
    k = np.array([1.0, 2.0, 97.0])
    printed, released = (algorithm("UOpt-RPGPD", p) for p in ("printed", "released"))
    np.testing.assert_allclose(printed.policy_step(k, PAPER), [4**-0.53, 5**-0.53, 100**-0.53])
    np.testing.assert_allclose(released.temperature(k, PAPER), [3**-0.4, 4**-0.4, 99**-0.4])
    assert printed.dual_cap(PAPER) == pytest.approx(10 / 4.8)
    assert released.dual_cap(PAPER) == math.inf
    # OptPrimalDual: t and t' of its docstring, with rho = H / slack = 10 / 4.8
    rho, steps = 10 / 4.8, algorithm("OptPrimalDual-CMDP", "printed")
    t = math.sqrt(2 * math.log(3) / (100 * (1 + rho) ** 2 * 1e5))
    np.testing.assert_allclose(steps.policy_step(k, PAPER), t)
    np.testing.assert_allclose(steps.dual_step(k, PAPER), rho / (10 * math.sqrt(1e5)))


def test_what_scales_with_the_range_of_values():
    assert eq.bonus_weight(10.0, 0.5, math.log(3)) == pytest.approx(10 * (1 + 0.5 * 1.0986123))
    assert eq.bonus_weight(10.0, 0.0, math.log(3)) == 10.0
    assert eq.value_cap(4, 0.5, math.log(3)) == pytest.approx(4 * (1 + 0.5 * 1.0986123))
    assert eq.multiplier_cap(2.0, 0.5, math.log(3)) == pytest.approx(2 * (1 + 0.5 * 1.0986123))
    assert (eq.seen_value(1.0, 3.0, 0.0), eq.seen_value(1.0, 3.0, 1.0)) == (1.0, 3.0)


def test_printed_and_released_rows_are_what_the_documents_say():
    for name in FIGURE_1:
        printed, released = algorithm(name, "printed"), algorithm(name, "released")
        assert (printed.unvisited, released.unvisited) == (OPTIMISTIC_CAP, UNIFORM_ROW)
        for field in ("entropy_weighting", "terminal_entropy", "dual_lookahead"):
            assert (getattr(printed, field), getattr(released, field)) == (0.0, 1.0)
        assert printed.bonus_multiplier(PAPER) == (10.0, pytest.approx(math.log(3)))
        assert released.bonus_multiplier(PAPER) == (1.0, 0.0)
        for row in (printed, released):
            assert (row.bonus_scale, row.delta, row.tuned_for) == (1e-3, 0.1, 100_000)
            assert row.radius_cap == math.inf
    exact = algorithm("UOpt-RPGPD-corollary", "printed")
    assert (exact.policy_step.exponent, exact.temperature.exponent) == (11 / 14, 1 / 7)
    assert exact.outside_theorem() == ""
    assert algorithm("UOpt-RPGPD", "printed").outside_theorem() == ""
    assert "outside the region" in algorithm("UOpt-RPGPD-1/k", "printed").outside_theorem()
    assert algorithm("No-UPAC-bonus", "printed").unverified
    assert not algorithm("No-UPAC-bonus", "released").unverified


def test_policy_logit():
    assert eq.policy_logit(-2.0, 0.5, 0.2, 3.0) == pytest.approx(0.9 * -2.0 + 1.5)


def test_multiplier_step_and_its_clips():
    assert eq.multiplier_step(1.0, 0.5, 0.2, 4.0, 3.0, 9.0) == pytest.approx(1 + 0.5 * (1 - 0.2))
    assert eq.multiplier_step(0.1, 1.0, 0.0, 0.0, 5.0, 9.0) == 0.0
    assert eq.multiplier_step(8.0, 1.0, 0.0, 5.0, 0.0, 9.0) == 9.0


@given(n=st.integers(1, 10**9), spread=st.floats(1.0, 5.0))
def test_bonuses_shrink_with_visits_and_only_the_naive_one_grows_with_k(n, spread):
    for make in (confidence.uniform_pac, confidence.bernstein_bonus, confidence.appendix_c_bonus):
        b = make(PAPER)

        def beta(visits, b=b):
            phi = eq.confidence_radius(visits, b.iterated, b.log, math.inf)
            return eq.bonus(phi, spread, spread, b.root, b.dev, b.flat, b.tail)

        assert beta(2 * n) < beta(n)
    longer = PAPER._replace(K=10**9)
    assert confidence.uniform_pac(longer) == confidence.uniform_pac(PAPER)
    assert confidence.bernstein_bonus(longer).log > confidence.bernstein_bonus(PAPER).log


def test_the_width_of_an_interval_by_hand():
    # p = 0.2, L = 4, n = 100: phi = 0.2; Bernstein 2 * 0.4 * 0.2 + 14/3 * 0.04 = 0.16 + 0.18667.
    phi = eq.confidence_radius(100.0, 0.0, 4.0, math.inf)
    assert phi == pytest.approx(0.2)
    width = eq.interval_width(0.2, phi, math.inf, 2.0, 14 / 3)
    assert width == pytest.approx(0.3466667)
    assert eq.interval_width(0.2, phi, 0.5, 2.0, 14 / 3) == pytest.approx(0.1)  # flat is less
    assert eq.scaled_width(0.5, 0.1, 1.0) == pytest.approx(0.05)
    assert eq.scaled_width(93.0, 0.1, 1.0) == 1.0  # scaled first, then capped


def test_mixing_and_queues_by_hand():
    assert eq.mixed_policy(0.7, 0.1, 0.5) == pytest.approx(0.68)
    assert eq.queue_step(1.0, 0.5, 3.0, 0.2, 2.2) == pytest.approx(1.5)
    assert eq.queue_step(0.1, 1.0, 3.0, 0.0, 4.0) == 0.0


def test_the_constants_of_table_1_by_hand():
    from cmdplab.algorithms import dope, online_crl, opdop, opt_press, regularized_pd

    s = Setting(X=2, A=3, H=5, N=1, K=1000, delta=0.1, slack=2.0, baseline_slack=0.5, epsilon=0.1)
    assert confidence.bernstein_width(s).log == pytest.approx(math.log(4 * 4 * 3 * 5 * 1000 / 0.1))
    assert confidence.bernstein_width_dope(s).log == pytest.approx(math.log(6 * 4 * 5 * 1000 / 0.1))
    assert confidence.hoeffding_width(s).log == pytest.approx(math.log(16 * 4 * 3 * 5 * 1000 / 0.1))
    assert 2 * confidence.hoeffding_width(s).flat == 1.0  # the sum over y is sqrt(Z / n)
    assert opt_press.compensation(s) == pytest.approx(10 + 4 * 5 * 11 / 0.5)
    assert dope.compensation(s) == 50.0
    assert dope.baseline_phase(s) == 4 * 3 * 125 / 0.25 + 1  # episodes 0, 1, ..., 6000
    assert dope.baseline_phase(s._replace(baseline_slack=0.5 + 1e-15)) == 6001
    assert dope.baseline_phase(s._replace(baseline_slack=0.51)) == 5767 + 1  # K_0 = 5767.01
    assert opdop.bonus(s).log == pytest.approx(25 * 2 * math.log(2 * 3 * 5 * 1000 / 0.1))
    k = np.array([7.0])
    assert opdop.policy_step(k, s) == pytest.approx(math.sqrt(math.log(3)) / (25 * math.sqrt(1000)))
    assert (opdop.mixing(s), opdop.dual_cap(s)) == (1e-3, 5.0)
    assert regularized_pd.bonus(s).log == pytest.approx(4 + 2 * math.log(30 * 1000 * 3 / 0.1))
    assert regularized_pd.step(k, s) == pytest.approx(1000**-0.75)
    phase = online_crl.phases(s)
    assert phase.first == pytest.approx(1024 * 2 * 25 / 0.01 * (0.1 / 40))
    assert phase.most == pytest.approx(2 * 5 * 1024 * 2 * 25 / 0.01)
