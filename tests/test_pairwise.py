"""Few of all combinations: every pair is there, and there are few."""

from __future__ import annotations

from itertools import combinations, product

from hypothesis import given, strategies as st
from pairwise import crossed, pairwise

AXES = st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5, unique=True), max_size=4)


@given(AXES.filter(bool))
def test_every_two_values_of_two_axes_meet(axes):
    found = pairwise(*axes)
    assert set(found) <= set(product(*axes))
    for i, j in combinations(range(len(axes)), 2):
        assert {(each[i], each[j]) for each in found} == set(product(axes[i], axes[j]))
    assert [{each[n] for each in found} for n in range(len(axes))] == [set(each) for each in axes]


def test_four_switches_need_six_of_sixteen_combinations():
    assert len(pairwise(*[(False, True)] * 4)) <= 6  # five is the least there is


def kind(value):
    """Letters are themselves; of numbers only the parity counts."""
    return [value if isinstance(value, str) else value % 2]


def test_traits_meet_where_values_need_not():
    found = pairwise(range(10), "ab", traits=kind)
    assert len(found) == 10  # every number once, not with both letters
    assert {(n % 2, letter) for n, letter in found} == set(product((0, 1), "ab"))


def test_what_is_left_out_is_marked_slow_and_not_lost():
    params = crossed(range(10), "ab", traits=kind, ids=str)
    assert [each.id for each in params] == [
        f"{n}-{letter}" for n, letter in product(range(10), "ab")
    ]
    slow = {each.values for each in params if [mark.name for mark in each.marks] == ["slow"]}
    assert {each.values for each in params} - slow == set(pairwise(range(10), "ab", traits=kind))
