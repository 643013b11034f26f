"""The CPU engine: one session a family, whose episodes are compiled loops.

Sessions are named after their family; the compiled episode beside each ends in `_episode`. What
they share is in layout, storage, loops and boxes. Formulas stay in algorithms/equations.py:
importing this package lets compiled code call them.
"""

from cmdplab.algorithms import equations
from cmdplab.numerics.compiling import callable_when_compiled

callable_when_compiled(equations)
