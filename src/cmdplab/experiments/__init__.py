"""Runs of algorithms: in memory, in a folder, or many runs of an experiment in one folder.

This subpackage reads experiment files, plays runs (executors/) and keeps them (records/). The
subpackage measures/ evaluates runs, and figures/ draws them.
"""
