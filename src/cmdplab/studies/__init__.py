"""Predefined experiments, `reproduce`, `compare` and the board, and their results.

The functions of every sweep, in experiments/, play them.
"""
