"""Play of runs in this process or in a worker process. Signals request a stop."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pickle import PicklingError
from typing import Any

from cmdplab.algorithms.custom import CUSTOM
from cmdplab.experiments.durable import CHECKPOINT_EVERY, do_one
from cmdplab.experiments.status import RunStatus, status_by, status_of, with_end
from cmdplab.experiments.work import Entries, Event, OnEvent, Work

_THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
LEAVE = 10.0  # seconds for a worker to checkpoint when the sweep itself breaks off
PATIENCE = 5.0  # seconds for which a run's lock is waited for: a killed process frees it at once
TELL_EVERY = 0.5  # seconds between two messages of a worker
DEAD = Event("", "dead")


def signals_named(*names: str) -> tuple[signal.Signals, ...]:
    """Return those of the named signals that this system has. Windows lacks many."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


HANGUP = signals_named("SIGHUP")
SIGNALS = (signal.SIGINT, signal.SIGTERM, *HANGUP)


class Interrupt:
    """Counter of requests to stop, by Ctrl-C, SIGTERM or SIGHUP. From 2 on, stop at once."""

    def __init__(self) -> None:
        self.asked = 0
        self.raises = False  # True: a second request raises KeyboardInterrupt

    def __call__(self, number: int = signal.SIGTERM, *_: Any) -> None:
        # A closing terminal hangs up twice, by the shell and by the system: that is one request.
        self.asked = max(self.asked, 1) if number in HANGUP else self.asked + 1
        if self.raises and self.asked > 1:
            raise KeyboardInterrupt


@contextmanager
def signals() -> Iterator[Interrupt]:
    """Count SIGINT, SIGTERM and SIGHUP during a `with` block. They do not end the process then."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread may handle signals
        return
    # An ignored signal stays ignored: `nohup` asks for that.
    heard = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, interrupt) for each in heard}
    try:
        yield interrupt
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@contextmanager
def _blocked() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    resource_tracker.ensure_running()  # now: starting it later would unblock them
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Set the environment so that processes started in a `with` block compute in one thread."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    try:
        yield
    finally:
        for name, value in before.items():
            del os.environ[name]
            if value is not None:
                os.environ[name] = value


class Worker:
    """Worker process, started with its first run, and this process's end of the pipe to it."""

    def __init__(self, every: float) -> None:
        self._every = every
        self.work: Work | None = None
        self.last: Work | None = None
        self._process: SpawnProcess | None = None
        self._stopping = False
        self._told: set[str] = set()  # kinds of runs whose entries were sent

    def _start(self) -> SpawnProcess:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        arguments = (theirs, os.getpid(), self._every)
        process = context.Process(target=_serve, args=arguments, daemon=True)
        # Signals wait until the child has handlers of its own: it would die of them before.
        with _blocked(), _one_thread():
            process.start()
        theirs.close()
        return process

    def give(self, work: Work) -> None:
        """Send a run to the process, which plays it."""
        self._process = self._process or self._start()
        self.work = self.last = work
        kind = work.settings.kind
        known = kind in self._told or work.settings.preset == CUSTOM
        self._told.add(kind)
        alone = work._replace(entry=None)
        with suppress(OSError):  # the process died, which `listen` reports
            try:
                self.pipe.send(alone if known else work)
            except (AttributeError, TypeError, PicklingError):  # the row contains a local function
                self.pipe.send(alone)

    def ask_to_stop(self) -> None:
        """Ask the process to finish its chunk and to save a checkpoint."""
        if not self._stopping:
            self._stopping = True
            self._signal(signal.SIGTERM)  # on Windows this ends it: it goes on from its checkpoint
            self._signal(*signals_named("SIGCONT"))  # a stopped process would not hear it

    def kill(self) -> None:
        """End the process at once. `listen` returns `DEAD` then."""
        if self._process is not None:
            self._process.kill()

    def _signal(self, *numbers: int) -> None:
        if self._process is not None and self._process.is_alive() and self._process.pid:
            for number in numbers:
                with suppress(ProcessLookupError):
                    os.kill(self._process.pid, number)

    def listen(self) -> Event | None:
        """Return the next event of the process, None if there is none, or `DEAD` if it has died."""
        if self.work is None:
            return None
        try:
            if not self.pipe.poll():
                return None
            event: Event = self.pipe.recv()
        except (EOFError, OSError):
            return DEAD
        if event.ended:
            self.work = None
        return event

    def bury(self) -> tuple[Work, int | None]:
        """Clean up after a dead process. Return its work and its exit code."""
        assert self.work is not None
        lost, self.work = self.work, None
        return lost, self._end()

    def dismiss(self, at_once: bool) -> None:
        """Let an idle process exit. Stop a busy one after its chunk, or kill it if `at_once`."""
        if self._process is None:
            return
        if self.work is None:
            with suppress(OSError):
                self.pipe.send(None)
            self._signal(*signals_named("SIGCONT"))
        elif at_once:
            self._process.kill()
        else:
            self.ask_to_stop()

    def join(self) -> None:
        """Wait for the end of the process after `dismiss`."""
        if self._process is not None:
            self._end()

    def _end(self) -> int | None:
        assert self._process is not None
        self.pipe.close()
        self._process.join(timeout=LEAVE)
        code = self._process.exitcode
        self._process.kill()
        self._process, self._stopping = None, False
        self._told.clear()
        return code


def _serve(pipe: Connection, parent: int, every: float) -> None:
    """Play the runs that arrive through the pipe. Send events of their progress and their end."""
    import numpy as np
    import pyarrow as pa

    sys.stdout = sys.stderr  # code from outside may print, and the output is the parent's
    interrupt = Interrupt()
    for each in (signal.SIGINT, *HANGUP):
        signal.signal(each, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, interrupt)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    pa.array(np.zeros(1))  # loads pandas if it is there, for which a stop should not wait
    last = [0.0]

    def stop() -> bool:
        return interrupt.asked > 0 or os.getppid() != parent

    def on_progress(event: Event) -> None:
        if time.monotonic() - last[0] > TELL_EVERY:
            last[0] = time.monotonic()
            try:
                pipe.send(event)
            except OSError:  # the parent is gone: the run stops and checkpoints
                interrupt()

    how: dict[str, Any] = {"stop": stop, "on_progress": on_progress, "every": every}
    how |= {"patience": PATIENCE, "entries": Entries()}
    try:
        while (work := pipe.recv()) is not None:
            ended, _ = do_one(work, **how)
            interrupt.asked = 0
            pipe.send(ended)
    except (EOFError, OSError):  # the parent is gone
        return
    finally:
        gc.freeze()  # spares the exit a last collection: 0.2 s of processor time


def run_here(work: Work, on_event: OnEvent) -> RunStatus:
    """Play one run in this process and return its status. Starting a worker would take longer."""
    with signals() as interrupt:
        interrupt.raises = True
        ended, record = do_one(
            work,
            stop=lambda: interrupt.asked > 0,
            on_progress=on_event,
            every=CHECKPOINT_EVERY,
            patience=PATIENCE,
        )
    on_event(ended)
    if record is None:
        return with_end(status_of(work), ended)
    return status_by(work, record, record.status)
