"""The GPU engine: many runs in one launch, one block of threads each; numba-cuda is an extra.

batch drives whatever family it is given; a family has a player (primal_dual, triple_q), its kernel
(`_episode`) and the steps of that kernel. Nothing outside this package imports numba-cuda.
"""
