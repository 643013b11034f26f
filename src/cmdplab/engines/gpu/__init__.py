"""The GPU engine: many runs in one launch, one block of threads each. It needs the extra
numba-cuda.

batch.py drives any family. A family consists of a player (primal_dual, triple_q), a kernel
(`_episode`) and the steps of the kernel. No other package imports numba-cuda.
"""
