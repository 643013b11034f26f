"""How compiled code is made and kept: the one place that configures Numba.

Numba's disk cache notices a change in the file of the compiled function only, not in the functions
it calls, and would silently run old formulas after an edit of equations.py. The cache therefore
lives in a folder named by a hash of every source file that compiled code can depend on.
"""

from __future__ import annotations

import hashlib
import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba
from numba.core import config as numba_config
from numba.core.compiler import Compiler, Flags
from numba.extending import overload, register_jitable

from cmdplab import equations

Function = TypeVar("Function", bound=Callable[..., Any])

# Sums may be reordered and fused; infinities and NaN keep their meaning (an unvisited pair has an
# infinite bonus). Without reordering no sum is vectorised: the episode takes 2.5 times as long.
FAST = {"reassoc", "contract", "nsz", "arcp"}
_PACKAGE = Path(__file__).resolve().parent
_SOURCES = (
    "compiling.py",
    "equations.py",
    "noise.py",
    "algorithms/primal_dual.py",
    "algorithms/planner.py",
    "algorithms/triple_q.py",
    "engines",
    "solvers",
)


def _cache_folder() -> str:
    digest = hashlib.sha256(numba.__version__.encode())
    for source in _SOURCES:
        path = _PACKAGE / source
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            digest.update(file.read_bytes())
    home = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    root = os.environ.get("NUMBA_CACHE_DIR") or str(Path(home) / "cmdplab")
    return str(Path(root) / f"compiled-{digest.hexdigest()[:16]}")


_CACHE = _cache_folder()


def is_cold() -> bool:
    """Whether nothing is compiled yet for these sources: the first use then takes longer."""
    return not any(Path(_CACHE).glob("**/*.nbi"))


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


def by_type(stub: Function) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Decorate a chooser: compiled calls of `stub` run what it returns for the arguments' types.

    This is how one loop serves several ways of storing a table, without a branch when it runs.
    """
    options = {
        "fastmath": FAST,
        "nogil": True,
        "error_model": "numpy",
        "forceinline": True,
        "pipeline_class": _Lean,
    }
    return overload(stub, jit_options=options)  # type: ignore[no-any-return]


def _compile(function: Function, fastmath: set[str], inline: bool = True) -> Function:
    dispatcher = numba.njit(
        fastmath=fastmath,
        nogil=True,
        error_model="numpy",
        forceinline=inline,
        pipeline_class=_Lean,
    )(function)
    keep(dispatcher, numba_config)
    return dispatcher  # type: ignore[no-any-return]


def keep(dispatcher: Any, config: Any, apart: str = "") -> None:
    """Let a compiled function be kept on disk; `config` is that of its compiler.

    `apart` names a folder of its own: for options of the compiler that its cache does not look at.
    """
    previous = config.CACHE_DIR
    config.CACHE_DIR = str(Path(_CACHE) / apart)
    try:
        dispatcher.enable_caching()
    except RuntimeError:  # no folder can be written: compile anew in every process
        pass
    finally:
        config.CACHE_DIR = previous


for _, _formula in inspect.getmembers(equations, inspect.isfunction):
    register_jitable(fastmath=FAST, error_model="numpy")(_formula)
