"""The CPU engine: one session a family, whose episodes are compiled loops.

Sessions are named after their family; the compiled episode beside each ends in `_episode`. What
they share is in session, layout, storage, loops and boxes. Formulas stay in algorithms/: importing
this package lets compiled code call them, but for those of primal-duals bit for bit as plain
Python.
"""

from cmdplab.algorithms import equations
from cmdplab.algorithms.planner import FORMULAS as OF_PLANNERS
from cmdplab.algorithms.safe import FORMULAS as OF_COINS
from cmdplab.algorithms.softmax_search import FORMULAS as OF_SOFTMAX_SEARCH
from cmdplab.algorithms.triple_q import FORMULAS as OF_TRIPLE_Q
from cmdplab.algorithms.unconstrained import FORMULAS as OF_OPTIMISTS
from cmdplab.numerics.compiling import FAST, callable_when_compiled

callable_when_compiled(equations.formulas().values(), FAST)
callable_when_compiled(
    (*OF_PLANNERS, *OF_TRIPLE_Q, *OF_SOFTMAX_SEARCH, *OF_COINS, *OF_OPTIMISTS), set()
)
