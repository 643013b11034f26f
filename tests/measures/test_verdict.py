"""Verdicts on curves whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from cmdplab.algorithms.learner import Chunk
from cmdplab.measures.decay import decay
from cmdplab.measures.envelope import envelope
from cmdplab.measures.measures import Measures
from cmdplab.measures.verdict import Kind, extrapolated, verdict


def curves_of(gap: np.ndarray) -> dict:
    """The curves of a run whose gap is this; its violation is the negative of it."""
    measures = Measures(0.0, np.zeros(1), 10)
    measures.add(Chunk(np.column_stack([-gap, gap]), np.zeros((len(gap), 1))))
    return measures.curves()


K = np.arange(1, 100_001)


@pytest.mark.parametrize(
    ("gap", "words"),
    [
        (-1.0 / np.sqrt(K), "converging at k^-0.5"),
        (-30.0 / np.sqrt(K), "converging at k^-0.5"),  # however large
        (K ** (-1 / 7), "converging at k^-0.14"),  # however slow
        (0.015 + 0.0 * K, "settled at 0.015"),  # however small
        (-0.1 - 1.0 / np.sqrt(K), "settled at 0.1"),
        (0.0 * K, "settled at 0 (rounding)"),
        (np.sin(K / 7.0), "oscillating, not shrinking from 1"),  # far faster than the grid
        (0.005 * np.sin(K / 300.0), "oscillating, not shrinking from 0.005"),
        (K**-0.3 * np.sin(K / 7.0), "oscillating, shrinking at k^-0.3"),
        (0.5 * K / 1e5, "worsening, at 0.5"),
        (1.0 / np.log(K + 1.0), "undecided"),  # half of it could be a limit
        (0.001 + 0.1 * K**-0.3, "undecided"),  # 24 % of the last error is one
        (np.sin(0.2 * np.log(K)), "undecided"),
        (np.where(K < 80_037, 1.0, 0.2), "undecided"),  # one step down, between two grid points
        (np.maximum(K**-0.5, 40_000.0**-0.5), "undecided"),  # it stopped late
    ],
)
def test_the_verdict_is_right(gap, words):
    assert verdict(curves_of(gap), 10).words.startswith(words)


def test_short_runs_are_not_judged():
    found = verdict(curves_of(np.zeros(500)), 10)
    assert (found.kind, found.rate, found.level) == (Kind.undecided, None, None)
    assert found.words == "undecided before 8,192 episodes"
    assert verdict(curves_of(np.zeros(8192)), 10).kind is Kind.settled


def test_the_envelope_is_the_inverse_of_the_last_mistake():
    gap = K**-0.3 * np.sin(K / 50.0)
    measures = Measures(0.0, np.zeros(1), 10)
    measures.add(Chunk(np.column_stack([-gap, gap]), np.zeros((len(K), 1))))
    found, mistakes = envelope(measures.curves()), measures.mistakes()
    for start, sup in zip(found.start, found.sup, strict=True):
        late = mistakes["either_last_mistake"] >= start
        # E(k) > epsilon exactly where the last mistake of epsilon comes at k or later; a segment
        # of the grid that straddles k belongs to it, which is 0.2 % of k.
        assert mistakes["epsilon"][late].max() < sup
        assert sup <= np.abs(gap[int(start * 0.997) - 1 :]).max()


def test_a_limit_is_extrapolated_exactly_and_a_power_law_has_none():
    k = 4.0 ** np.arange(4)
    assert extrapolated(0.3 + k**-0.7) == pytest.approx(0.3)
    assert extrapolated(k**-0.7) == pytest.approx(0.0, abs=1e-15)
    assert extrapolated(np.array([3.0, 2.0, 1.0])) is None


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.9])
@pytest.mark.parametrize("p", [0.15, 0.5, 1.1])
def test_the_interval_of_the_limit_contains_it(share, p):
    gap = share + (1.0 - share) * (K / len(K)) ** -p
    found = decay(curves_of(0.001 * gap))
    assert max(found.low - 0.01, 0.0) <= share <= found.high + 0.01
    assert found.high <= share + 0.03
    assert found.peaks == pytest.approx(share, abs=0.03)


def test_a_bound_on_the_limit_is_rounded_upwards_and_in_the_units_of_errors():
    found = verdict(curves_of(-1.0 / np.sqrt(K)), 10)
    assert found.limit == pytest.approx(0.05 / np.sqrt(0.84 * len(K)), rel=0.01)  # LEAST
    assert found.words == "converging at k^-0.5; a limit of up to 0.00018 is not excluded"


def test_a_run_without_a_constraint_is_judged_by_its_gap():
    curves = curves_of(1.0 / np.sqrt(K))
    alone = {name: column for name, column in curves.items() if "violation" not in name}
    assert verdict(alone, 10).kind is Kind.converging


def test_a_violation_that_swings_is_seen_behind_a_gap_that_does_not():
    violation = -0.5 * np.sin(2 * np.pi * K / 4000)
    measures = Measures(0.0, np.zeros(1), 2)
    measures.add(Chunk(np.column_stack([0.0 * K, -violation]), np.zeros((len(K), 1))))
    assert verdict(measures.curves(), 2).kind is Kind.oscillating


def test_a_violation_far_below_zero_may_swing():
    utility = 5.0 + np.sin(K / 500.0)
    measures = Measures(0.0, np.zeros(1), 10)
    measures.add(Chunk(np.column_stack([0.0 * K, utility]), np.zeros((len(K), 1))))
    assert verdict(measures.curves(), 10).words == "settled at 0 (rounding)"
