"""cmdplab: a laboratory for online constrained Markov decision processes.

The public names, resolved on first use so that importing the package costs nothing.
"""

import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cmdplab.algorithms import algorithm
    from cmdplab.algorithms.primal_dual import PrimalDual
    from cmdplab.cmdp.evaluation import Evaluation, evaluate
    from cmdplab.cmdp.problem import CMDP
    from cmdplab.environments import make
    from cmdplab.environments.description import describe
    from cmdplab.errors import InputError
    from cmdplab.experiments.experiment import Experiment
    from cmdplab.experiments.records.load import load
    from cmdplab.experiments.run import Job, Run, run, run_many
    from cmdplab.experiments.sweep import sweep
    from cmdplab.live import learn
    from cmdplab.messages import quiet
    from cmdplab.solvers import Solution, solve

__version__ = "0.2.0.dev0"

_HOME = {
    "CMDP": "cmdp.problem",
    "Evaluation": "cmdp.evaluation",
    "Experiment": "experiments.experiment",
    "InputError": "errors",
    "Job": "experiments.run",
    "PrimalDual": "algorithms.primal_dual",
    "Run": "experiments.run",
    "Solution": "solvers",
    "algorithm": "algorithms",
    "describe": "environments.description",
    "evaluate": "cmdp.evaluation",
    "learn": "live",
    "load": "experiments.records.load",
    "make": "environments",
    "occupancy": "cmdp.evaluation",
    "quiet": "messages",
    "returns": "cmdp.evaluation",
    "run": "experiments.run",
    "run_many": "experiments.run",
    "solve": "solvers",
    "sweep": "experiments.sweep",
}

# Names of 0.1.0 that go on for one release, and what to write instead.
_RENAMED = {
    "occupancy": "cmdplab.evaluate(problem, policy).occupancy",
    "returns": "cmdplab.evaluate(problem, policy).returns",
}

__all__ = [
    "CMDP",
    "Evaluation",
    "Experiment",
    "InputError",
    "Job",
    "PrimalDual",
    "Run",
    "Solution",
    "algorithm",
    "describe",
    "evaluate",
    "learn",
    "load",
    "make",
    "quiet",
    "run",
    "run_many",
    "solve",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cmdplab' has no attribute {name!r}")
    if name in _RENAMED:
        warnings.warn(
            f"cmdplab.{name} goes away in 0.3: use {_RENAMED[name]}", FutureWarning, stacklevel=2
        )
    return getattr(import_module(f"cmdplab.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
