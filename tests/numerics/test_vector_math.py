"""exp and log for vectors, against the C library."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given, strategies as st

from cmdplab.numerics.vector_math import exp_vector, log_vector


@given(st.floats(-707.9, 0.0))
def test_exp_is_exact_to_two_ulp(x):
    assert abs(exp_vector(x) - math.exp(x)) <= 2 * math.ulp(math.exp(x))


@given(st.floats(-1e300, -708.1))
def test_exp_of_very_little_is_zero(x):
    assert exp_vector(x) == 0.0


@given(st.floats(1e-300, 1e300))
def test_log_is_exact_to_rounding(x):
    assert abs(log_vector(x) - math.log(x)) <= 4e-16 * max(1.0, abs(math.log(x)))


def test_fixed_points():
    assert exp_vector(0.0) == 1.0
    assert exp_vector(-np.inf) == 0.0
    assert log_vector(1.0) == 0.0
