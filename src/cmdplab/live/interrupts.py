"""Ctrl-C between two episodes, where a learner is whole."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def patient() -> Iterator[Callable[[], bool]]:
    """Yield whether Ctrl-C was pressed; a second one interrupts at once, as it always does."""
    asked: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread may handle signals
        return

    def remember(*_: Any) -> None:
        asked.append(True)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)
