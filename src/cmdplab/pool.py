"""Local workers: one process each, one thread each, a pipe to each.

A worker that dies takes nothing with it: its run goes to another worker, which continues from the
checkpoint, and is recorded as failed only when it has killed two. Ctrl-C and SIGTERM let every
worker finish its chunk and checkpoint; a second one stops at once.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, NamedTuple

from cmdplab import manifest
from cmdplab.errors import InputError
from cmdplab.experiment import RunSettings
from cmdplab.surviving import BusyError, Problems, Standing, held, perform

MOST_DEATHS = 2
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
PATIENCE = 5.0  # seconds for which a run's lock is waited for: a killed process frees it at once
_THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Work(NamedTuple):
    """One run to be done by whoever is free."""

    folder: Path
    settings: RunSettings
    problem_file: Path
    label: str = ""  # the algorithm, with what tells it from others of its experiment

    @property
    def words(self) -> str:
        """The run in words: label, problem and seed."""
        return f"{self.label} on {self.settings.problem}, seed {self.settings.seed}"


class Ended(NamedTuple):
    """How a run ended: done, interrupted, failed, or busy in another process."""

    folder: str
    status: str
    error: str


Event = Standing | Ended


class Interrupt:
    """What Ctrl-C and SIGTERM have asked for."""

    def __init__(self) -> None:
        self.asked = 0
        self.raises = False  # whether a second one is raised: where nobody looks between

    def __call__(self, *_: Any) -> None:
        self.asked += 1
        if self.raises and self.asked > 1:
            raise KeyboardInterrupt


@contextmanager
def signals() -> Iterator[Interrupt]:
    """Count SIGINT and SIGTERM instead of dying of them, while the block lasts."""
    interrupt = Interrupt()
    if threading.current_thread() is not threading.main_thread():
        yield interrupt  # only the main thread may handle signals
        return
    before = {s: signal.signal(s, interrupt) for s in _SIGNALS}
    try:
        yield interrupt
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def run_locally(
    works: Sequence[Work],
    workers: int,
    tell: Callable[[Event], None],
    interrupt: Interrupt,
    every: float,
) -> None:
    """Do all the work, or as much as there is time for."""
    os.environ.update(
        dict.fromkeys(_THREADS, "1")
    )  # read by the libraries when a worker imports them
    waiting, deaths = list(reversed(works)), dict.fromkeys((w.folder.name for w in works), 0)
    crew = [_Worker(every) for _ in range(min(workers, len(works)))]
    try:
        while True:
            if interrupt.asked > 1:
                return
            if interrupt.asked:
                waiting.clear()
                for worker in crew:
                    worker.ask_to_stop()
            for worker in crew:
                if worker.work is None and waiting:
                    worker.give(waiting.pop())
            if all(worker.work is None for worker in crew):
                return
            for worker in crew:
                event = worker.listen()
                if event is _DEAD:
                    lost = worker.revive()
                    deaths[lost.folder.name] += 1
                    if deaths[lost.folder.name] < MOST_DEATHS and not interrupt.asked:
                        waiting.append(lost)
                    else:
                        tell(_lost(lost))
                elif event is not None:
                    tell(event)
                    if isinstance(event, Ended) and event.status == "interrupted":
                        again = worker.last
                        if again is not None and not interrupt.asked:
                            waiting.append(again)
            wait([worker.pipe for worker in crew if worker.work], timeout=0.2)
    finally:
        for worker in crew:
            worker.dismiss()


def run_here(
    work: Work,
    tell: Callable[[Event], None],
    interrupt: Interrupt,
    every: float,
    problems: Problems | None = None,
) -> None:
    """Do one run in this process: a second one would take longer to start than many runs."""
    interrupt.raises = True
    given: dict[str, Any] = {"stop": lambda: interrupt.asked > 0, "report": tell}
    given |= {"every": every, "patience": PATIENCE, "problems": problems}
    tell(do_one(work, **given))


_DEAD = Ended("", "dead", "")


def _lost(work: Work) -> Ended:
    """Record that a run was given up; its checkpoint stays."""
    error = f"its worker died {MOST_DEATHS} times"
    with suppress(InputError, BusyError, OSError), held(work.folder):
        record = manifest.read_if_good(work.folder)
        if record is not None:
            record.status, record.error = "failed", error
            manifest.write(work.folder, record)
    return Ended(work.folder.name, "failed", error)


class _Worker:
    """A process and our end of its pipe."""

    def __init__(self, every: float) -> None:
        self._every = every
        self.work: Work | None = None
        self.last: Work | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self._stopping = False
        arguments = (theirs, os.getpid(), self._every)
        self._process = context.Process(target=_serve, args=arguments, daemon=True)
        resource_tracker.ensure_running()  # its start would unblock what is blocked next
        # Blocked until the child has handlers of its own: it would die of them before.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        self._process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()

    def give(self, work: Work) -> None:
        self.work = self.last = work
        with suppress(OSError):  # it died: listen() will notice
            self.pipe.send(sent(work))

    def ask_to_stop(self) -> None:
        if not self._stopping and self._process.pid:
            self._stopping = True
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, signal.SIGTERM)

    def listen(self) -> Event | None:
        """The next thing the worker says, if it says anything; `_DEAD` if it never will."""
        if self.work is None:
            return None
        try:
            if not self.pipe.poll():
                return None
            kind, *fields = self.pipe.recv()
        except (EOFError, OSError):
            return _DEAD
        if kind == "standing":
            return Standing(*fields)
        self.work = None
        return Ended(*fields)

    def revive(self) -> Work:
        """Start a new process in place of a dead one; what the dead one worked on."""
        assert self.work is not None
        lost, self.work = self.work, None
        self._process.join(timeout=5)
        self.pipe.close()
        self._start()
        return lost

    def dismiss(self) -> None:
        with suppress(OSError):
            if self.work is None:
                self.pipe.send(None)
        if self.work is not None or self._process.exitcode is not None:
            self._process.kill()
        self._process.join(timeout=10)
        self.pipe.close()


def _serve(pipe: Connection, parent: int, every: float) -> None:
    """A worker's life: take a run, do it, say how it ended."""
    interrupt = Interrupt()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    last = [0.0]

    def stop() -> bool:
        return interrupt.asked > 0 or os.getppid() != parent

    def report(standing: Standing) -> None:
        if time.monotonic() - last[0] > 0.5:
            last[0] = time.monotonic()
            pipe.send(("standing", *standing))

    given: dict[str, Any] = {"stop": stop, "report": report, "every": every}
    given |= {"patience": PATIENCE, "problems": Problems()}
    try:
        while (message := pipe.recv()) is not None:
            ended = do_one(received(*message), **given)
            interrupt.asked = 0
            pipe.send(("ended", *ended))
    except (EOFError, OSError):  # the parent is gone
        return


def sent(work: Work) -> tuple[str, str, str]:
    """What another process is told of a run."""
    return str(work.folder), work.settings.model_dump_json(), str(work.problem_file)


def received(folder: str, settings: str, problem_file: str) -> Work:
    """The run again, in the other process."""
    return Work(Path(folder), RunSettings.model_validate_json(settings), Path(problem_file))


def do_one(
    work: Work,
    *,
    stop: Callable[[], bool] = lambda: False,
    report: Callable[[Standing], None] = lambda standing: None,
    every: float,
    patience: float = 0.0,
    problems: Problems | None = None,
) -> Ended:
    """Perform a run and say how it ended; wait up to `patience` seconds for its lock."""
    folder, deadline = work.folder, time.monotonic() + patience
    while True:
        try:
            record = perform(*work[:3], stop=stop, report=report, every=every, problems=problems)
            return Ended(folder.name, record.status, record.error)
        except BusyError:
            if time.monotonic() >= deadline or stop():
                return Ended(folder.name, "busy", "another process works on it")
            time.sleep(0.5)
        except Exception as error:  # a folder that cannot be written, a record that is newer
            return Ended(folder.name, "failed", str(error))
