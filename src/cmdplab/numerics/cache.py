"""Cache of compiled code on disk. Code is reused while nothing it follows from has changed.

A file holds one function for one signature. Its name is a hash of all that determines the machine
code: bytecode, constants, fields of named tuples, compiler options and the processor. The bytecode
is that of the function and of every function of cmdplab that it calls. Numba's own cache misses an
edit in a function that is called, and compiles again after an edit of a docstring.

The files are pickles, so the folder must belong to the user. A file that is unreadable or changed
counts as absent. If nothing can be kept, every process compiles again and prints a sentence.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import uuid
from collections.abc import Callable, Iterator, Mapping
from enum import EnumMeta
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.core.types.containers import BaseTuple

from cmdplab.messages import announce

_VERSIONS = (numba.__version__, llvmlite.__version__, np.__version__)
_CHECKED = 32  # bytes at the head of a file: the hash of the rest


@cache
def folder() -> Path | None:
    """Return the folder of compiled code. If it is unusable, print a sentence, return None."""
    try:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        path = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(home) / "cmdplab") / "compiled"
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        about = path.stat()
    except (OSError, RuntimeError) as error:  # RuntimeError: a user without a home
        _say_unkept(str(error))
        return None
    if hasattr(os, "getuid"):
        if about.st_uid not in (os.getuid(), 0):
            _say_unkept(f"{path} belongs to another user; set NUMBA_CACHE_DIR")
            return None
        if about.st_mode & 0o022:
            _say_unkept(f"others may write into {path}; chmod 700 it")
            return None
    return path


def _say_unkept(why: str) -> None:
    announce(f"compiled code is not kept, and compiled again in every process: {why}")


def reduce(result: Any) -> Any:
    """Take a compiled function apart, for `Kept`. Return None if the code holds addresses."""
    return None if result.lifted or result.library.has_dynamic_globals else result._reduce()


def rebuild(context: Any, parts: Any) -> Any:
    """Put a compiled function together again, for `Kept`."""
    return CompileResult._rebuild(context, *parts)


class Kept(_Cache):  # type: ignore[misc]
    """The compiled forms of one function, as files, with the interface of numba and numba-cuda."""

    def __init__(
        self,
        function: Callable[..., Any],
        reduce: Callable[[Any], Any] = reduce,
        rebuild: Callable[[Any, Any], Any] = rebuild,
        options: object = (),
    ) -> None:
        self._function, self._options = function, options
        self._reduce, self._rebuild = reduce, rebuild

    @cached_property
    def _fingerprint(self) -> str:  # at first use: all called functions are defined by then
        return fingerprint(self._function)

    @property
    def cache_path(self) -> str | None:
        return str(folder() or "") or None

    def _file(self, within: Path, signature: Any, codegen: Any) -> Path:
        types = getattr(signature, "args", signature)
        key = [self._fingerprint, self._options, _VERSIONS, codegen.magic_tuple()]
        key += [[(str(each), [*_fields(each)]) for each in types]]
        name = f"{self._function.__module__.split('.')[-1]}.{self._function.__name__}"
        return within / f"{name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:32]}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        within = folder()
        if within is None:
            return None
        try:
            held = self._file(within, sig, target_context.codegen()).read_bytes()
        except OSError:
            return None
        try:
            if hashlib.sha256(held[_CHECKED:]).digest() != held[:_CHECKED]:
                raise ValueError("not what was written")
            return self._rebuild(target_context, pickle.loads(held[_CHECKED:]))
        except Exception:  # whatever a pickle of another make may raise
            announce(f"damaged files in {within} are compiled anew and replaced")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        within, parts = folder(), self._reduce(data)
        if within is None or parts is None:
            return
        held = dumps(parts)
        half = within / f"{uuid.uuid4().hex}.tmp"
        try:
            half.write_bytes(hashlib.sha256(held).digest() + held)
            half.replace(self._file(within, sig, data.codegen))
        except OSError as error:
            _say_unkept(f"{within}: {error.strerror}")
            half.unlink(missing_ok=True)

    def enable(self) -> None:
        """Do nothing: a dispatcher has this cache or none."""

    def disable(self) -> None:
        """Do nothing, as `enable` does."""

    def flush(self) -> None:
        """Do nothing: the name of an outdated file is never looked up."""


def _fields(type_: Any) -> Iterator[Any]:
    """Yield the class and the fields of each named tuple in a type."""
    if hasattr(type_, "instance_class"):
        yield type_.instance_class.__module__, type_.fields
    if isinstance(type_, BaseTuple):
        for each in type_:
            yield from _fields(each)


def fingerprint(function: Callable[..., Any]) -> str:
    """Hash all that the compiled form of a function follows from, without docstrings and comments.

    The walk follows the names that compiled code looks up. These are global names, attributes of
    modules, the content of a closure, and `compiled_with` of functions. Other packages count by
    their names alone.
    """
    ours = {"cmdplab", function.__module__.split(".")[0]}
    digest, seen = hashlib.sha256(), set()
    waiting: list[Any] = [function]
    while waiting:
        value = waiting.pop()
        if callable(value) and not isinstance(value, type):
            waiting.append(getattr(value, "compiled_with", None))
        value = getattr(value, "py_func", getattr(value, "_defn", value))
        module = str(getattr(value, "__module__", ""))
        digest.update(f"{module} {getattr(value, '__qualname__', '')}".encode())
        if isinstance(value, FunctionType | type):
            if value not in seen and module.split(".")[0] in ours:
                seen.add(value)
                waiting += _behind(value)
        elif isinstance(value, Mapping | SimpleNamespace):
            pairs = value if isinstance(value, Mapping) else vars(value)
            waiting += (each for pair in pairs.items() for each in pair)
        elif isinstance(value, tuple | list):
            digest.update(b"%d" % len(value))
            waiting += value
        elif isinstance(value, set | frozenset):
            waiting += sorted(value, key=repr)
        elif isinstance(value, CodeType):
            waiting += _words(value, None)
        elif isinstance(value, np.ndarray):
            digest.update(repr((value.dtype.str, value.shape)).encode() + value.tobytes())
        elif not isinstance(value, ModuleType):
            digest.update(repr(value).encode())
    return digest.hexdigest()


def _words(code: CodeType, docstring: str | None) -> list[Any]:
    """List the parts of a function's code, without its docstring."""
    constants = [None if each == docstring else each for each in code.co_consts[:1]]
    constants += code.co_consts[1:]
    signature = (code.co_argcount, code.co_kwonlyargcount, code.co_flags, code.co_varnames)
    return [code.co_code, code.co_names, code.co_freevars, signature, constants]


def _behind(value: Any) -> Iterator[Any]:
    """Yield the parts of a function or class of cmdplab, and all objects that it names."""
    if isinstance(value, EnumMeta):
        members: list[Any] = list(value)
        yield [(each.name, each.value) for each in members]
    if isinstance(value, type):
        yield getattr(value, "_fields", None)
        yield getattr(value, "_field_defaults", None)
        yield [each for each in vars(value).values() if isinstance(each, FunctionType)]
        return
    yield _words(value.__code__, value.__doc__)
    yield value.__defaults__
    yield value.__kwdefaults__
    yield [each.cell_contents for each in value.__closure__ or ()]
    names = [*_names(value.__code__)]
    for name in names:
        found = value.__globals__.get(name)
        yield found
        if isinstance(found, ModuleType) and found.__name__.startswith("cmdplab"):
            yield [getattr(found, each, None) for each in names]


def _names(code: CodeType) -> Iterator[str]:
    """Yield the global names and attributes in a function and in its inner functions."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)
