"""Runs and many of them: one in memory, one that survives, a folder of them.

The experiment file is read here, runs are carried out (executors/) and kept (records/). Judging is
the work of measures/, drawing that of figures/.
"""
