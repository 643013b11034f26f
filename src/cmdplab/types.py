"""Types of arrays, whose shapes are stated at each use, and classes with read-only arrays."""

from __future__ import annotations

from functools import cached_property, wraps
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]  # true where an action may be taken
Places = npt.NDArray[np.int32]  # half the memory traffic of 64-bit indices
Ahead = npt.NDArray[np.uint32]  # like Places; compiled code need not test their sign

Kind = TypeVar("Kind", bound=type[Any])


def frozen(cls: Kind) -> Kind:
    """Make the arrays of a frozen dataclass or a NamedTuple read-only, in every copy too.

    `copy` and `deepcopy` return the value itself. A pickle stores an array once along axes on which
    it repeats itself, and leaves out cached properties.
    """
    make = "__new__" if issubclass(cls, tuple) else "__init__"
    made = getattr(cls, make)

    @wraps(made)
    def making(self: Any, *given: Any, **named: Any) -> Any:
        found = made(self, *given, **named)
        lock(vars(self) if make == "__init__" else found)
        return found

    setattr(cls, make, making)
    for name, method in _COPYING.items():
        setattr(cls, name, method)
    return cls


_HOLDING = (np.ndarray, tuple, dict)


def lock(value: Any) -> None:
    """Make arrays read-only, also those in tuples and dictionaries."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, _HOLDING):
        for each in value.values() if isinstance(value, dict) else value:
            if isinstance(each, _HOLDING):
                lock(each)


class _Packed(NamedTuple):
    """Array without its repetitions, for pickle."""

    once: npt.NDArray[Any]
    stored: tuple[int, ...]  # its shape without repetitions that take no memory
    shape: tuple[int, ...]


def _reduced(self: Any, protocol: Any) -> tuple[Any, ...]:
    if isinstance(self, tuple):
        return _restored, (type(self), tuple(map(_packed, self)))
    cls, kept = type(self), {}
    for name, each in vars(self).items():
        if not isinstance(getattr(cls, name, None), cached_property):
            kept[name] = each
    return _restored, (cls, _packed(kept))


_COPYING: dict[str, Any] = {
    "__copy__": lambda self: self,
    "__deepcopy__": lambda self, memo: self,
    "__reduce_ex__": _reduced,
    "_make": classmethod(lambda cls, values: cls(*values)),  # of NamedTuples: `_replace` calls it
}


def _restored(cls: type[Any], content: Any) -> Any:
    content = _unpacked(content)
    lock(content)
    if issubclass(cls, tuple):
        return tuple.__new__(cls, content)
    made = object.__new__(cls)
    vars(made).update(content)
    return made


def _packed(value: Any) -> Any:
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.itemsize <= 8:
        once, stored = value, list(value.shape)
        for axis, size in enumerate(value.shape):
            first = once[(slice(None),) * axis + (slice(0, 1),)]
            if size > 1 and value.strides[axis] == 0:
                once, stored[axis] = first, 1
            elif size > 1 and _repeats(once, first, axis):
                once = first
        return _Packed(np.ascontiguousarray(once), tuple(stored), value.shape)
    return _inside(value, _packed)


def _repeats(whole: npt.NDArray[Any], first: npt.NDArray[Any], axis: int) -> bool:
    bits = f"u{whole.itemsize}"  # so that -0.0 is not 0.0, and NaN is NaN
    second = whole[(slice(None),) * axis + (slice(1, 2),)]
    return all((each.view(bits) == first.view(bits)).all() for each in (second, whole))


def _unpacked(value: Any) -> Any:
    if isinstance(value, _Packed):
        stored = np.array(np.broadcast_to(value.once, value.stored), order="C")
        lock(stored)
        return stored if value.stored == value.shape else np.broadcast_to(stored, value.shape)
    return _inside(value, _unpacked)


def _inside(value: Any, change: Any) -> Any:
    """Return a tuple or dictionary with `change` applied to each value. Return others unchanged."""
    if type(value) is dict:
        return {key: change(each) for key, each in value.items()}
    if type(value) is tuple:
        return tuple(map(change, value))
    return value
