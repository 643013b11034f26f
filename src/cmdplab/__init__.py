"""cmdplab: a laboratory for online constrained Markov decision processes.

The public names and rooms, resolved on first use so that importing the package costs nothing.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # as in `typing`, whose import takes longer than all of this
if TYPE_CHECKING:
    from typing import Any

    from cmdplab import (
        algorithms as algorithms,
        audit as audit,
        cmdp as cmdp,
        engines as engines,
        environments as environments,
        errors as errors,
        experiments as experiments,
        figures as figures,
        formats as formats,
        gym as gym,
        live as live,
        measures as measures,
        policies as policies,
        report as report,
        solvers as solvers,
        statistics as statistics,
        studies as studies,
        testing as testing,
        theory as theory,
    )
    from cmdplab.algorithms import algorithm
    from cmdplab.algorithms.learner import Episode, Learner
    from cmdplab.algorithms.primal_dual import PrimalDual
    from cmdplab.algorithms.safe import Safe
    from cmdplab.algorithms.task import Task
    from cmdplab.cmdp.budgets import (
        AlmostSure,
        Anytime,
        Chance,
        CVaR,
        Expected,
        Forbidden,
        VisitCap,
    )
    from cmdplab.cmdp.evaluation import Evaluation, evaluate
    from cmdplab.cmdp.labels import Labels
    from cmdplab.cmdp.memory import Counter
    from cmdplab.cmdp.policy import Policy
    from cmdplab.cmdp.problem import CMDP
    from cmdplab.cmdp.stationary import Average, Discounted, StationaryCMDP
    from cmdplab.environments import make
    from cmdplab.environments.catalogue import list_algorithms, list_environments
    from cmdplab.environments.description import describe
    from cmdplab.errors import CmdplabError, EngineError, InputError, LearnerError, StorageError
    from cmdplab.experiments.experiment import Experiment
    from cmdplab.experiments.play import Job, Run
    from cmdplab.experiments.records.load import load_runs
    from cmdplab.experiments.run import run, run_many
    from cmdplab.experiments.sweep import sweep
    from cmdplab.formats.estimates import Estimated, from_counts, from_trajectories
    from cmdplab.formats.tables import from_table
    from cmdplab.live import Fitted, Grid, Learned, Quantiles, advise, fit, learn
    from cmdplab.messages import quiet
    from cmdplab.policies import compare_policies, explain, simulate
    from cmdplab.solvers import RobustSolution, Solution, solve, solve_robust
    from cmdplab.solvers.budgeted import BudgetSolution, solve_budgets
    from cmdplab.solvers.thresholds.conflicts import Conflict, conflict
    from cmdplab.solvers.thresholds.frontier import Frontier, frontier
    from cmdplab.solvers.thresholds.sensitivity import Sensitivity, sensitivity
    from cmdplab.studies.compare import compare
    from cmdplab.testing.contract import check_learner

__version__ = "0.2.0.dev0"

# Where each public name lives.
_HOMES = {
    "algorithms": ["algorithm"],
    "algorithms.learner": ["Episode", "Learner"],
    "algorithms.primal_dual": ["PrimalDual"],
    "algorithms.safe": ["Safe"],
    "algorithms.task": ["Task"],
    "cmdp.budgets": [
        "AlmostSure",
        "Anytime",
        "CVaR",
        "Chance",
        "Expected",
        "Forbidden",
        "VisitCap",
    ],
    "cmdp.evaluation": ["Evaluation", "evaluate"],
    "cmdp.labels": ["Labels"],
    "cmdp.memory": ["Counter"],
    "cmdp.policy": ["Policy"],
    "cmdp.problem": ["CMDP"],
    "cmdp.stationary": ["Average", "Discounted", "StationaryCMDP"],
    "environments": ["make"],
    "environments.catalogue": ["list_algorithms", "list_environments"],
    "environments.description": ["describe"],
    "errors": ["CmdplabError", "EngineError", "InputError", "LearnerError", "StorageError"],
    "experiments.experiment": ["Experiment"],
    "experiments.records.load": ["load_runs"],
    "experiments.play": ["Job", "Run"],
    "experiments.run": ["run", "run_many"],
    "experiments.sweep": ["sweep"],
    "formats.estimates": ["Estimated", "from_counts", "from_trajectories"],
    "formats.tables": ["from_table"],
    "live": ["Fitted", "Grid", "Learned", "Quantiles", "advise", "fit", "learn"],
    "messages": ["quiet"],
    "policies": ["compare_policies", "explain", "simulate"],
    "solvers.budgeted": ["BudgetSolution", "solve_budgets"],
    "solvers": ["RobustSolution", "Solution", "solve", "solve_robust"],
    "solvers.thresholds.conflicts": ["Conflict", "conflict"],
    "solvers.thresholds.frontier": ["Frontier", "frontier"],
    "solvers.thresholds.sensitivity": ["Sensitivity", "sensitivity"],
    "studies.compare": ["compare"],
    "testing.contract": ["check_learner"],
}
_ROOMS = (
    "algorithms",
    "audit",
    "cmdp",
    "engines",
    "environments",
    "errors",
    "experiments",
    "figures",
    "formats",
    "gym",
    "live",
    "measures",
    "policies",
    "report",
    "solvers",
    "statistics",
    "studies",
    "testing",
    "theory",
)
_HOME = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "CMDP",
    "AlmostSure",
    "Anytime",
    "Average",
    "BudgetSolution",
    "CVaR",
    "Chance",
    "CmdplabError",
    "Conflict",
    "Counter",
    "Discounted",
    "EngineError",
    "Episode",
    "Estimated",
    "Evaluation",
    "Expected",
    "Experiment",
    "Fitted",
    "Forbidden",
    "Frontier",
    "Grid",
    "InputError",
    "Job",
    "Labels",
    "Learned",
    "Learner",
    "LearnerError",
    "Policy",
    "PrimalDual",
    "Quantiles",
    "RobustSolution",
    "Run",
    "Safe",
    "Sensitivity",
    "Solution",
    "StationaryCMDP",
    "StorageError",
    "Task",
    "VisitCap",
    "advise",
    "algorithm",
    "check_learner",
    "compare",
    "compare_policies",
    "conflict",
    "describe",
    "evaluate",
    "explain",
    "fit",
    "from_counts",
    "from_table",
    "from_trajectories",
    "frontier",
    "learn",
    "list_algorithms",
    "list_environments",
    "load_runs",
    "make",
    "quiet",
    "run",
    "run_many",
    "sensitivity",
    "simulate",
    "solve",
    "solve_budgets",
    "solve_robust",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(f"cmdplab.{_HOME[name]}"), name)
    if name in _ROOMS:
        return import_module(f"cmdplab.{name}")
    raise AttributeError(f"module 'cmdplab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, *_ROOMS, "__version__"])
