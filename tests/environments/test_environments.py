"""Environments: what they promise, and that a seed means the same CMDP for years."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from conftest import ROOT, largest_utility, problems, random_problem
from hypothesis import example, given, strategies as st
from scipy.optimize import linprog

from cmdplab.cli.listing import print_environments
from cmdplab.cmdp import exact
from cmdplab.cmdp.exact import greedy
from cmdplab.cmdp.transitions import Sparse
from cmdplab.environments import ENVIRONMENTS, catalogue, make, named
from cmdplab.environments.chains import cost_chain
from cmdplab.environments.discounted import five_by_five, random_tight
from cmdplab.environments.episode_wise import opse_streaming
from cmdplab.environments.levels import osband_river_swim, river_swim
from cmdplab.environments.mazes import box, cliff, mars_rover, triple_q_grid
from cmdplab.environments.random_cmdp import binds, printed_rewards, random_cmdp
from cmdplab.environments.resource_gathering import resource_gems
from cmdplab.errors import InputError
from cmdplab.solvers import solve

PINNED = {
    "published": "e4f8a8cf25c82b79",
    "random-printed": "78a18c29873f8f21",
    "random-released": "159e60405d0f6714",
    "random-independent": "070a7548a05273cc",
    "random-printed-binding": "78a18c29873f8f21",
    "random-independent-binding": "98212f99e5595beb",
    "random-dann": "58a84894e9488ea3",
    "random-tight": "6a5d2539eb7e2525",
    "media-streaming": "b7e14d8382d2bceb",
    "three-state": "16e60171f39d4ff7",
    "three-state-uniform": "6b661cd38dbf766a",
    "inventory": "2e079dcaadbda906",
    "inventory-corrected": "e32ac0b14c1309d8",
    "job-scheduling": "0c7f3c15085ebcdc",
    "mars-rover": "5247c396b3fa1572",
    "box": "9403ddf9c5363b0e",
    "triple-q-grid": "a93de50e6debbcf1",
    "triple-q-grid-binding": "a93de50e6debbcf1",
    "cliff": "d3a79ed1b23c3cf5",
    "six-state": "6dc2dde8587c418a",
    "cost-chain-3": "4cdb9a39c71b2da0",
    "cost-chain-11": "57ee15c8b0f8db51",
    "river-swim": "e4e706b3cf039eb7",
    "river-swim-osband": "c3b7f975e23e97b8",
    "paradox": "0dfd4dafb4fda580",
    "five-by-five": "d378f0a3895e0a05",
    "five-by-five-3": "5d53f36165a8e968",
    "uniform-random-3": "5fb74ee17c30a08e",
    "uniform-random-4": "5fb74ee17c30a08e",
    "queue": "f052361792a0283b",
    "resource-attacks": "cddc9e77d45c3043",
    "resource-gems": "f270ea1aa4b4e24b",
    "slippery-grid": "d161045b9b58d091",
    "opse-streaming": "3a251886ab7592e0",
    "opse-streaming-random": "7ad32339bc8e73b2",
    "opse-tabular": "9c2a489a4d415faf",
    "opse-linear": "980123c843dc351b",
}

# In the units of the sources, to the digits known there:
# optimum, multipliers, value without constraints ("" where no source has it), thresholds.
PUBLISHED = {
    "published": ("5.18840", ["1.00000"], "9.18217", [4.811600]),
    "media-streaming": ("6.74670", ["0.49519"], "5.39314", [5]),
    "three-state": ("2.00000", ["0.66667"], "4.00000", [3]),
    "three-state-uniform": ("6.66667", ["2.00000"], "12.00000", [3]),
    "inventory": ("6.66532", ["0.92121"], "7.00000", [3.5]),
    "inventory-corrected": ("6.13552", [""], "", [3.5]),
    "job-scheduling": ("", [""], "", [3.5]),
    "mars-rover": ("1.53629", ["0.193"], "1.81682", [0.3]),
    "box": ("1.74968", ["0.078"], "1.81577", [0.1]),
    "triple-q-grid": ("963.98", ["0.00"], "963.98", [20]),
    "triple-q-grid-binding": ("874.90", ["88.23"], "963.98", [23]),
    "cliff": ("-10.00000", ["0.50000"], "-7.00000", [2]),
    "six-state": ("0.20000", ["1.00000"], "1.00000", [0.1]),
    "cost-chain-3": ("1.36667", ["0.16667"], "", [0.1]),
    "cost-chain-11": ("1.15909", ["0.04545"], "", [1]),
    "river-swim": ("2.44181", ["0.728"], "2.79898", [1.077]),
    "river-swim-osband": ("2.01743", [""], "3.39726", [10]),
    "paradox": ("5.00000", ["1.00000"], "10.00000", [5]),
    "five-by-five": ("1.652722", ["0.17323"], "1.732862", [1.5]),
    "five-by-five-3": ("1.397688", ["0.11098", "0.35949", "0.04314"], "1.732862", [1.5, 0.85, 2.7]),
    "uniform-random-3": ("4.46244", ["0.2427"], "4.51692", [3]),
    "uniform-random-4": ("4.00538", ["0.972"], "4.51692", [4]),
    "queue": ("", ["", ""], "", [0, 0]),
    "resource-attacks": ("4.43872", ["1.462"], "5.22625", [0.3]),
    "resource-gems": ("4.50733", [""], "5.22625", [2]),
    "slippery-grid": ("", [""], "", [2]),
    "opse-streaming": ("1.900171875", [""], "", [2.4]),
}
SINGLE = [name for name, each in ENVIRONMENTS.items() if not each.random]


@cache
def solved(name: str):
    return solve(make(name, 1 if ENVIRONMENTS[name].random else 0))


def assert_digits(value: float, text: str, beyond: float = 0.0) -> None:
    """The value rounds to the text, up to `beyond`."""
    digits = len(text.partition(".")[2])
    assert value == pytest.approx(float(text), abs=0.5 * 10**-digits + beyond + 1e-9)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_can_be_solved(name):
    assert solved(name).feasible
    assert solved(name).duality_gap <= 1e-9


@pytest.mark.parametrize("name", ["random-printed", "random-released", "random-independent"])
def test_random_environments_follow_the_paper(name):
    problem = make(name, 4)
    assert (problem.states, problem.actions, problem.horizon) == (30, 3, 10)
    assert problem.threshold[0] == pytest.approx(largest_utility(problem) / 2)
    again, other = make(name, 4), make(name, 5)
    np.testing.assert_array_equal(problem.transition, again.transition)
    assert not np.array_equal(problem.transition, other.transition)
    objective, utility = problem.reward
    assert np.mean(objective == 0.0) == pytest.approx(0.5, abs=0.06)
    if name == "random-released":
        assert set(np.unique(objective)) == {0.0, 1.0}
    if name != "random-independent":
        np.testing.assert_allclose(objective + utility, 1.0)
    else:
        assert abs(np.corrcoef(objective.ravel(), utility.ravel())[0, 1]) < 0.1


def test_dann_draws_sparser_rewards_and_a_random_start():
    problem = make("random-dann", 4)
    assert (problem.states, problem.actions, problem.horizon) == (51, 3, 11)
    assert np.mean(problem.reward[:, 1:, :50] == 0.0) == pytest.approx(0.85, abs=0.02)
    assert not problem.reward[:, 0].any()
    assert problem.start == 50
    assert np.count_nonzero(problem.transition[0, 50, 0]) > 1
    assert problem.threshold[0] == pytest.approx(largest_utility(problem) / 2)


def test_tight_random_problems_have_four_successors_and_bind():
    problem = make("random-tight", 3)
    successors = np.count_nonzero(problem.transition[0], axis=-1)
    assert sorted(np.unique(successors)) == [1, 4]  # 1: the goal and the state that absorbs
    assert np.count_nonzero(successors[:, 0] == 1) == 2
    assert solve(problem).multiplier[0] > 1e-6
    assert np.all(problem.reward[1, 0].max(axis=-1) == 1.0)  # some action of every state is free


@given(problems(st.just(1)))
@example(random_problem(2, 3, 4, 1, 2273, 0.3))
def test_binds_is_a_positive_multiplier(problem):
    multiplier = solve(problem).multiplier[0]
    free = greedy(problem, problem.reward[0])[1]
    missed = problem.threshold[0] - exact.returns(problem, free)[1]
    if not 1e-9 < multiplier < 1e-5 and not 0.0 < missed < 2e-3:
        assert binds(problem) == (multiplier > 1e-6)


@pytest.mark.parametrize("name", ["random-printed", "random-independent"])
def test_binding_forms_bind_and_keep_what_bound_already(name):
    redrawn = 0
    for seed in range(9):
        plain, bound = make(name, seed), make(f"{name}-binding", seed)
        assert solve(bound).multiplier[0] > 1e-6
        same = np.array_equal(plain.transition, bound.transition)
        assert same == (solve(plain).multiplier[0] > 1e-6)
        redrawn += not same
    assert redrawn == {"random-printed": 0, "random-independent": 2}[name]


def test_no_instance_is_accepted_for_ever():
    with pytest.raises(InputError, match="none of 1000 draws was accepted"):
        random_cmdp(printed_rewards, "tiny", 0, 1, 1, 1, accept=binds)


def test_every_single_instance_has_its_certified_values():
    assert {name for name, each in ENVIRONMENTS.items() if each.certified is not None} == {*SINGLE}
    assert set(PUBLISHED) == {*SINGLE}


@pytest.mark.parametrize("name", SINGLE)
def test_certified_values(name):
    problem, certified = make(name), ENVIRONMENTS[name].certified
    assert solved(name).value == pytest.approx(certified.optimum, abs=1e-6)
    assert solved(name).multiplier == pytest.approx(certified.multipliers, abs=1e-6)
    assert solved(name).slater_gap == pytest.approx(certified.slater_gap, abs=1e-6)
    free = greedy(problem, problem.reward[0])[0]
    assert free == pytest.approx(certified.unconstrained, abs=1e-6)


@pytest.mark.parametrize("name", SINGLE)
def test_units_lead_to_the_published_values(name):
    entry, published = ENVIRONMENTS[name], ENVIRONMENTS[name].published()
    optimum, multipliers, unconstrained, thresholds = PUBLISHED[name]
    # An infinite horizon that was cut: V*_inf - V*_H <= (1 + sum of multipliers) tail.
    beyond = (entry.tail or 0.0) * (1 + sum(published.multipliers))
    if optimum:
        assert_digits(published.optimum, optimum, beyond)
    if unconstrained:
        assert_digits(published.unconstrained, unconstrained, beyond)
    for multiplier, text in zip(published.multipliers, multipliers, strict=True):
        if text:
            assert_digits(multiplier, text)
    limits = [
        unit.published(b) for unit, b in zip(entry.units[1:], make(name).threshold, strict=True)
    ]
    assert limits == pytest.approx(thresholds, abs=1e-6)
    assert [unit.factor < 0 for unit in entry.units[1:]] == [entry.sense == "costs"] * len(limits)


def test_media_streaming_moves_as_released():
    fast, slow = make("media-streaming").transition[0, 5, :, 4:7]
    np.testing.assert_allclose(fast, [0.08, 0.74, 0.18])
    np.testing.assert_allclose(slow, [0.72, 0.26, 0.02])


def test_media_streaming_randomises_where_the_release_does():
    policy = solved("media-streaming").policy
    assert policy[3, 0] == pytest.approx([0.115, 0.885], abs=6e-4)


def test_the_safe_baselines_of_dope_have_their_values():
    for name, value in (("media-streaming", 10 - 8.98349), ("inventory", 1.55571)):
        problem = make(name)
        budget = (problem.horizon - problem.threshold) / 5
        tight = replace(problem, threshold=problem.horizon - budget)
        assert solve(tight).value == pytest.approx(value, abs=6e-6)


def test_inventory_randomises_where_the_release_does():
    policy = solved("inventory").policy
    assert policy[6, 1] == pytest.approx([0.367, 0, 0.633, 0, 0, 0], abs=6e-4)


@pytest.mark.parametrize("name", ["inventory", "inventory-corrected"])
def test_an_order_never_overfills(name):
    allowed = make(name).opened[0]
    for stock in range(6):
        assert [order for order in range(6) if allowed[stock, order]] == [*range(6 - stock)]


def test_the_two_rewards_of_the_inventory_differ_where_the_stock_sells_out():
    # One unit in stock: sold with probability 0.7; the release counts that, the other P(d = 1).
    released, corrected = (
        make(name).reward[0, 0, 1, 0] for name in ("inventory", "inventory-corrected")
    )
    assert released == pytest.approx(0.08 * 0.7 / 0.132)
    largest = 0.08 * (0.2 + 2 * 0.2 + 3 * 0.2 + 4 * 0.05 + 5 * 0.05)
    assert corrected == pytest.approx(0.08 * 0.2 / largest)


def test_working_with_few_jobs_left():
    problem = make("job-scheduling")
    np.testing.assert_allclose(problem.transition[0, 1, 1, :2], [0.9, 0.1])
    np.testing.assert_allclose(problem.reward[1, 0, :3, 1], [0.0, 0.45, 0.85])
    np.testing.assert_allclose(problem.reward[0, :, 0, 1], [0.8] * 2 + [0.1] * 4 + [0.8] * 4)


def test_the_optimum_of_job_scheduling_is_that_worked_out_by_hand():
    assert solved("job-scheduling").value == pytest.approx(156 / 17)
    assert solved("job-scheduling").multiplier == pytest.approx([4 / 17])


def test_the_rover_slips_as_released():
    problem = make("mars-rover")
    right = problem.transition[0, 9, 3]  # from the second row and column
    np.testing.assert_allclose(right[[1, 17, 8, 10]], [0.025, 0.025, 0.025, 0.925])
    assert_digits(solve(mars_rover(0.1)).value, "1.49741")


def test_the_rover_drives_on_the_map_8x8rcpo():
    problem = make("mars-rover")
    stays = np.einsum("xax->xa", problem.transition[0])
    ends = np.flatnonzero(np.isclose(stays, 1.0).all(axis=-1))
    pits = [x for x in ends if problem.reward[1, 0, x, 0] < 1.0]
    assert problem.start == 0  # row 0, column 0; the map 8x8 begins at the bottom
    assert [divmod(int(x), 8) for x in set(ends) - set(pits)] == [(7, 7)]
    assert [divmod(int(x), 8) for x in pits] == [
        *((2, 3), (2, 6), (5, 1), (5, 2)),
        *((6, 1), (6, 4), (6, 6), (7, 3)),
    ]
    assert ENVIRONMENTS["mars-rover"].source.endswith("map 8x8rcpo")


def test_the_box_has_the_released_states_and_the_known_least_cost():
    problem = make("box")
    reached = {problem.start}
    while True:
        more = reached | {int(y) for x in reached for y in np.nonzero(problem.transition[0, x])[1]}
        if more == reached:
            break
        reached = more
    assert (problem.states, len(reached)) == (121, 60)
    assert_digits(0.1 - solved("box").slater_gap, "0.03326")
    assert_digits(solve(box(0.3)).value, "1.76485")


def test_the_map_of_triple_q_is_the_released_one():
    problem = make("triple-q-grid")
    free = problem.reward[1, 0].reshape(18, 18, 4)
    assert np.count_nonzero(free[1:, :, 0] == 0) == 105  # moving up, to all rows but the last
    goal = np.flatnonzero(problem.reward[0, 0, 18:36, 0] == 1.0)  # seen from the second row
    assert goal.tolist() == [15]
    assert_digits(100 * solve(triple_q_grid(24)).value, "786.67")


def test_the_released_threshold_of_triple_q_is_met_by_reward_optimal_policies():
    problem = make("triple-q-grid")
    nearly = problem.reward[0] + 1e-6 * problem.reward[1]
    utility = (greedy(problem, nearly)[0] - greedy(problem, problem.reward[0])[0]) / 1e-6
    assert utility == pytest.approx(21.0, abs=1e-3)


@pytest.mark.parametrize(
    ("rows", "columns", "horizon", "budget", "pay"),
    [
        (3, 4, 20, 2, -5),
        (3, 4, 20, 1, -6),
        (3, 4, 20, 1e-6, -7),
        (4, 6, 15, 1e-6, -11),
        (4, 12, 20, 20, -13),
        (4, 12, 20, 10, -15),
        (4, 12, 20, 1e-6, -17),
    ],
)
def test_the_cliff_has_the_published_values_at_every_size(rows, columns, horizon, budget, pay):
    value = solve(cliff(rows, columns, horizon, budget)).value
    assert 100 * (value - horizon) == pytest.approx(pay, abs=1e-5)


def test_sizes_that_make_no_sense_are_refused():
    with pytest.raises(InputError, match="no row between"):
        cliff(2, 4)
    with pytest.raises(InputError, match="not an odd number"):
        cost_chain(4, 0.1)
    with pytest.raises(InputError, match="states is 5, but 4 successors need 6"):
        random_tight("small", states=5)


def test_the_dear_bit_is_matched_with_probability_one_ninth():
    assert solved("six-state").policy[1, 3, 0] == pytest.approx(1 / 9)


@pytest.mark.parametrize(("length", "budget"), [(3, 0.1), (5, 0.3), (11, 1.0)])
def test_the_optimum_of_a_cost_chain_by_hand(length, budget):
    value = solve(cost_chain(length, budget)).value
    matches = 0.1 * (length - 1) / 2 + budget
    assert value == pytest.approx(1 + 1 / length + matches / (2 * length))


@pytest.mark.parametrize("length", [3, 11])
def test_before_the_end_of_a_cost_chain_every_action_leads_there_as_released(length):
    chain = make(f"cost-chain-{length}")
    for bit in range(2):
        before, end = 2 * (length - 1) + bit, 2 * length + bit
        np.testing.assert_array_equal(chain.transition[0, before, :, end], 1.0)
        np.testing.assert_array_equal(chain.reward[:, 0, before], 1.0)  # it pays 1 and is free
        np.testing.assert_array_equal(chain.transition[0, before - 2, 2, bit], 1.0)  # RESET
        assert chain.reward[0, 0, before - 2, 2] == 1 / length


def test_river_swim_at_other_horizons():
    assert_digits(solve(river_swim(50, 4.744)).value, "12.94461")
    assert_digits(solve(river_swim(100, 10.988)).value, "32.10414")
    assert_digits(solve(osband_river_swim(50, 25)).value, "8.46485")


@pytest.mark.parametrize(
    ("discount", "threshold", "pay"),
    [
        (0.85, 1.0, "1.030495"),
        (0.8, 0.7, "0.730965"),
        (0.75, 0.5, "0.559401"),
        (0.7, 0.38, "0.444326"),
    ],
)
def test_the_five_by_five_grid_at_other_discounts(discount, threshold, pay):
    assert_digits(solve(five_by_five((threshold,), discount)).value, pay, 1.4e-6)


def test_the_five_by_five_grid_pays_at_its_magic_cells_alone_as_released():
    problem = make("five-by-five-3")
    paid = problem.reward[0, 1]  # step 0 is the random start
    assert {x: paid[x].tolist() for x in np.flatnonzero(paid.any(axis=-1))} == {
        1: [1.0] * 4,
        3: [0.5] * 4,
    }
    assert problem.transition[0, 0, 0, 0] == 1.0  # off the grid: it stays, and pays nothing


def discounted_program(arrive, pay, utilities, thresholds, discount):
    """(optimum, multipliers) over discounted visits q(x, a) >= 0 from a uniform start, by HiGHS."""
    states, actions = pay.shape
    flow = np.repeat(np.eye(states), actions, axis=1)
    flow[arrive.ravel(), np.arange(states * actions)] -= discount
    found = linprog(
        -pay.ravel(),
        -utilities.reshape(len(thresholds), -1),
        -np.array(thresholds),
        flow,
        np.full(states, 1 / states),
        method="highs",
    )
    return -found.fun, -found.ineqlin.marginals


def test_the_five_by_five_grid_is_a_linear_program_s_on_the_released_numbers():
    # The release, cell by cell: left, right, up and down on 5 x 5; the order does not matter.
    arrive = np.array(
        [[x - (x % 5 > 0), x + (x % 5 < 4), x - 5 * (x > 4), x + 5 * (x < 20)] for x in range(25)]
    )
    pay, utilities = np.zeros((25, 4)), np.zeros((3, 25, 4))
    arrive[1], arrive[3] = 21, 13
    pay[1], pay[3] = 1.0, 0.5
    utilities[0, [3, 1]] = [[1.0], [0.1]]
    utilities[1, [0, 4]] = [[0.7], [0.2]]
    utilities[2, [21, 13]] = [[0.5], [1.5]]
    for name, thresholds in (("five-by-five", [1.5]), ("five-by-five-3", [1.5, 0.85, 2.7])):
        value, prices = discounted_program(
            arrive, pay, utilities[: len(thresholds)], thresholds, 0.9
        )
        known = ENVIRONMENTS[name].published()
        assert known.optimum <= value <= known.optimum + (1 + sum(prices)) * 1e-6
        assert known.multipliers == pytest.approx(prices, abs=1e-6)


def test_the_most_gold_in_200_steps_is_that_of_the_model_checker():
    problem = resource_gems(200)
    assert problem.states == 94
    assert greedy(problem, problem.reward[0])[0] == pytest.approx(22.07144159280847, abs=1e-12)


def test_the_largest_utility_of_the_uniform_random_problem():
    assert_digits(3 + solved("uniform-random-3").slater_gap, "4.52503", 1e-6)


def fingerprint(name: str) -> str:
    problem = make(name, 0)
    kernel = problem.transition
    listed = [kernel.successor, kernel.probability] if isinstance(kernel, Sparse) else [kernel]
    rounded = [np.round(array, 9) + 0.0 for array in (*listed, problem.reward)]
    return hashlib.sha256(b"".join(each.tobytes() for each in rounded)).hexdigest()[:16]


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_instances_are_pinned(name):
    assert fingerprint(name) == PINNED[name]


@pytest.mark.parametrize("seed", range(4))
def test_streaming_of_opse_has_the_same_threshold_and_slack_for_all_rates(seed):
    problem = make("opse-streaming-random", seed)
    assert (problem.threshold[0], largest_utility(problem)) == pytest.approx((2.4, 4.0))
    up, down = problem.table[0, 2, :, 3], problem.table[0, 2, :, 1]
    mu, rho = up[0] / (up[0] + up[1]), down.sum()  # up = (1 - rho) mu_a, down = rho (1 - mu_a)
    assert 0.5 <= mu <= 0.9
    assert 0.1 <= rho <= 0.4
    again = opse_streaming(mu, rho)
    np.testing.assert_allclose(again.table, problem.table, atol=1e-12)


def test_tabular_problems_of_opse_are_sparse_and_ask_for_six_tenths():
    drawn = [make("opse-tabular", seed) for seed in range(40)]
    assert {(each.states, each.actions, each.horizon) for each in drawn} == {(5, 3, 4)}
    rewards = np.stack([each.reward for each in drawn])
    assert set(np.unique(rewards)) == {0.0, 1.0}
    assert rewards.mean() == pytest.approx(0.1, abs=0.02)
    for each in drawn[:5]:
        assert each.threshold[0] == pytest.approx(0.6 * largest_utility(each))
    assert len({each.start for each in drawn}) == 5


def test_linear_problems_of_opse_have_rank_five():
    problem = make("opse-linear", 2)
    assert (problem.states, problem.actions, problem.horizon) == (100, 3, 4)
    rows = problem.table.reshape(4, 300, 100)
    assert [np.linalg.matrix_rank(each, tol=1e-9) for each in rows] == [5] * 4
    both = np.concatenate([rows, problem.reward.reshape(2, 4, 300).transpose(1, 2, 0)], axis=2)
    assert [np.linalg.matrix_rank(each, tol=1e-9) for each in both] == [5] * 4
    assert problem.reward.max(axis=(1, 2, 3)) == pytest.approx([1.0, 1.0])
    assert problem.threshold[0] == pytest.approx(0.68 * largest_utility(problem))


def test_unknown_names_suggest_the_nearest():
    with pytest.raises(InputError, match="did you mean 'published'"):
        make("publshed")
    with pytest.raises(InputError, match="instance seed is -1"):
        make("random-printed", -1)


def test_names_may_carry_the_version_that_is_meant():
    for name, each in ENVIRONMENTS.items():
        assert named(f"{name}-v{each.version}") is each
    assert make("inventory-v1").name == "inventory"
    assert make("random-printed-v0", 3).name == "random-printed (seed 3)"
    with pytest.raises(InputError, match="inventory is at version 1, so there is no inventory-v0"):
        make("inventory-v0")
    with pytest.raises(InputError, match="unknown environment 'nothing-v0'"):
        make("nothing-v0")


def test_the_listing_says_what_is_known():
    rows = {row["name"]: row for row in catalogue.list_environments()}
    assert set(rows) == set(ENVIRONMENTS)
    rover = rows["mars-rover"]
    sizes = ("states", "actions", "horizon", "constraints")
    assert [rover[each] for each in sizes] == [64, 4, 30, 1]
    assert (rover["sense"], rover["version"]) == ("costs", 0)
    assert rover["units"][1] == {"of": "pits", "factor": -1.0, "offset": 30}
    assert rows["random-printed"]["optimum"] is None
    assert rows["five-by-five"]["tail_bound"] < 1e-6
    assert "[unverified]" in rows["queue"]["summary"]
    assert rows["queue"]["unverified"]
    assert "[unverified]" in make("queue").name


def test_the_page_lists_every_environment_with_its_numbers():
    page = (ROOT / "docs" / "environments.md").read_text()
    for row in catalogue.list_environments():
        sizes = [row[each] for each in ("states", "actions", "horizon", "constraints")]
        known = row["published"]
        values = ["per seed", "per seed"]
        if known is not None:
            prices = ", ".join(f"{each:.4g}" for each in known["multipliers"])
            values = [f"{known['optimum']:.7g}", prices]
        cells = [f"`{row['name']}`", *map(str, sizes), row["sense"], *values]
        assert f"| {' | '.join(cells)} |" in page, row["name"]


def test_the_table_fits_into_a_hundred_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    print_environments(catalogue.list_environments())
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= 100
    assert "queue*" in printed
    assert all(name in printed for name in ENVIRONMENTS)
