"""Learners that are told the kernel: nothing is counted, nothing explored, Eqs. 4 and 5 remain."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from conftest import binding, random_problem
from oracles import session
from oracles.primal_dual import PlainPrimalDual

from cmdplab.algorithms import ALGORITHMS, algorithm
from cmdplab.algorithms.baselines import task_for
from cmdplab.algorithms.families.primal_dual import PrimalDual, PrimalDualState
from cmdplab.algorithms.schedules import Constant
from cmdplab.algorithms.task import Task
from cmdplab.algorithms.uopt_rpgpd import UOPT_RPGPD
from cmdplab.cmdp.transitions import Sparse
from cmdplab.engines.choose import Wanted, choose
from cmdplab.engines.gpu.limits import check_row
from cmdplab.errors import InputError
from cmdplab.experiments.run import run
from cmdplab.experiments.run_settings import RunSettings
from cmdplab.formats import find
from cmdplab.solvers import solve
from cmdplab.theory.saddle import growth, largest_step, saddle_point

FAMILY = [row for row in ALGORITHMS.values() if isinstance(row, PrimalDual)]
UOPT = UOPT_RPGPD.with_settings(kernel="known")


def fixed(step: float, temperature: float) -> PrimalDual:
    """UOpt-RPGPD as printed, with one step and one temperature."""
    eta, tau = Constant(step), Constant(temperature)
    return replace(UOPT, policy_step=eta, dual_step=eta, temperature=tau)


@pytest.mark.parametrize("row", FAMILY, ids=lambda row: f"{row.name}-{row.preset}")
def test_engines_agree_and_the_noise_does_not_matter(row):
    problem = random_problem(4, 3, 4, 2, 7)
    known = row.with_settings(kernel="known")
    task = task_for(known, problem, solve(problem))
    plain = session("host", problem, known, task, 0).play(30)
    for seed in (0, 1):
        compiled = session("cpu", problem, known, task, seed).play(30)
        np.testing.assert_allclose(compiled.returns, plain.returns, atol=1e-10)
        np.testing.assert_allclose(compiled.multiplier, plain.multiplier, atol=1e-10)


def test_lists_of_successors_are_known_as_tables_are():
    table = find("river-swim", 0)
    lists = replace(table, transition=Sparse.of(table.transition[0]))
    one, other = (run(each, UOPT, 200, 0).curves for each in (table, lists))
    np.testing.assert_allclose(one["gap"], other["gap"], atol=1e-9)


def test_the_estimate_is_the_kernel_and_there_is_no_bonus():
    problem = random_problem(4, 3, 4, 1, 3)
    task = task_for(UOPT, problem, solve(problem))
    learner = PlainPrimalDual(UOPT, task)
    estimate, bonus = learner.model(learner.init())
    np.testing.assert_allclose(estimate, problem.table, rtol=1e-12)
    assert not bonus.any()
    played = session("cpu", problem, UOPT, task, 0)
    played.play(50)
    np.testing.assert_allclose(played.state().counts, problem.table, rtol=1e-12)


CASES = [(N, tau, seed) for N in (1, 2, 3) for tau in (0.3, 0.1, 0.05) for seed in (0, 300)]


@pytest.mark.parametrize(("constraints", "tau", "seed"), [*CASES, (1, 0.03, 0), (1, 1.0, 0)])
def test_updates_settle_below_the_largest_step_and_leave_above_it(constraints, tau, seed):
    """20 of 20 cases at 0.95 and 1.05 of `theory.stability.largest_step`."""
    problem = binding(constraints, seed)
    saddle = saddle_point(problem, tau)
    for share in (0.95, 1.05):
        eta = share * largest_step(problem, saddle)
        row = fixed(eta, tau)
        task = task_for(row, problem, solve(problem))
        start = PrimalDualState.initial(row, task)._replace(
            log_policy=saddle.log_policy,
            policy=saddle.policy,
            multiplier=saddle.multiplier + 1e-7,
        )
        played = session("cpu", problem, row, task, 0, start)
        played.play(round(6.0 / abs(math.log(growth(problem, saddle, eta)))))
        end = played.state()
        away = np.linalg.norm(end.multiplier - saddle.multiplier)
        away += np.linalg.norm(end.policy - saddle.policy)
        assert (away < 1e-7) == (share < 1.0)


def test_from_the_uniform_policy_a_short_step_finds_the_saddle_point():
    problem = find("random-printed", 0)
    found, saddle = run(problem, fixed(0.05, 0.05), 12_000, 0), saddle_point(problem, 0.05)
    assert found.curves["multiplier_1"][-1] == pytest.approx(saddle.multiplier[0], abs=1e-9)
    assert found.summary.final_violation == pytest.approx(0.05 * saddle.multiplier[0], abs=1e-9)


def test_without_regularisation_the_last_iterate_swings_and_the_average_converges():
    """Appendix A: primal-dual methods without exploration converge on average alone."""
    problem = find("random-printed", 0)
    plain = replace(fixed(0.05, 0.1), temperature=Constant(0.0))
    found = run(problem, plain, 20_000, 0).summary
    assert found.tail_range > 0.2  # the gap of the last iterates
    assert found.strong_violation_regret > 0.02 * found.episodes
    assert abs(found.weak_regret) < 0.01 * found.episodes  # of the average iterate: weak regret / K
    assert found.weak_violation_regret < 0.01 * found.episodes


def test_it_is_a_setting_of_its_family_alone():
    with pytest.raises(InputError, match="OptCMDP has no setting kernel"):
        algorithm("OptCMDP").with_settings(kernel="known")
    with pytest.raises(InputError, match="unknown kernel 'guessed'"):
        algorithm("UOpt-RPGPD").with_settings(kernel="guessed")
    with pytest.raises(InputError, match="unknown kernel 'guessed'"):
        replace(UOPT, kernel="guessed")
    assert "known" in UOPT.heuristic


def test_only_runs_of_a_known_kernel_say_so_in_their_folders():
    problem = random_problem(3, 2, 2, 1)
    learnt = RunSettings.of(problem, algorithm("UOpt-RPGPD", "printed"), 10, 0)
    known = RunSettings.of(problem, UOPT, 10, 0)
    assert "kernel" not in learnt.model_dump()
    assert known.model_dump()["kernel"] == "known"
    assert known.row() == UOPT
    assert known.folder != learnt.folder


def test_where_nobody_can_tell_the_kernel_it_is_refused():
    problem = random_problem(3, 2, 2, 1)
    task = task_for(UOPT, problem, solve(problem))
    with pytest.raises(InputError, match="nobody can tell it here"):
        session("cpu", problem, UOPT, Task.of(problem, 1.0), 0)
    with pytest.raises(InputError, match="counts nothing"):
        run(problem, UOPT, 10, rewards="bernoulli")
    with pytest.raises(InputError, match="take the engine cpu for a known kernel"):
        check_row(UOPT, task)
    assert choose("auto", [Wanted(problem, UOPT, task, 1e6)], 1).on_gpu == [False]
