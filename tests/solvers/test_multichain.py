"""Average problems with several recurrent classes, against a linear program that knows them.

The program of Hordijk and Kallenberg (1984): x(s, a) is the time spent in a pair, y(s, a) how often
it is passed on the way. Its value is the best of all policies with memory, whatever the chains.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog

from cmdplab import Average, StationaryCMDP, evaluate, solve
from cmdplab.cmdp import exact_stationary as exact
from cmdplab.errors import OpenCertificateError


def program(problem: StationaryCMDP) -> float | None:
    """HiGHS on x and y; None where no policy meets the thresholds."""
    X, A, N = problem.states, problem.actions, problem.constraints
    leave = np.kron(np.eye(X), np.ones((1, A)))
    flow = leave - np.asarray(problem.transition).reshape(X * A, X).T
    equal = np.block([[flow, np.zeros((X, X * A))], [leave, flow]])
    source = np.concatenate([np.zeros(X), problem.start])
    none = np.zeros((N, X * A))
    limits: tuple[Any, Any] = (None, None)
    if N:
        limits = (np.hstack([-problem.reward[1:].reshape(N, -1), none]), -problem.threshold)
    cost = np.concatenate([-problem.reward[0].ravel(), np.zeros(X * A)])
    tight = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
    found = linprog(cost, *limits, equal, source, options=tight)
    assert found.status in (0, 2)
    return -found.fun if found.status == 0 else None


def random_problem(seed: int) -> StationaryCMDP:
    """Absorbing states, cycles, closed groups of states and ways between them."""
    rng = np.random.default_rng(seed)
    X, A, N = int(rng.integers(2, 9)), int(rng.integers(1, 4)), int(rng.integers(0, 3))
    kernel = np.zeros((X, A, X))
    group = rng.integers(0, 3, X)  # rows stay in a group, but for one action at times
    for x in range(X):
        near = np.flatnonzero(group == group[x])
        for a in range(A):
            to = near if a == 0 or rng.random() < 0.6 else np.arange(X)
            kind = rng.integers(0, 3)
            if kind == 0:  # one successor: cycles and absorbing states
                kernel[x, a, rng.choice(to)] = 1.0
            else:
                some = rng.choice(to, min(len(to), int(kind) + 1), replace=False)
                kernel[x, a, some] = rng.dirichlet(np.ones(len(some)))
    reward = np.round(4.0 * rng.random((1 + N, X, A)) - 2.0, int(rng.integers(0, 4)))
    start = rng.dirichlet(np.ones(X)) if seed % 2 else np.eye(X)[0]
    easy = StationaryCMDP(kernel, reward, np.zeros(N), Average(), start)
    policy = np.eye(A)[rng.integers(0, A, X)] if seed % 3 else rng.dirichlet(np.ones(A), X)
    limits = exact.returns(easy, policy)[1:] + 0.1 * (rng.random(N) - 0.8)
    return StationaryCMDP(kernel, reward, limits, Average(), start)


def agrees(problem: StationaryCMDP) -> bool:
    """Whether the optimum was attained by a stationary policy; a refusal names the classes."""
    theirs, refused = program(problem), ""
    try:
        ours = solve(problem)
    except OpenCertificateError as error:
        refused = str(error)
    if refused:
        assert "recurrent classes {" in refused
        assert theirs is not None
        return False
    assert ours.feasible == (theirs is not None)
    if theirs is None:
        return True
    assert ours.value == pytest.approx(theirs, abs=2e-8)
    assert ours.duality_gap <= 1e-8
    checked = evaluate(problem, ours.policy)
    assert checked.value == pytest.approx(ours.value, abs=1e-10)
    assert (checked.violation <= 1e-8).all()
    return True


@pytest.mark.parametrize("block", range(4))
def test_the_optimum_is_that_of_the_multichain_program(block):
    assert sum(agrees(random_problem(seed)) for seed in range(10 * block, 10 * block + 10)) >= 6


@pytest.mark.slow
@pytest.mark.parametrize("block", range(10))
def test_the_optimum_is_that_of_the_multichain_program_on_300_problems(block):
    seeds = range(1_000 + 30 * block, 1_030 + 30 * block)
    assert sum(agrees(random_problem(seed)) for seed in seeds) >= 20


def test_a_choice_of_a_trap_is_randomised_where_it_is_made():
    # From state 0 to a trap that pays, or to one that is useful: 0.3 of each start must be useful.
    kernel = np.zeros((3, 2, 3))
    kernel[0, 0, 1] = kernel[0, 1, 2] = kernel[1, :, 1] = kernel[2, :, 2] = 1.0
    reward = np.array([[[0.0] * 2, [1.0] * 2, [0.0] * 2], [[0.0] * 2, [0.0] * 2, [1.0] * 2]])
    solution = solve(StationaryCMDP(kernel, reward, np.array([0.3]), Average()))
    assert solution.value == pytest.approx(0.7)
    np.testing.assert_allclose(np.asarray(solution.policy)[0], [0.7, 0.3], atol=1e-12)


LINKED = {  # kernel, rewards, threshold: optimal policies of one class exist, with value 3/4
    "two states": (
        [[[0, 1], [1, 0]], [[0, 1], [1, 0]]],
        [[[1, 1], [0, 0]], [[0, 0], [1, 1]]],
        0.25,
    ),
    "drifts": (
        [[[0.2, 0.8], [1, 0]], [[0, 1], [0.6, 0.4]]],
        [[[1, 1], [0, 0]], [[0, 0], [1, 1]]],
        0.25,
    ),
    "three states, no slack": (
        [[[1, 0, 0], [0, 0, 1]], [[0, 1, 0], [0, 0.7, 0.3]], [[0.2, 0.8, 0], [1, 0, 0]]],
        [[[1, 0], [0.75, 0.5], [0.75, 0.75]], [[0.5, 0.5], [0.75, 0.5], [1, 0.25]]],
        0.75,
    ),
}


@pytest.mark.parametrize("name", LINKED)
def test_classes_are_linked_where_the_links_are_optimal_too(name):
    kernel, reward, threshold = LINKED[name]
    problem = StationaryCMDP(kernel, reward, [threshold], Average(), 0)
    found = solve(problem)
    assert found.value == pytest.approx(0.75, abs=1e-9)
    played = evaluate(problem, found.policy)
    assert played.value == pytest.approx(0.75, abs=1e-9)
    assert played.utility[0] >= threshold - 1e-9


def test_classes_whose_links_cost_have_no_optimal_policy():
    # Each visit to the other class costs: policies approach 0.75 and none attains it.
    reward = [[[0.9, 1], [0, 0]], [[0, 0], [1, 0.9]]]
    problem = StationaryCMDP([[[0, 1], [1, 0]]] * 2, reward, [0.25], Average(), 0)
    with pytest.raises(OpenCertificateError, match="divides the time between"):
        solve(problem)
