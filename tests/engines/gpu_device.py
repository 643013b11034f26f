"""The GPU engine on a GPU: `make test-gpu`. The simulator's cases again, at sizes that matter."""

from __future__ import annotations

import pytest
from gpu_cases import batch, check_equals_cpu, check_judged, check_same_bits, family_rows, mild_rows

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.families.triple_q import TripleQ
from cmdplab.engines.gpu import device
from cmdplab.engines.gpu.limits import SINGLE_TOLERANCE
from cmdplab.environments import make
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.errors import EngineError

if device.missing():
    pytest.skip(device.missing(), allow_module_level=True)

EPISODES = 10_000
SHAPES = [(30, 3, 10, 1), (7, 40, 3, 1), (5, 4, 4, 3), (7, 3, 5, 0), (6, 3, 1, 2), (70, 5, 3, 1)]
ROWS = [algorithm("UOpt-RPGPD", preset) for preset in ("released", "printed")]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_every_row_and_preset_equals_the_cpu(shape):
    problem = random_problem(*shape)
    check_equals_cpu(problem, family_rows(problem), EPISODES, 1e-9)


@pytest.mark.parametrize("shape", SHAPES[:5], ids=str)
def test_every_row_of_triple_q_equals_the_cpu(shape):
    problem = random_problem(*shape)
    rows = [row.with_settings(tuned_for=EPISODES) for row in family_rows(problem, TripleQ)]
    check_equals_cpu(problem, rows + mild_rows(problem, EPISODES), EPISODES, 1e-9)


def test_triple_q_never_takes_a_closed_action():
    problem = random_problem(9, 5, 4, 2, closed=0.4)
    check_equals_cpu(problem, mild_rows(problem, EPISODES), EPISODES, 1e-9)


def test_neither_batch_nor_chunks_nor_a_resume_change_a_bit_of_triple_q():
    problem = random_problem(30, 3, 10, 1)
    for row in mild_rows(problem, EPISODES):
        check_same_bits(problem, [*mild_rows(problem, 1000), row], 3000)


def test_closed_actions_are_never_taken():
    check_equals_cpu(random_problem(9, 5, 4, 2, closed=0.4), ROWS, EPISODES, 1e-9)


def test_neither_batch_nor_chunks_nor_a_resume_change_a_bit():
    check_same_bits(random_problem(30, 3, 10, 1), ROWS, 3000)


def test_single_precision_keeps_to_what_is_said_of_it():
    worst = check_equals_cpu(make("published"), ROWS, EPISODES, SINGLE_TOLERANCE, None, "float32")
    assert worst > 1e-9  # it was single precision


def test_what_is_judged_on_the_card_is_what_the_host_would_judge():
    check_judged(random_problem(9, 3, 4, 2), ROWS, 20_000)


def test_a_batch_that_does_not_fit_is_foreseen():
    problem = random_problem(100, 4, 20, 1)
    with pytest.raises(EngineError, match="GiB on the card"):
        batch(problem, ROWS[:1] * 100_000)
