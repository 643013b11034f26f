"""Code from outside: objects at import paths, and names that installed packages register.

    [project.entry-points."cmdplab.algorithms"]
    Greedy = "visitor.learner:make_learner"

Names and paths are read without an import. The import of a path runs the code of its module. This
happens if a person gives or asks for the path, never because a file or a record names it.
"""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from cmdplab.errors import InputError

ALGORITHMS, ENVIRONMENTS = "cmdplab.algorithms", "cmdplab.environments"


class Plugin(NamedTuple):
    """Object that an installed package registers."""

    name: str
    path: str  # package.module:name
    package: str  # name and version of the package


def plugins(group: str) -> dict[str, list[Plugin]]:
    """Return the registered objects of a group, by name in lower case."""
    return _plugins(group, tuple((place, _changed(place)) for place in sys.path))


def _changed(place: str) -> int:
    try:
        return os.stat(place or ".").st_mtime_ns
    except OSError:
        return 0


@lru_cache(maxsize=8)  # 12 ms with a hundred packages, and a sweep asks for every run
def _plugins(group: str, places: tuple[tuple[str, int], ...]) -> dict[str, list[Plugin]]:
    from importlib.metadata import entry_points  # 10 ms, for which most commands have no use

    found: dict[str, list[Plugin]] = {}
    for entry in entry_points(group=group):
        package = "an unknown package" if entry.dist is None else _title(entry.dist)
        found.setdefault(entry.name.lower(), []).append(Plugin(entry.name, entry.value, package))
    return found


def _title(distribution: Any) -> str:
    return f"{distribution.name} {distribution.version}"


def plugin(group: str, name: str) -> Plugin | None:
    """Return the registered object of a name, or None. Refuse a name that two packages register."""
    found = plugins(group).get(name.lower(), [])
    if len(found) > 1:
        packages = " and ".join(sorted(each.package for each in found))
        raise InputError(f"{packages} both register {name}: uninstall one of them")
    return found[0] if found else None


def refuse_shadow(group: str, name: str) -> None:
    """Refuse packages that register `name`, which is a name of cmdplab in this group."""
    for each in plugins(group).get(name.lower(), []):
        raise InputError(
            f"{each.package} registers {each.name}, which is a name of cmdplab's own: "
            "uninstall it, or let it choose another name"
        )


def is_path(text: str) -> bool:
    """Return True for a text of the form package.module:name. Nothing is imported."""
    module, colon, name = text.partition(":")
    parts = [*module.split("."), *name.split(".")]
    return bool(colon) and all(part.isidentifier() for part in parts)


def follow(path: str, whose: str = "") -> Any:
    """Import and return the object at "package.module:name". whose : begins the error message."""
    if not is_path(path):
        raise InputError(f"{path!r} is no import path: write package.module:name")
    said = f"{whose}: {path}" if whose else path
    module, _, name = path.partition(":")
    try:
        found: Any = import_module(module)
    except (Exception, SystemExit) as error:  # whatever the module's own code raises
        raise InputError(f"{said}: {module} cannot be imported: {reason(error)}") from None
    for part in name.split("."):
        if not hasattr(found, part):
            raise InputError(f"{said}: {module} has no {name}")
        found = getattr(found, part)
    return found


def reason(error: BaseException) -> str:
    """Return kind and first line of an exception, as "kind: line"."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
