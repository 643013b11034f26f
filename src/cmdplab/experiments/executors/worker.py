"""Doing a run, in this process or in a worker: one thread and a pipe, and our end of it."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess

from cmdplab.experiments.durable import CHECKPOINT_EVERY, run_in_folder
from cmdplab.experiments.executors.signals import (
    HANGUP,
    SIGNALS,
    Interrupt,
    blocked,
    signals,
    signals_named,
)
from cmdplab.experiments.manifest import Manifest
from cmdplab.experiments.status import RunStatus, status_by, status_of, with_end
from cmdplab.experiments.work import Ended, Entries, Event, OnEvent, Standing, Work
from cmdplab.files.locks import BusyError

LEAVE = 10.0  # seconds for a worker to checkpoint when the sweep itself breaks off
PATIENCE = 5.0  # seconds for which a run's lock is waited for: a killed process frees it at once
DEAD = Ended("", "dead", "")


class Worker:
    """A process, which is started when there is something to do, and our end of its pipe."""

    def __init__(self, every: float) -> None:
        self._every = every
        self.work: Work | None = None
        self.last: Work | None = None
        self._process: SpawnProcess | None = None
        self._stopping = False

    def _start(self) -> SpawnProcess:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        arguments = (theirs, os.getpid(), self._every)
        process = context.Process(target=_serve, args=arguments, daemon=True)
        with blocked():  # until the child has handlers of its own: it would die of them before
            process.start()
        theirs.close()
        return process

    def give(self, work: Work) -> None:
        """Let it do this work."""
        self._process = self._process or self._start()
        self.work = self.last = work
        with suppress(OSError):  # it died: listen() will notice
            self.pipe.send(work.packed())

    def ask_to_stop(self) -> None:
        """Let it finish its chunk and checkpoint."""
        if not self._stopping:
            self._stopping = True
            self._signal(signal.SIGTERM)  # on Windows this ends it: it goes on from its checkpoint
            self._wake()  # a stopped process would not hear it

    def kill(self) -> None:
        """End the process at once; `listen` then finds it dead."""
        if self._process is not None:
            self._process.kill()

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.is_alive() and self._process.pid:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

    def _wake(self) -> None:
        for number in signals_named("SIGCONT"):
            self._signal(number)

    def listen(self) -> Event | None:
        """The next thing the worker says, if it says anything; `DEAD` if it never will."""
        if self.work is None:
            return None
        try:
            if not self.pipe.poll():
                return None
            kind, *fields = self.pipe.recv()
        except (EOFError, OSError):
            return DEAD
        if kind == "standing":
            return Standing(*fields)
        self.work = None
        return Ended(*fields)

    def bury(self) -> tuple[Work, int | None]:
        """Forget a dead process; its work, and its exit code."""
        assert self.work is not None
        lost, self.work = self.work, None
        return lost, self._end()

    def dismiss(self, at_once: bool) -> None:
        """Let the process go: idle, after its chunk and a checkpoint, or at once."""
        if self._process is None:
            return
        if self.work is None:
            with suppress(OSError):
                self.pipe.send(None)
            self._wake()
        elif at_once:
            self._process.kill()
        else:
            self.ask_to_stop()

    def join(self) -> None:
        """Wait for the end of a process that was let go."""
        if self._process is not None:
            self._end()

    def _end(self) -> int | None:
        """Wait for the process, and kill it if need be; what it ended with by itself."""
        assert self._process is not None
        self.pipe.close()
        self._process.join(timeout=LEAVE)
        code = self._process.exitcode
        self._process.kill()
        self._process, self._stopping = None, False
        return code


def _serve(pipe: Connection, parent: int, every: float) -> None:
    """A worker's life: take a run, do it, say how it ended."""
    sys.stdout = sys.stderr  # what code from outside prints: the output is the parent's
    interrupt = Interrupt()
    for each in (signal.SIGINT, *HANGUP):
        signal.signal(each, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, interrupt)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
    last = [0.0]

    def stop() -> bool:
        return interrupt.asked > 0 or os.getppid() != parent

    def on_progress(standing: Standing) -> None:
        if time.monotonic() - last[0] > 0.5:
            last[0] = time.monotonic()
            try:
                pipe.send(("standing", *standing))
            except OSError:  # the parent is gone: no fault of the run, which stops and checkpoints
                interrupt()

    entries = Entries()
    try:
        while (message := pipe.recv()) is not None:
            ended, _ = do_one(
                Work.unpacked(*message),
                stop=stop,
                on_progress=on_progress,
                every=every,
                patience=PATIENCE,
                entries=entries,
            )
            interrupt.asked = 0
            pipe.send(("ended", *ended))
    except (EOFError, OSError):  # the parent is gone
        return


def run_here(work: Work, on_event: OnEvent) -> RunStatus:
    """Do one run in this process: a second one would take longer to start than many runs."""
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


def do_one(
    work: Work,
    *,
    stop: Callable[[], bool] = lambda: False,
    on_progress: Callable[[Standing], None] = lambda standing: None,
    every: float,
    patience: float = 0.0,
    entries: Entries | None = None,
) -> tuple[Ended, Manifest | None]:
    """Perform a run: how it ended, and its record, if it came to one.

    Its lock is waited for up to `patience` seconds.
    """
    folder, deadline = work.folder, time.monotonic() + patience
    while True:
        try:
            record = run_in_folder(
                work, stop=stop, on_progress=on_progress, every=every, entries=entries
            )
            return Ended(folder.name, record.status, record.error), record
        except BusyError:
            if time.monotonic() >= deadline or stop():
                return Ended(folder.name, "busy", "another process works on it"), None
            time.sleep(0.5)
        except Exception as error:  # a folder that cannot be written, a record that is newer
            return Ended(folder.name, "failed", str(error)), None
