"""Figures from records: curves with bands, portraits of a policy, algorithms side by side.

Nothing here runs or judges an algorithm. `figure` returns a Matplotlib figure.
"""

from cmdplab.figures.objects import figure

__all__ = ["figure"]
