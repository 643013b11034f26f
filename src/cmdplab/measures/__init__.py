"""Judging a run from the exact returns of its episodes: curves, mistakes, swings, and words.

Streaming: memory does not grow with the number of episodes. Nothing here knows an algorithm or
an engine; figures and audits read what these measures leave.
"""

from typing import TYPE_CHECKING

from cmdplab.messages import moved_names

if not TYPE_CHECKING:
    __getattr__ = moved_names(__name__, {"Measures": "cmdplab.measures.measures"})  # of 0.1.0
