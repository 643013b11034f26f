"""Engines, which own the loops: they turn (problem, row, noise) into exact returns per episode.

host.py is written to be read, cpu/ and gpu/ to be fast. All engines give the same numbers. The
formulas are in algorithms/. The subpackage measures/ judges the returns.
"""
