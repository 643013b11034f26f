"""Figures, drawn from records: curves with bands, portraits of a policy, algorithms side by side.

Nothing here runs or judges; a figure reads what was recorded.
"""
