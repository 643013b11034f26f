"""What compiled loops stand on: Numba configured once, aligned arrays, exp and log, random numbers.

Nothing here knows a problem or an algorithm.
"""
