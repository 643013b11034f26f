"""The families of algorithms: row, state, numbers, and how an episode is learnt.

A family is one module, or two if it is long: NAME.py has the row, NAME_episode.py the loops. From
its `FAMILY`, running/ derives all that a run needs.
"""
