"""What a policy does: simulated with intervals, compared with another, explained state by state.

The policy itself, its files and its exact worth are in cmdp/; here are the answers that need an
optimum or statistics.
"""

from cmdplab.policies.comparison import Difference, compare_policies
from cmdplab.policies.explanation import Explanation, explain
from cmdplab.policies.matching import match_policy
from cmdplab.policies.simulation import Simulation, simulate

__all__ = [
    "Difference",
    "Explanation",
    "Simulation",
    "compare_policies",
    "explain",
    "match_policy",
    "simulate",
]
