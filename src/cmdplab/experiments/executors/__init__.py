"""Executors of the runs of a sweep: local processes, a GPU, or a Ray cluster.

An executor receives works and reports events. Stores write the records.
"""
