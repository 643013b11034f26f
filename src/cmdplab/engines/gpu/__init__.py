"""The GPU engine: many runs in one launch, one block of threads for each run.

batch.py plays the runs of any family. A family consists of a player (primal_dual, triple_q), a
kernel (`_episode`) and the steps of the kernel. This subpackage alone imports numba-cuda, an
optional dependency.
"""
