"""The interval planner, against HiGHS on the explicit extended LP and against closed forms."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import examples, problems, random_policy, random_problem
from extended_lp import extended_margin, extended_value
from hypothesis import example, given, strategies as st

from cmdplab.cmdp import exact
from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.numerics.arrays import from_pairs
from cmdplab.numerics.compiling import compiled_apart
from cmdplab.solvers import Box, largest_margin, plan, policy_bounds, simplex, solve
from cmdplab.solvers.layout import model, planning

WIDTHS = (0.0, 0.01, 0.1, 1.0)


def boxed(case: int) -> tuple[Box, CMDP]:
    """A random instance up to (X, A, H) = (8, 3, 5) with N = 1, 2, 3, and a box around it."""
    rng = np.random.default_rng(case)
    X, A, H = (int(n) for n in rng.integers((1, 1, 1), (9, 4, 6)))
    problem = random_problem(X, A, H, 1 + case % 3, case, float(rng.choice([0.05, 0.3, 1.0])))
    width = WIDTHS[case % 4] * rng.random(problem.transition.shape)
    return Box.around(problem.transition, width), problem


def check_plan(box: Box, problem: CMDP, threshold: np.ndarray) -> None:
    """The certificate closes; flow and box hold; the promise is kept under the plan's kernel."""
    found = plan(box, problem.reward, threshold, problem.start)
    assert found.feasible
    assert found.gap <= 1e-9
    assert np.all(found.kernel >= box.lower - 1e-9)
    assert np.all(found.kernel <= box.upper + 1e-9)
    np.testing.assert_allclose(found.kernel.sum(axis=-1), 1.0, atol=1e-9)
    inside = CMDP(found.kernel, problem.reward, threshold, problem.start)
    pairs = exact.occupancy(inside, found.policy)  # flow: the occupancy of the policy is the plan's
    np.testing.assert_allclose(pairs, found.occupancy, atol=1e-9)
    np.testing.assert_allclose(exact.returns(inside, found.policy), found.returns, atol=1e-9)
    assert np.all(found.returns[1:] >= threshold - 1e-9)
    slack = found.returns[1:] - threshold
    np.testing.assert_allclose(found.multiplier * slack, 0.0, atol=1e-7)


@examples(240)
@given(case=st.integers(0, 10**6), kind=st.integers(0, 2))
@example(case=10182, kind=2)
def test_highs_agrees_on_the_extended_lp(case, kind):
    box, problem = boxed(case)
    arguments = (problem.reward, problem.threshold, problem.start)
    margin = largest_margin(box, *arguments)
    assert margin.primal == pytest.approx(extended_margin(*box[:2], *arguments), abs=1e-7)
    shift = (0.0, margin.primal - 1e-6, margin.primal + 1e-3)[kind]  # feasible, tight, infeasible
    threshold = problem.threshold + shift
    expected = extended_value(*box[:2], problem.reward, threshold, problem.start)
    if kind < 2:
        check_plan(box, problem, threshold)
        found = plan(box, problem.reward, threshold, problem.start)
        assert found.primal == pytest.approx(expected, abs=1e-7)
        return
    assert expected is None
    found = plan(box, problem.reward, threshold, problem.start)
    assert not found.feasible
    assert found.margin == pytest.approx(-1e-3, abs=1e-9)
    assert np.min(found.returns[1:] - threshold) == pytest.approx(-1e-3, abs=1e-9)


@given(problem=problems(constraints=st.integers(1, 3)), scale=st.floats(0.0, 3.0))
def test_where_it_starts_does_not_matter(problem, scale):
    box = Box.around(problem.transition, np.full(problem.transition.shape, 0.05))
    known = (box, problem.reward, problem.threshold, problem.start)
    cold = plan(*known)
    warm = plan(*known, multiplier=scale * cold.multiplier)
    odd = plan(*known, multiplier=np.full(problem.constraints, scale))
    assert warm.value == pytest.approx(cold.value, abs=1e-9)
    assert odd.value == pytest.approx(cold.value, abs=1e-9)


@given(problem=problems(), width=st.floats(0.0, 0.5))
def test_a_wider_box_promises_more(problem, width):
    thin = Box.around(problem.transition, np.full(problem.transition.shape, width / 2))
    wide = Box.around(problem.transition, np.full(problem.transition.shape, width))
    known = (problem.reward, problem.threshold, problem.start)
    assert plan(wide, *known).value >= plan(thin, *known).value - 1e-9
    assert plan(thin, *known).value >= solve(problem).value - 1e-9


@given(problem=problems(), seed=st.integers(0, 1000), width=st.floats(0.0, 0.5))
def test_the_returns_of_a_policy_lie_between_its_bounds(problem, seed, width):
    rng = np.random.default_rng(seed)
    policy = random_policy(problem, seed)
    box = Box.around(problem.transition, width * rng.random(problem.transition.shape))
    low, high = (
        policy_bounds(box, problem.reward, policy, problem.start, direction)
        for direction in ("pessimistic", "optimistic")
    )
    truth = exact.returns(problem, policy)
    assert np.all(low <= truth + 1e-10)
    assert np.all(truth <= high + 1e-10)
    if width == 0.0:
        np.testing.assert_allclose(low, high, atol=1e-12)


def test_bounds_by_hand():
    # One step decides: state 1 pays from then on, and chance leads there with 0.5 +- 0.2.
    kernel = np.zeros((3, 1, 3))
    kernel[0, 0, 1:] = 0.5
    kernel[1, 0, 1] = kernel[2, 0, 2] = 1.0
    reward = np.zeros((1, 4, 3, 1))
    reward[0, :, 1] = 1.0
    problem = CMDP(kernel, reward, [], 0)
    width = np.zeros(problem.transition.shape)
    width[:, 0, 0, 1:] = 0.2
    box = Box.around(problem.transition, width)
    policy = np.ones((4, 3, 1))
    bounds = [
        policy_bounds(box, problem.reward, policy, 0, d)[0] for d in ("pessimistic", "optimistic")
    ]
    assert bounds == pytest.approx([3 * 0.3, 3 * 0.7])


@pytest.mark.parametrize("constraints", [0, 1, 3])
def test_a_box_of_width_zero_is_its_kernel_to_the_last_bit(constraints):
    problem = random_problem(9, 3, 4, constraints)
    known = (problem.reward, problem.threshold, problem.start)
    box, table = plan(Box(problem.table, problem.table), *known), plan(Box.of(problem), *known)
    assert box.sweeps == table.sweeps
    np.testing.assert_allclose(table.kernel, box.kernel, atol=1e-15)
    np.testing.assert_allclose(table.occupancy, box.occupancy, atol=1e-15)
    for field in ("policy", "returns", "multiplier", "primal", "dual"):
        np.testing.assert_array_equal(getattr(table, field), getattr(box, field))


@pytest.mark.slow
def test_the_simplex_steers_alike_compiled_and_in_plain_python():
    problem = random_problem(6, 3, 4, 2)
    box = Box.around(problem.table, 0.1 * problem.table * (1.0 - problem.table))
    found = plan(box, problem.reward, problem.threshold, problem.start)
    laid_out = model(box, problem.reward, problem.threshold, problem.start)
    space, policy = planning(2, 4, 6, 3), np.zeros(laid_out.closed.shape)
    returns = np.zeros(3)
    steer(laid_out, problem.start, np.zeros(2), *space, policy, returns)
    np.testing.assert_allclose(returns, found.returns, atol=1e-13)
    np.testing.assert_allclose(from_pairs(policy, 6, 3), found.policy, atol=1e-12)
    np.testing.assert_allclose(space.basis.multiplier, found.multiplier, atol=1e-12)


@compiled_apart
def steer(laid_out, start, first, columns, basis, work, policy, returns):
    simplex.plan(laid_out, start, first, columns, basis, work)
    simplex.write_policy(laid_out, start, columns, basis, work, policy, returns)


def test_bad_boxes_are_refused():
    problem = random_problem(3, 2, 2, 1)
    known = (problem.reward, problem.threshold, problem.start)
    lower = upper = problem.table
    with pytest.raises(InputError, match="holds no kernel"):
        plan(Box(lower + 0.1, upper + 0.1), *known)
    with pytest.raises(InputError, match="shapes"):
        plan(Box(lower[:1], upper), *known)
    with pytest.raises(InputError, match="multipliers"):
        plan(Box.of(problem), *known, multiplier=np.array([-1.0]))
    with pytest.raises(InputError, match="direction"):
        policy_bounds(Box.of(problem), problem.reward, random_policy(problem, 0), 0, "up")


DEGENERATE = [  # seeds of coarse rewards whose programs have many ties, and their size
    *((seed, 1.0) for seed in (*range(40), 23763)),
    *((seed, 1e4) for seed in (*range(40), 1253, 3559)),
]


@pytest.mark.parametrize(("seed", "size"), DEGENERATE)
def test_degenerate_programs_are_never_called_feasible_when_they_fall_short(seed, size):
    rng = np.random.default_rng(seed)
    X, A, H, N = (int(i) for i in rng.integers((2, 2, 1, 2), (4, 4, 4, 5)))
    kernel = rng.dirichlet(np.full(X, 0.4), (H, X, A))
    reward = rng.integers(0, 3, size=(1 + N, H, X, A)) / 2 * size
    box = Box.around(kernel, 0.05 * rng.random(kernel.shape))
    widest = largest_margin(box, reward, np.zeros(N))
    assert widest.gap <= 1e-9 * size
    edge = np.full(N, widest.primal)  # met only with equality
    for threshold in (edge, edge - 1e-6 * size, edge - 0.1 * size):
        found = plan(box, reward, threshold)
        assert found.feasible
        assert np.min(found.returns[1:] - threshold) >= -1e-9 * H * size
    assert found.gap <= 1e-9 * size  # with room to spare the certificate closes


def test_the_wrong_shapes_are_refused_before_anything_is_computed():
    problem = random_problem(3, 2, 2, 1)
    box = Box.of(problem)
    for start in (3, -1, 10**6):
        with pytest.raises(InputError, match="the start is"):
            plan(box, problem.reward, problem.threshold, start)
    for threshold in (np.zeros(0), np.zeros(2)):
        with pytest.raises(InputError, match="thresholds of shape"):
            plan(box, problem.reward, threshold, 0)
    assert plan(box, problem.reward, [0.1], 0).feasible  # a list will do
    for shape in ((1, 3, 2), (2, 3, 3), (2, 2, 2)):
        with pytest.raises(InputError, match="the policy has the shape"):
            policy_bounds(box, problem.reward, np.full(shape, 0.5), 0)
    with pytest.raises(InputError, match="the policy sums to 2"):
        policy_bounds(box, problem.reward, np.ones((2, 3, 2)), 0)
    free = random_problem(3, 2, 2, 0)
    with pytest.raises(InputError, match="no margin"):
        largest_margin(Box.of(free), free.reward, free.threshold)


def test_states_that_are_hardly_ever_reached_have_a_policy():
    """A chain whose k-th state has probability 1e-3k: numbers too small for 1 / p to be finite."""
    X = H = 110
    kernel = np.zeros((X, 2, X))
    kernel[:, :, 0] = 0.999
    kernel[np.arange(X), :, np.minimum(np.arange(X) + 1, X - 1)] += 0.001
    useful = np.broadcast_to([0.0, 1.0], (X, 2))
    problem = CMDP(kernel, np.stack([1.0 - useful, useful]), [0.3 * H], horizon=H)
    for box in (Box.of(problem), Box(problem.table, problem.table)):
        found = plan(box, problem.reward, problem.threshold, problem.start)
        np.testing.assert_allclose(found.policy.sum(axis=-1), 1.0, atol=1e-12)
