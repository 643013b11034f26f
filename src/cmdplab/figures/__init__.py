"""Figures, drawn from records: curves with bands, portraits of a policy, algorithms side by side.

Nothing here runs or judges; a figure reads what was recorded. `figure` gives a Matplotlib object.
"""

from cmdplab.figures.objects import figure

__all__ = ["figure"]
