"""cmdplab: a laboratory for online constrained Markov decision processes.

The public names, resolved on first use so that importing the package costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cmdplab.algorithms import algorithm
    from cmdplab.algorithms.primal_dual import PrimalDual
    from cmdplab.announcing import quiet
    from cmdplab.describing import describe
    from cmdplab.environments import make
    from cmdplab.errors import InputError
    from cmdplab.exact import occupancy, returns
    from cmdplab.experiment import Experiment
    from cmdplab.live import learn
    from cmdplab.loading import load
    from cmdplab.problem import CMDP
    from cmdplab.running import Job, Run, run, run_many
    from cmdplab.solvers import Solution, solve
    from cmdplab.sweeping import sweep

__version__ = "0.1.0"

_HOME = {
    "CMDP": "problem",
    "Experiment": "experiment",
    "InputError": "errors",
    "Job": "running",
    "PrimalDual": "algorithms.primal_dual",
    "Run": "running",
    "Solution": "solvers",
    "algorithm": "algorithms",
    "describe": "describing",
    "learn": "live",
    "load": "loading",
    "make": "environments",
    "occupancy": "exact",
    "quiet": "announcing",
    "returns": "exact",
    "run": "running",
    "run_many": "running",
    "solve": "solvers",
    "sweep": "sweeping",
}

__all__ = [
    "CMDP",
    "Experiment",
    "InputError",
    "Job",
    "PrimalDual",
    "Run",
    "Solution",
    "algorithm",
    "describe",
    "learn",
    "load",
    "make",
    "occupancy",
    "quiet",
    "returns",
    "run",
    "run_many",
    "solve",
    "sweep",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'cmdplab' has no attribute {name!r}")
    return getattr(import_module(f"cmdplab.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
