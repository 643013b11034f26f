"""The theory of a problem in numbers, and the command that prints it."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conftest import random_problem

from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.formats import find
from cmdplab.theory.bounds import COROLLARY, Exponents
from cmdplab.theory.summary import theory_of


def test_one_state_and_two_arms_by_hand():
    """Arms that pay r = 1 - u, b = 1/2: V* = 1/2, lambda* = 1, b_gap = 1/2, C = p (1 - p)."""
    reward = np.array([[[[1.0, 0.0]]], [[[0.0, 1.0]]]])
    t = theory_of(CMDP(np.ones((1, 1, 2, 1)), reward, [0.5]), temperature=0.1, step=0.3)
    assert (t.optimum, *t.multiplier, t.slater_gap) == pytest.approx((0.5, 1.0, 0.5))
    entropy = 1.0 + math.log(2.0)
    assert t.entropy_horizon == pytest.approx(entropy)
    assert t.first == pytest.approx(2.0 * entropy**2 * 9.0)
    assert t.summed_over_steps == pytest.approx(t.combined)  # H = 1
    p = 0.5 + t.saddle.violation[0]  # of the arm that pays; violation = tau multiplier
    assert t.saddle.violation[0] == pytest.approx(0.1 * t.saddle.multiplier[0])
    assert t.saddle.gap == pytest.approx(-t.saddle.violation[0])
    assert t.saddle.coupling == pytest.approx(p * (1.0 - p))
    assert t.saddle.growth == pytest.approx(math.hypot(0.97, 0.3 * math.sqrt(p * (1.0 - p))))


def test_the_corollary_balances_its_terms():
    t = theory_of(find("three-state", 0), COROLLARY, epsilon=0.1, episodes=1000)
    assert t.mistakes is not None
    assert t.regret is not None
    assert t.mistakes.powers == pytest.approx((7.0, 7.0))
    assert t.regret.powers == pytest.approx((6 / 7, 6 / 7))
    assert t.saddle.temperature == pytest.approx(1003 ** (-1 / 7))


@pytest.mark.parametrize("constraints", [1, 2])
def test_the_saddle_point_keeps_its_bounds(constraints):
    s = theory_of(random_problem(4, 3, 3, constraints, 5), temperature=0.2).saddle
    assert sum(s.multiplier) <= s.multiplier_bound
    assert max(s.violation) <= s.violation_bound
    assert s.gap <= s.gap_bound
    assert s.residual < 1e-10


def test_outside_the_theorem_there_is_no_bound_and_a_reason():
    t = theory_of(find("three-state", 0), Exponents(0.6, 0.5))
    assert (t.mistakes, t.regret, t.log10_burn_in) == (None, None, None)
    assert "outside the region" in t.outside


def test_without_a_constraint_there_is_no_slater_gap():
    t = theory_of(random_problem(3, 2, 2, 0))
    assert (t.slater_gap, t.multiplier, t.saddle.multiplier) == (None, [], [])
    assert t.third == 0.0


def test_what_has_no_theory_is_refused_in_a_sentence():
    problem = random_problem(3, 2, 2, 1)
    with pytest.raises(InputError, match="epsilon is 0, not a finite number > 0"):
        theory_of(problem, epsilon=0.0)
    with pytest.raises(InputError, match="no policy"):
        theory_of(CMDP(problem.transition, problem.reward, [2.0]))


def test_the_command_names_the_lemma_of_each_number(call):
    code, out, err = call("theory", "three-state")
    assert (code, err) == (0, "")
    for words in (
        "Lemma F.4",
        "Lemma H.7",
        "Lemma H.9",
        "Theorem 4.1 at",
        "(i) learning",
        "(ii) bias",
    ):
        assert words in out
    code, out, err = call("theory", "three-state", "--temperature", "0")
    assert (code, out) == (2, "")
    assert "the temperature is 0" in err
