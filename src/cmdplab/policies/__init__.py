"""Policies simulated with intervals, compared, matched by names, and explained state by state.

The policy itself, its files and its exact returns are in cmdp/. This subpackage needs optima or
statistics.
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
