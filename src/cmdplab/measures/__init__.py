"""Measures of a run from the exact returns of its episodes: curves, mistakes, swings, verdicts.

The measures know neither algorithms nor engines. Figures and audits read their results.
"""

from cmdplab.measures.measures import Measures, Summary

__all__ = ["Measures", "Summary"]
