"""Decorators of functions that run compiled, and of functions that compiled code calls.

Numba is loaded by the first call of a compiled function (`lowering.py`), and `cache.py` keeps its
code on disk. `CMDPLAB_INTERPRETED=1` compiles nothing: every loop then runs in Python, for a
debugger, with the numbers of the compiled loops to the bit or to 1e-13.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property, update_wrapper
from typing import Any, TypeVar

INTERPRETED = os.environ.get("CMDPLAB_INTERPRETED", "") not in ("", "0")

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be reordered and fused; infinities and NaN keep their meaning (an unvisited pair has an
# infinite bonus). Without reordering no sum is vectorised: the episode takes 2.5 times as long.
FAST = {"reassoc", "contract", "nsz", "arcp"}

_PENDING: list[Callable[[Any], None]] = []  # registrations that wait for Numba
_CALLED: set[Compiled] = set()


class Compiled:
    """A function that runs compiled if Python calls it. Numba is loaded at the first call."""

    def __init__(self, function: Callable[..., Any], fastmath: set[str], inline: bool) -> None:
        update_wrapper(self, function)
        self.py_func, self.compiled_with = function, (fastmath, inline)
        _CALLED.add(self)

    @cached_property
    def dispatcher(self) -> Any:
        """Return the dispatcher of Numba, which compiles for the types of its arguments."""
        return load().dispatcher(self, *self.compiled_with)

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)


def compiled(function: Function) -> Function:
    """Compile a function: cached on disk, without the GIL, sums vectorised.

    Array arguments must not overlap, and the function must not allocate: see `lowering._Lean`.
    """
    return _compile(function, FAST)


def compiled_in_order(function: Function) -> Function:
    """Compile a function with every sum in the order in which it is written."""
    return _compile(function, FAST - {"reassoc"})


def compiled_exactly(function: Function) -> Function:
    """Compile a function to the bits of plain Python: nothing is reordered, fused or inverted."""
    return _compile(function, set())


def compiled_apart(function: Function) -> Function:
    """Compile a long function with several callers once, not into each caller.

    The planner compiles in a quarter of the time, and its sweeps take as long as before.
    """
    return _compile(function, FAST, inline=False)


def _compile(function: Function, fastmath: set[str], inline: bool = True) -> Function:
    made = function if INTERPRETED else Compiled(function, fastmath, inline)
    return made  # type: ignore[return-value]


def steering(function: Function) -> Function:
    """Compile a function for compiled callers, and leave it plain Python for Python callers.

    Such a function decides which loops run, and takes little time itself. For a single call,
    compiling would take a thousand times as long as running.
    """
    return _callable(function, FAST, inline=False)


def steering_in_order(function: Function) -> Function:
    """Compile as `steering` does, with every sum in the order in which it is written."""
    return _callable(function, FAST - {"reassoc"}, inline=True)


def formula(function: Function) -> Function:
    """Let compiled code call a plain function, in the order of its operations."""
    return _callable(function, set(), inline=None)


def callable_when_compiled(formulas: Iterable[Callable[..., Any]], fastmath: set[str]) -> None:
    """Let compiled code call plain functions, compiled with the flags `fastmath`."""
    for formula in formulas:
        _callable(formula, fastmath, inline=None)


def _callable(function: Function, fastmath: set[str], inline: bool | None) -> Function:
    return _pending(function, "let_call", (fastmath, inline))


def by_type(bodies: Mapping[Any, Any], otherwise: Any = None) -> Callable[[Function], Function]:
    """Decorate a compiled function: calls run the body for the class of their first argument.

    bodies : the body for each NamedTuple; all else runs the decorated function, or `otherwise` if
    that is a stub. One loop thus serves several ways of storing a table, without a branch at run
    time.
    """

    def decorate(function: Function) -> Function:
        if INTERPRETED:
            default = otherwise or function
            return lambda given, *rest: bodies.get(type(given), default)(given, *rest)  # type: ignore[return-value]
        if not isinstance(function, Compiled):  # a stub
            return _pending(function, "let_choose", (bodies, otherwise, FAST))
        body: Any = function.py_func
        return _pending(body, "let_choose", (bodies, function, FAST))  # type: ignore[no-any-return]

    return decorate


def _pending(function: Function, register: str, how: tuple[Any, ...]) -> Function:
    """Let `load` register a function. `cache.fingerprint` reads the options of its compilation."""
    vars(function)["compiled_with"] = how
    _PENDING.append(lambda lowering: getattr(lowering, register)(function, *how))
    return function


def called() -> frozenset[Any]:
    """Return every function that Python may call compiled."""
    return frozenset(_CALLED)


def load() -> Any:
    """Load Numba, and register the functions that compiled code may call by now."""
    from cmdplab.numerics import lowering

    lowering.let_type(Compiled)
    while _PENDING:
        _PENDING.pop(0)(lowering)
    return lowering
