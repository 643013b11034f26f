"""Signals that ask runs to stop, counted instead of died of; Windows lacks many of them."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any


def signals_named(*names: str) -> tuple[signal.Signals, ...]:
    """The signals of these names that this system has: Windows lacks many."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


HANGUP = signals_named("SIGHUP")
SIGNALS = (signal.SIGINT, signal.SIGTERM, *HANGUP)


class Interrupt:
    """What Ctrl-C, SIGTERM and SIGHUP have asked for: 1 to stop, more to stop at once."""

    def __init__(self) -> None:
        self.asked = 0
        self.raises = False  # whether a second one is raised: where nobody looks between

    def __call__(self, number: int = signal.SIGTERM, *_: Any) -> None:
        # A closing terminal hangs up twice, by the shell and by the system: that is one wish.
        self.asked = max(self.asked, 1) if number in HANGUP else self.asked + 1
        if self.raises and self.asked > 1:
            raise KeyboardInterrupt


@contextmanager
def signals() -> Iterator[Interrupt]:
    """Count SIGINT, SIGTERM and SIGHUP instead of dying of them, while the block lasts."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread may handle signals
        return
    # What is ignored stays so: `nohup` means it.
    heard = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, interrupt) for each in heard}
    try:
        yield interrupt
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def blocked() -> Iterator[None]:
    """Hold signals back while the block lasts, where the system can."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # now: starting it later would unblock them
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
