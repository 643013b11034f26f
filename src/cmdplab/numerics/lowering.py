"""The configuration of Numba: dispatchers of functions, and bodies that calls choose by type.

`compiling.py` imports this module when the first function is compiled, and not before.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numba
from numba.core import event, types
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler, Flags
from numba.core.types.misc import unliteral
from numba.core.typing.typeof import typeof_impl
from numba.extending import overload, register_jitable
from numba.np import linalg

from cmdplab.errors import EngineError
from cmdplab.messages import announce_compiling
from cmdplab.numerics.cache import Kept, fingerprint

if numba.config.DISABLE_JIT:
    raise EngineError(
        "NUMBA_DISABLE_JIT is set, but cmdplab runs compiled code only: unset it, or set "
        "CMDPLAB_INTERPRETED=1, which runs the loops in Python"
    )


# Numba asks if SciPy has a BLAS, which takes a quarter of a warm `solve`. Products load it later.
linalg.ensure_blas, _ensure_blas = lambda: None, linalg.ensure_blas
__import__("numba.np.arraymath")
linalg.ensure_blas = _ensure_blas


class _Part(JITCodeLibrary):  # type: ignore[misc]
    """Code for compiled callers alone: LLVM code, linked into the callers, without machine code.

    Numba's own libraries hold all that they call, optimised and translated again at every level.
    This is quadratic in the depth of the calls. Here the caller that Python calls translates once.
    Only the loops at the bottom are also optimised on their own. This keeps their vectorisation,
    and their sums to the last bit.
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
        """Return 0, because there is no machine code."""
        return 0

    @property
    def codegen(self) -> _Part:
        """Return the part itself, for `set_env` alone."""
        return self

    def set_env(self, name: str, environment: object) -> None:
        """Do nothing: no part uses the objects of an environment (to print or raise)."""


_LOOPS = 2  # a loop and the formulas that it calls


class _Lean(Compiler):  # type: ignore[misc]
    """Numba's compiler with two assumptions: array arguments never overlap, nothing is allocated.

    Without the first assumption, LLVM checks for overlap before every short loop and leaves loops
    with many arrays scalar. Without the second, every view counts references atomically. Together
    with `forceinline` they take an episode from 13.0 to 8.4 us. Without `forceinline`, functions
    read back from the disk cache ran at 13 us, against 10 us in the process that compiled them.
    """

    def __init__(self, *arguments: Any) -> None:
        flags = next(each for each in arguments if isinstance(each, Flags))
        flags.noalias = True
        flags.nrt = False
        super().__init__(*arguments)
        if flags.no_cpython_wrapper:
            self.state.library = _Part(self.state.targetctx.codegen(), "part")


_PART = {"no_cpython_wrapper": True}
_CALLED: set[Any] = set()


def _options(fastmath: set[str], inline: bool) -> dict[str, Any]:
    return {
        "fastmath": fastmath,
        "nogil": True,
        "error_model": "numpy",
        "forceinline": inline,
        "no_cfunc_wrapper": True,
        "pipeline_class": _Lean,
    }


def dispatcher(function: Any, fastmath: set[str], inline: bool) -> Any:
    """Return the compiled function for Python, kept on disk. Compiled callers get a part instead.

    The wrapper that unpacks the arguments of Python is longer than most functions. A part has none.
    """
    options = _options(fastmath, inline)
    called = numba.njit(**options)(function.py_func)
    part = numba.njit(**options, **_PART)(function.py_func)

    def template(arguments: Any, keywords: Any) -> Any:  # not one for each constant that is given
        return part.get_call_template([unliteral(each) for each in arguments], keywords)

    called.get_call_template, called.get_overload = template, part.get_overload
    called._cache = Kept(function, options=fingerprint(_options))
    _CALLED.add(called)
    return called


def let_type(compiled: type[Any]) -> None:
    """Let compiled code call the functions in `compiling.Compiled`."""
    typeof_impl.register(compiled)(lambda value, context: types.Dispatcher(value.dispatcher))


def let_call(function: Callable[..., Any], fastmath: set[str], inline: bool | None) -> None:
    """Let compiled code call a function that stays plain Python for Python.

    inline : None for a formula, which Numba compiles by its own options.
    """
    own = {"fastmath": fastmath, "error_model": "numpy"}
    options = own if inline is None else _options(fastmath, inline) | _PART
    register_jitable(**options)(function)


def let_choose(
    stub: Callable[..., Any], bodies: Mapping[Any, Any], otherwise: Any, fastmath: set[str]
) -> None:
    """Let compiled calls of a stub run the body for the class of their first argument."""

    def choose(given: Any) -> Any:
        return bodies.get(getattr(given, "instance_class", None), otherwise)

    # Numba wants the chooser and the result of the chooser to have the arguments of the stub.
    first, *_ = arguments = [*inspect.signature(stub).parameters]
    given, scope = ", ".join(arguments), {"choose": choose, "__name__": stub.__module__}
    forward = f"return lambda {given}: body({given})"
    exec(f"def chosen({given}):\n    body = choose({first})\n    {forward}", scope)
    overload(stub, jit_options=_options(fastmath, inline=True) | _PART)(scope["chosen"])


class _Saying(event.Listener):  # type: ignore[misc]
    """A listener that announces compilation to the user. It is silent for code found on disk."""

    def on_start(self, event: Any) -> None:
        if event.data["dispatcher"] in _CALLED:
            announce_compiling(event.data["dispatcher"].__module__)

    def on_end(self, event: Any) -> None:
        pass


event.register("numba:compile", _Saying())
