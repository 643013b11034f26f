"""Engines, which own the loops: they turn (problem, row, noise) into exact returns per episode.

host.py is written to be read. The compiled loops in algorithms/ and gpu/ are fast. All engines give
equal numbers, up to rounding. Formulas are in algorithms/. measures/ judges the returns.
"""
