"""The families of algorithms: row, state, numbers, and the update after an episode.

A family is one module, or two if it is long: NAME.py has the row, NAME_episode.py the loops. From
its `FAMILY`, running/ derives the parts of a run.
"""
