"""Judging a run from the exact returns of its episodes: curves, mistakes, swings, and words.

Streaming: memory does not grow with the number of episodes. Nothing here knows an algorithm or
an engine; figures and audits read what these measures leave.
"""

from cmdplab.measures.measures import Measures, Summary

__all__ = ["Measures", "Summary"]
