"""Which algorithm: rules that say why."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import random_problem
from live_envs import Walk, discrete

import cmdplab
from cmdplab import InputError, advise, learn


def test_a_known_kernel_is_for_the_solver():
    found = advise(random_problem(3, 2, 4, 2))
    assert found.sizes.constraints == 2
    assert any("the kernel is known" in each for each in found.besides)
    assert any("2 constraints" in each for each in found.besides)


def test_an_environment_is_judged_by_its_spaces():
    found = advise(Walk(), horizon=4, episodes=2)
    assert (found.sizes.states, found.sizes.actions, found.sizes.horizon) == (3, 2, 4)
    assert any("6 pairs are too many for 2 episodes" in each for each in found.besides)
    assert str(found).startswith(found.algorithm)


def test_policies_beyond_memory_are_spoken_of():
    big = Walk()
    big.observation_space = discrete(5_000_000)
    assert any("more than can be learned" in each for each in advise(big, horizon=100).besides)
    assert not any("can be learned" in each for each in advise(big, horizon=1).besides)


def test_who_must_be_safe_gets_an_algorithm_that_promises_it():
    found = advise(Walk(), horizon=4, safe=True)
    assert cmdplab.algorithm(found.algorithm).safe


def test_auto_takes_the_advice_and_says_so():
    told = {"horizon": 4, "budget": 1.0, "episodes": 5, "evaluate": 0}
    learned = learn(Walk(), "auto", **told)
    assert learned.algorithm.name == advise(Walk(), horizon=4).algorithm
    assert learned.notes[0].startswith(f"{learned.algorithm.name} was chosen: ")
    stay = np.tile([1.0, 0.0], (4, 3, 1))
    safe = learn(Walk(), "auto", baseline=stay, **(told | {"budget": 3.0}))
    assert safe.algorithm.safe


@pytest.mark.parametrize(
    ("target", "given", "sentence"),
    [
        (3, {}, "int is neither a problem nor an environment"),
        (Walk(), {}, "the horizon is None"),
        (Walk(), {"horizon": 4, "episodes": 0}, "episodes is 0"),
        (Walk(), {"horizon": 4, "constraints": 0}, "constraints is 0"),
    ],
)
def test_what_cannot_be_advised_on_is_one_sentence(target, given, sentence):
    with pytest.raises(InputError, match=sentence):
        advise(target, **given)
