"""The identity of a row: a record makes the row again from it, and compares the two.

A record names the registered row and the values of its settings. `rebuilt` changes only the
settings that differ from the registered row: a setting may stand for several fields, whose own
values would be lost. `fields_of` describes every field on which a number can depend.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from types import FunctionType
from typing import Any, cast

import numpy as np

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.custom import Custom
from cmdplab.algorithms.row import Row
from cmdplab.errors import InputError
from cmdplab.settings import SETTINGS, Settings

Fields = dict[str, str]

# No number of a run depends on these fields, or the record states them beside the others.
_WORDS = {"name", "preset", "summary", "paper", "guarantee", "safe", "unknown_rewards"}
_WORDS |= {"provenance", "unverified"}


def rebuilt(name: str, preset: str, settings: Mapping[str, Any]) -> Row:
    """Return the registered row with the recorded values of the settings in which it differs."""
    base = algorithm(name, preset)
    values, changed = base.settings(), dict[str, Any]()
    for setting, declared in SETTINGS.items():
        usual = declared.default if declared.unwritten_default else None
        recorded, own = settings.get(setting), values[setting]
        recorded = usual if recorded is None else recorded
        if recorded is not None and recorded != (usual if own is None else own):
            changed[setting] = recorded
    return base.with_settings(**cast(Settings, changed))


def check_found_again(row: Row) -> None:
    """Refuse a row that a record could not name: its name and settings make another row."""
    if isinstance(row, Custom):
        return  # its name is an import path, and its code is not ours to compare
    again = rebuilt(row.name, row.preset, row.settings())
    if again != row:
        raise InputError(
            f"{row.name} ({row.preset}) is registered with another {_difference(row, again)}: "
            "register the row that is to be recorded under a name of its own"
        )


def fields_of(row: Row) -> Fields:
    """Return every field of a row on which a number can depend, as text.

    A field that has the default of its family is left out: a new field changes no older record.
    A learner from outside has none.
    """
    if isinstance(row, Custom):
        return {}
    usual = {each.name: each.default for each in fields(row)}
    found = {"family": type(row).__name__}
    for name, default in usual.items():
        value = getattr(row, name)
        if name not in _WORDS and value is not default and _text(value) != _text(default):
            found[name] = _text(value)
    return found


def difference(one: Mapping[str, str], other: Mapping[str, str]) -> str:
    """Return the first field in which two rows differ, with both values; empty if there is none."""
    for name in sorted(one.keys() | other.keys()):
        here, there = one.get(name, "its default"), other.get(name, "its default")
        if here != there:
            return f"{name} ({here}, not {there})"
    return ""


def _difference(row: Row, again: Row) -> str:
    return difference(fields_of(row), fields_of(again)) or "description"


def _text(value: Any) -> str:
    """Return a value as text that is the same in every process and after every move of code."""
    if isinstance(value, FunctionType):
        inside = [each.cell_contents for each in value.__closure__ or ()]
        return value.__qualname__ + (_text(tuple(inside)) if inside else "")
    if isinstance(value, Row):
        inner = {"name": value.name, "preset": value.preset} | fields_of(value)
        return _listed("", inner)
    if is_dataclass(value) and not isinstance(value, type):
        own = {each.name: _text(getattr(value, each.name)) for each in fields(value)}
        return _listed(type(value).__name__, own)
    if isinstance(value, tuple):
        names = getattr(value, "_fields", None)
        if names is not None:
            own = dict(zip(names, map(_text, value), strict=True))
            return _listed(type(value).__name__, own)
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, partial):
        return f"{_text(value.func)}{_text((*value.args, *value.keywords.items()))}"
    if isinstance(value, str | bool | None):
        return repr(value)
    if isinstance(value, int | float | np.number):
        return repr(float(value)).removesuffix(".0")  # 1 and 1.0 are one number
    return type(value).__qualname__


def _listed(kind: str, values: Mapping[str, str]) -> str:
    return f"{kind}({', '.join(f'{name}={value}' for name, value in values.items())})"
