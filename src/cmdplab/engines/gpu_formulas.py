"""The formulas of equations.py in the precision of a kernel, never retyped.

A literal such as 1.0 is a double, and a double among singles drags the arithmetic along: at the
paper's size a step had 52 conversions. In single precision the same code therefore runs with its
literals as singles.
"""

from __future__ import annotations

from functools import cache
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numba.extending import register_jitable

from cmdplab.algorithms import equations


@cache
def formulas(real: Any) -> SimpleNamespace:
    """Every function of equations.py, by name, with literals of the type `real`."""
    plain = {name: f for name, f in vars(equations).items() if isinstance(f, FunctionType)}
    if real is np.float64:
        return SimpleNamespace(**plain)
    names: dict[str, Any] = dict(vars(equations))
    for name, function in plain.items():
        names[name] = register_jitable(_with_literals(function, real, names))
    return SimpleNamespace(**{name: names[name] for name in plain})


def _with_literals(function: FunctionType, real: Any, names: dict[str, Any]) -> FunctionType:
    """The same code with other literals, which calls what `names` holds."""
    code = function.__code__
    literals = tuple(real(each) if isinstance(each, float) else each for each in code.co_consts)
    return FunctionType(code.replace(co_consts=literals), names, function.__name__)
