"""Compile functions with Numba: the one place that configures it.

`cache.py` keeps what is compiled here on disk.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import numba
from numba.core import event
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.types.misc import unliteral
from numba.extending import overload, register_jitable

from cmdplab.errors import EngineError
from cmdplab.messages import announce_compiling
from cmdplab.numerics.cache import Kept, remember

if numba.config.DISABLE_JIT:
    raise EngineError("NUMBA_DISABLE_JIT is set, but cmdplab runs compiled code only: unset it")

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be reordered and fused; infinities and NaN keep their meaning (an unvisited pair has an
# infinite bonus). Without reordering no sum is vectorised: the episode takes 2.5 times as long.
FAST = {"reassoc", "contract", "nsz", "arcp"}


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """Code for compiled callers alone: LLVM's code, linked into them, and never a machine's.

    Numba's own libraries hold all that they call, optimised and translated again at every level,
    which is quadratic in the depth of the calls. Here the caller that Python calls does it once.
    Only the loops at the bottom are optimised on their own as well: it keeps them vectorised as
    they were, to the last bit of their sums.
    """

    def _depth(self) -> int:
        parts = (each for each in self._linking_libraries if isinstance(each, _Part))
        return 1 + max((each._depth() for each in parts), default=0)

    def _optimize_final_module(self) -> None:
        if self._depth() <= _LOOPS:
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        self._finalized = True

    def get_pointer_to_function(self, name: str) -> int:
        """None: there is no machine code."""
        return 0

    @property
    def codegen(self) -> _Part:
        """Asked for by `set_env` alone."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Nothing: what an environment holds (objects to print or raise) no part uses."""


_LOOPS = 2  # a loop and the formulas that it calls


class _Lean(Compiler):  # type: ignore[misc]
    """Numba's compiler with two promises: array arguments never overlap, nothing is allocated.

    Without the first LLVM checks for overlap before every short loop and leaves those with many
    arrays scalar; without the second every view counts references atomically. Together with
    `forceinline` they take an episode from 13.0 to 8.4 us. (Without `forceinline`, functions
    read back from the disk cache ran at 13 us where the process that compiled them had 10.)
    """

    def __init__(self, *arguments: Any) -> None:
        flags = next(each for each in arguments if isinstance(each, Flags))
        flags.noalias = True
        flags.nrt = False
        super().__init__(*arguments)
        if flags.no_cpython_wrapper:
            self.state.library = _Part(self.state.targetctx.codegen(), "part")


def compiled(function: Function) -> Function:
    """Compile a module-level function: cached on disk, without the GIL, sums vectorised.

    Array arguments must not overlap, and the function must not allocate: see `_Lean`.
    """
    return _compile(function, FAST)


def compiled_in_order(function: Function) -> Function:
    """The same, with every sum in the order in which it is written."""
    return _compile(function, FAST - {"reassoc"})


def compiled_exactly(function: Function) -> Function:
    """The same, bit for bit what plain Python computes: nothing is reordered, fused or inverted."""
    return _compile(function, set())


def compiled_apart(function: Function) -> Function:
    """For what takes long and is called from several places: compiled once, not into each caller.

    The planner compiles in a quarter of the time, and its sweeps take as long as before.
    """
    return _compile(function, FAST, inline=False)


def steering(function: Function) -> Function:
    """Compiled where compiled code calls it; plain Python where Python does.

    For what decides which loops run and is nothing beside them: to call it once, compiling takes a
    thousand times as long as running.
    """
    return _callable(function, _options(FAST, inline=False) | _PART)


def steering_in_order(function: Function) -> Function:
    """The same, with every sum in the order in which it is written."""
    return _callable(function, _options(FAST - {"reassoc"}, inline=True) | _PART)


def by_type(bodies: Mapping[Any, Any], otherwise: Any = None) -> Callable[[Function], Function]:
    """Decorate a stub: compiled calls run the body for the class of their first argument.

    bodies : for each NamedTuple; otherwise : for what is an array. This is how one loop serves
    several ways of storing a table, without a branch when it runs.
    """

    def choose(given: Any) -> Any:
        return bodies.get(getattr(given, "instance_class", None), otherwise)

    def decorate(stub: Function) -> Function:
        # Numba wants the chooser and what it returns to have the stub's own arguments.
        first, *_ = arguments = [*inspect.signature(stub).parameters]
        given, scope = ", ".join(arguments), {"choose": choose, "__name__": stub.__module__}
        forward = f"return lambda {given}: body({given})"
        exec(f"def chosen({given}):\n    body = choose({first})\n    {forward}", scope)
        options = _options(FAST, inline=True) | _PART
        remember(stub, (bodies, otherwise, options))
        overload(stub, jit_options=options)(scope["chosen"])
        return stub

    return decorate


_PART = {"no_cpython_wrapper": True}


def _options(fastmath: set[str], inline: bool) -> dict[str, Any]:
    return {
        "fastmath": fastmath,
        "nogil": True,
        "error_model": "numpy",
        "forceinline": inline,
        "no_cfunc_wrapper": True,
        "pipeline_class": _Lean,
    }


def _compile(function: Function, fastmath: set[str], inline: bool = True) -> Function:
    """What Python calls, kept on disk; compiled callers get a part of their own, without a wrapper.

    The wrapper that takes apart what Python gives is longer than most functions.
    """
    options = _options(fastmath, inline)
    called = numba.njit(**options)(function)
    part = numba.njit(**options, **_PART)(function)

    def template(arguments: Any, keywords: Any) -> Any:  # not one for each constant that is given
        return part.get_call_template([unliteral(each) for each in arguments], keywords)

    called.get_call_template, called.get_overload = template, part.get_overload
    called._cache = Kept(called)
    remember(called, options)
    _CALLED.add(called)
    return called  # type: ignore[no-any-return]


_CALLED: set[Any] = set()


def called() -> frozenset[Any]:
    """Every function that Python may call: what is announced when it has to be compiled."""
    return frozenset(_CALLED)


class _Saying(event.Listener):  # type: ignore[misc]
    """Tells whoever waits what is being compiled: nothing is, when it is found on disk."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"] in _CALLED:
            announce_compiling(event.data["dispatcher"].__module__)

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Saying())


def callable_when_compiled(formulas: Iterable[Callable[..., Any]], fastmath: set[str]) -> None:
    """Let compiled code call plain functions, with this licence."""
    for formula in formulas:
        _callable(formula, {"fastmath": fastmath, "error_model": "numpy"})


def _callable(function: Function, options: Mapping[str, Any]) -> Function:
    """Let compiled code call a function that stays plain Python for Python."""
    remember(function, options)
    return register_jitable(**options)(function)  # type: ignore[no-any-return]
