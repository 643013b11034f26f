"""Numerics of compiled loops: one configuration of Numba, aligned arrays, exp and log, random
numbers.

This subpackage imports no problem and no algorithm.
"""
