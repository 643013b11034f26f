"""The public names and subpackages of cmdplab, and the module that each one lives in.

`__init__.py` reads this file to resolve a name at first use. Type checkers read it, too.
"""

from . import (
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
from .algorithms import algorithm as algorithm
from .algorithms.families.primal_dual import PrimalDual as PrimalDual
from .algorithms.families.safe import Safe as Safe
from .algorithms.learner import Episode as Episode, Learner as Learner
from .algorithms.task import Task as Task
from .cmdp.budgets import (
    AlmostSure as AlmostSure,
    Anytime as Anytime,
    Chance as Chance,
    CVaR as CVaR,
    Expected as Expected,
    Forbidden as Forbidden,
    VisitCap as VisitCap,
)
from .cmdp.evaluation import Evaluation as Evaluation, evaluate as evaluate
from .cmdp.labels import Labels as Labels
from .cmdp.memory import Counter as Counter
from .cmdp.policy import Policy as Policy
from .cmdp.problem import CMDP as CMDP
from .cmdp.stationary import (
    Average as Average,
    Discounted as Discounted,
    StationaryCMDP as StationaryCMDP,
)
from .environments import make as make
from .environments.catalogue import (
    describe as describe,
    list_algorithms as list_algorithms,
    list_environments as list_environments,
)
from .errors import (
    CmdplabError as CmdplabError,
    EngineError as EngineError,
    InputError as InputError,
    LearnerError as LearnerError,
    StorageError as StorageError,
)
from .experiments.experiment import Experiment as Experiment
from .experiments.play import Job as Job, Run as Run
from .experiments.records.load import load_runs as load_runs
from .experiments.run import run as run, run_many as run_many
from .experiments.sweep import sweep as sweep
from .formats.estimates import Estimated as Estimated, from_counts as from_counts
from .formats.logs import from_trajectories as from_trajectories
from .formats.tables import from_table as from_table
from .live import (
    Fitted as Fitted,
    Grid as Grid,
    Learned as Learned,
    Quantiles as Quantiles,
    advise as advise,
    fit as fit,
    learn as learn,
)
from .messages import quiet as quiet
from .policies import (
    compare_policies as compare_policies,
    explain as explain,
    match_policy as match_policy,
    simulate as simulate,
)
from .solvers import (
    RobustSolution as RobustSolution,
    Solution as Solution,
    solve as solve,
    solve_robust as solve_robust,
)
from .solvers.budgeted import BudgetSolution as BudgetSolution, solve_budgets as solve_budgets
from .solvers.thresholds.conflicts import Conflict as Conflict, conflict as conflict
from .solvers.thresholds.frontier import Frontier as Frontier, frontier as frontier
from .solvers.thresholds.sensitivity import Sensitivity as Sensitivity, sensitivity as sensitivity
from .studies.compare import compare as compare
from .testing.contract import check_learner as check_learner

__all__: list[str]
__version__: str
