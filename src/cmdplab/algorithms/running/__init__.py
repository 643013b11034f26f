"""Runs on the cores, derived from the parts of a family: what no family has to write.

`session.py` plays, replays, observes and resumes. `episodes.py` has the loops, `layout.py` brings
states to the axes of the loops and back, `storage.py` and `seen.py` keep counts and kernels.
"""
