"""A bar in the cell of a notebook, which needs no widgets."""

from __future__ import annotations

import time
from html import escape
from typing import Any

EVERY = 0.2  # seconds between two updates


def bar(done: int, total: int | None, words: str) -> str:
    """A bar and words as HTML; without a total it only shows that something goes on."""
    of = "" if total is None else f" value='{done}' max='{max(total, 1)}'"
    return f"<progress{of}></progress> <small>{escape(words)}</small>"


class Cell:
    """One place in the output of the present cell, written again and again."""

    def __init__(self) -> None:
        from IPython.display import HTML, display

        self._html, self._last = HTML, 0.0
        self._place: Any = display(HTML(""), display_id=True)

    def show(self, done: int, total: int | None, words: str, *, ended: bool) -> None:
        """Write the bar, unless it was written a moment ago; the last one is always written."""
        now = time.monotonic()
        if ended or now - self._last >= EVERY:
            self._last = now
            self._place.update(self._html(bar(done, total, words)))
