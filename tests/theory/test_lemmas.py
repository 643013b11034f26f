"""Lemmas F.6 to F.15, inequalities between real numbers that only proofs use, as they stand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cmdplab.algorithms.equations import iterated_log

ROUNDING = 1e-12


def test_lemma_f6_bounds_squared_logarithms():
    rng = np.random.default_rng(0)
    for _ in range(2000):
        A, c = int(rng.integers(1, 9)), rng.uniform(0.01, 1.0)
        x = np.maximum(rng.dirichlet(np.full(A, 0.3)), 1e-300)
        most = A ** (1.0 - c) * (2.0 / c - 1.0 + math.log(A)) ** 2
        assert np.sum(x**c * np.log(x) ** 2) <= most * (1.0 + ROUNDING)


def test_lemma_f7_is_a_tangent():
    x, y = np.meshgrid(np.geomspace(1e-9, 0.999, 200), np.geomspace(1e-3, 5.0, 100))
    assert np.all(x ** (1.0 - y) - x <= -y * x ** (1.0 - y) * np.log(x) * (1.0 - ROUNDING))


def dual_step(rng: np.random.Generator) -> tuple[float, float]:
    """ell (lambda - lambda*) and the right side of Lemma F.9, of a random step."""
    u, eta, ell = rng.uniform(0.1, 5.0), rng.uniform(0.01, 2.0), 3.0 * rng.normal()
    at, best = rng.uniform(0.0, u, 2)
    after = min(max(at + eta * ell, 0.0), u)
    spread = (at - best) ** 2 - (after - best) ** 2
    return float(ell * (at - best)), float(spread / (2.0 * eta) + eta / 2.0 * ell**2)


def test_lemma_f9_holds_with_the_other_sign():
    """As printed it fails: tests/theory/test_errata.py."""
    rng = np.random.default_rng(1)
    for _ in range(2000):
        left, right = dual_step(rng)
        assert -left <= right + 1e-9


def test_lemma_f10_is_cauchy_schwarz():
    rng = np.random.default_rng(2)
    for _ in range(200):
        x = rng.pareto(1.0, int(rng.integers(1, 20)))
        assert np.sqrt(x).sum() <= math.sqrt(len(x) * x.sum()) * (1.0 + ROUNDING)


def test_lemma_f12_of_iterated_logarithms():
    some = [0.0, 0.5, 1.0, 2.0, math.e, 3.0, 20.0, 1e3, 1e9, 1e100]
    for x in some:
        for y in some:
            assert iterated_log(x * y) <= iterated_log(x) + iterated_log(y) + 1.0


# Those below hold from k0 on, which is 110 for alpha = 0.1 and 10^45 for the paper's exponents.
ALPHAS = (0.05, 0.1, 0.3, 0.5)


def onset(alpha: float) -> int:
    """((24 / (1 - alpha)) ln(12 / (1 - alpha)))^(1 / (1 - alpha))"""
    c = 1.0 - alpha
    return math.ceil((24.0 / c * math.log(12.0 / c)) ** (1.0 / c))


@pytest.mark.parametrize("alpha", ALPHAS)
def test_lemma_f13_a_power_beats_a_logarithm(alpha):
    k = onset(alpha) * np.geomspace(1.0, 1e9, 200)
    assert np.all(k ** (1.0 - alpha) >= 12.0 * np.log(k))


@pytest.mark.parametrize("alpha", ALPHAS)
@pytest.mark.parametrize("c", [0, 3])
def test_lemmas_f14_and_f15_bound_weighted_sums_and_maxima(alpha, c):
    for k in (onset(alpha), 2 * onset(alpha)):
        i = np.arange(1.0, k + 1.0) + c
        factors = 1.0 - i**-alpha
        behind = np.append(np.cumprod(factors[:0:-1])[::-1], 1.0)  # the product over j > i
        for beta in (0.0, 0.5, 1.06, 2.0):
            terms = i**-beta * behind
            last = float(i[-1])
            assert terms.sum() <= 9.0 * math.log(last) * last ** (alpha - beta)
            assert terms.max() <= 4.0 * last**-beta
