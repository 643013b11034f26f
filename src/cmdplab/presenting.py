"""Tables for people and JSON for scripts."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from cmdplab.problem import Array


def to_json(value: Any, indent: int | None = 2) -> str:
    """Strict JSON: no NaN, infinities as null, arrays as lists; millions of numbers on one line."""
    return json.dumps(_plain(value), indent=indent, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(each) for key, each in value.items()}
    if hasattr(value, "_asdict"):
        return _plain(value._asdict())
    if isinstance(value, np.ndarray) and value.dtype.kind in "biu":
        return value.tolist()
    if isinstance(value, list | tuple | np.ndarray):
        return [_plain(each) for each in value]
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def number(value: float | None, digits: int = 4) -> str:
    """For a table cell."""
    return "–" if value is None else f"{value:.{digits}f}"


def numbers(values: Array | Sequence[float] | None, digits: int = 6) -> str:
    """A vector, for a table cell."""
    if values is None:
        return "–"
    return ", ".join(number(each, digits) for each in values) or "none"


def facts(console: Console, title: str, rows: Sequence[tuple[str, str]]) -> None:
    """Two columns: what and its value."""
    table = Table(title=title, show_header=False, title_justify="left", box=SIMPLE_HEAD)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    console.print(table)


def grid(
    console: Console,
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    left: int = 1,
) -> None:
    """A table whose first `left` columns are text and the others numbers."""
    table = Table(
        title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False
    )
    for position, name in enumerate(header):
        table.add_column(
            name,
            justify="left" if position < left else "right",
            overflow="fold",
            no_wrap=position == 0,
        )
    for row in rows:
        table.add_row(*row)
    console.print(table)
