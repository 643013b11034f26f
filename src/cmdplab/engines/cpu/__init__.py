"""The CPU engine: one session a family, whose episodes are compiled loops.

Sessions are named after their family; the compiled episode beside each ends in `_episode`. What
they share is in layout, storage, loops and boxes. Formulas stay in algorithms/: importing this
package lets compiled code call them, but for those of primal-duals bit for bit as plain Python.
"""

from cmdplab.algorithms import equations
from cmdplab.algorithms.planner import FORMULAS as OF_PLANNERS
