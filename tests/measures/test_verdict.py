"""Verdicts on curves whose answer is known."""

from __future__ import annotations

import numpy as np
import pytest

from cmdplab.algorithms.learner import Chunk
from cmdplab.measures.measures import Measures
from cmdplab.measures.verdict import verdict


def curves_of(gap: np.ndarray) -> dict:
    """The curves of a run whose gap is this; its violation is the negative of it."""
    measures = Measures(0.0, np.zeros(1), 10)
    measures.add(Chunk(np.column_stack([-gap, gap]), np.zeros((len(gap), 1))))
    return measures.curves()


K = np.arange(1, 100_001)


@pytest.mark.parametrize(
    ("gap", "word"),
    [
        (-1.0 / np.sqrt(K), "converged"),
        (np.sin(K / 7.0), "oscillates"),  # far faster than the grid of the curve
        (np.sin(K / 9000.0), "oscillates"),
        (-0.1 - 1.0 / np.sqrt(K), "biased"),
        (0.1 + 0.0 * K, "biased"),
        (-30.0 / np.sqrt(K), "moving"),
        (5.0 - 4.0 * K / 1e5, "moving"),  # steep, but one way only
        (np.where(K < 80_037, 1.0, 0.2), "moving"),  # one step down, between two grid points
        (0.5 * K / 1e5, "worsens"),
        (0.5 + K / 1e5, "worsens"),
        (0.20 - 0.05 * K / 1e5, "moving"),  # slow, but steady
        (0.049 * np.sin(K / 3000.0), "oscillates"),  # small, and whatever its phase at the end
        (0.049 * np.cos(K / 3000.0), "oscillates"),
        (0.005 * np.sin(K / 3000.0), "converged"),
    ],
)
def test_the_verdict_is_right(gap, word):
    assert verdict(curves_of(gap), 10).startswith(word)


def test_short_runs_are_not_judged():
    assert verdict(curves_of(np.zeros(500)), 10) == "too short to tell"


def test_a_violation_that_swings_is_seen_behind_a_gap_that_does_not():
    violation = -0.5 * np.sin(2 * np.pi * K / 4000)
    measures = Measures(0.0, np.zeros(1), 2)
    measures.add(Chunk(np.column_stack([0.0 * K, -violation]), np.zeros((len(K), 1))))
    assert verdict(measures.curves(), 2).startswith("oscillates")


def test_a_violation_far_below_zero_may_swing():
    utility = 5.0 + np.sin(K / 500.0)
    measures = Measures(0.0, np.zeros(1), 10)
    measures.add(Chunk(np.column_stack([0.0 * K, utility]), np.zeros((len(K), 1))))
    assert verdict(measures.curves(), 10).startswith("converged")
