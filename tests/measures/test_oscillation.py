"""The swing of a tail, on curves whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from cmdplab.algorithms.learner import Chunk
from cmdplab.measures.envelope import oscillation
from cmdplab.measures.measures import Measures


def curves_of(gap):
    measures = Measures(0.0, np.zeros(0), 10)
    for piece in np.array_split(gap, 7):
        measures.add(Chunk(-piece[:, None], np.zeros((len(piece), 0))))
    return measures.curves()


@given(period=st.floats(600.0, 6000.0), length=st.integers(40_000, 120_000))
def test_a_sine_has_its_period_and_amplitude(period, length):
    k = np.arange(1, length + 1)
    found = oscillation(curves_of(0.5 + 2.0 * np.sin(2 * np.pi * k / period)))
    assert found.amplitude == pytest.approx(4.0, rel=0.02)
    assert found.period == pytest.approx(period, rel=0.12)


def test_what_does_not_swing_has_no_period():
    k = np.arange(1.0, 50_001.0)
    assert oscillation(curves_of(1.0 / np.sqrt(k))).period is None
    assert oscillation(curves_of(np.ones(50_000))) == (0.0, None)
    noise = np.random.default_rng(0).normal(size=50_000)
    assert oscillation(curves_of(noise)).period is None


def test_a_spike_between_grid_points_counts_for_the_amplitude():
    gap = np.zeros(50_000)
    gap[40_001] = 3.0
    assert oscillation(curves_of(gap)).amplitude == 3.0


def test_short_runs_have_no_period():
    assert oscillation(curves_of(np.sin(np.arange(20.0)))).period is None
