"""Predefined experiments, `reproduce` and `compare`, and what is concluded from a folder of runs.

The machinery that carries them out is that of every sweep, in experiments/.
"""
