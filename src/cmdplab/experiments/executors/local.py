"""Local workers: one process each, one thread each, a pipe to each.

A worker that dies takes nothing with it: its run goes to another worker, which continues from the
checkpoint. A run that has crashed two workers has failed; one whose workers were killed from
outside (by a person, or for want of memory) was interrupted, however often. Ctrl-C, SIGTERM and a
closed terminal let every worker finish its chunk and checkpoint; a second Ctrl-C or SIGTERM stops
at once.
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
from multiprocessing.context import SpawnProcess
from pathlib import Path
from typing import Any, NamedTuple

from cmdplab.errors import InputError
from cmdplab.experiments import manifest
from cmdplab.experiments.durable import BusyError, Problems, Standing, held, perform
from cmdplab.experiments.experiment import RunSettings

MOST_CRASHES = 2  # of workers, before their run has failed
MOST_KILLS = 5  # from outside, before a run is left for another day: memory may be short
_CRASHES = {getattr(signal, f"SIG{name}") for name in ("SEGV", "BUS", "ABRT", "FPE", "ILL", "SYS")}
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
LEAVE = 10.0  # seconds for a worker to checkpoint when the sweep itself breaks off
PATIENCE = 5.0  # seconds for which a run's lock is waited for: a killed process frees it at once
_THREADS = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Work(NamedTuple):
    """One run to be done by whoever is free."""

    folder: Path
    settings: RunSettings
    problem_file: Path
    label: str = ""  # the algorithm, with what tells it from others of its experiment
    given: bool = False  # whether a person gave the import path of its learner

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
    """What Ctrl-C, SIGTERM and SIGHUP have asked for: 1 to stop, more to stop at once."""

    def __init__(self) -> None:
        self.asked = 0
        self.raises = False  # whether a second one is raised: where nobody looks between

    def __call__(self, number: int = signal.SIGTERM, *_: Any) -> None:
        # A closing terminal hangs up twice, by the shell and by the system: that is one wish.
        self.asked = max(self.asked, 1) if number == signal.SIGHUP else self.asked + 1
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
    heard = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    before = {each: signal.signal(each, interrupt) for each in heard}
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
    waiting, losses = list(reversed(works)), _Losses()
    crew = [_Worker(every) for _ in range(min(workers, len(works)))]
    try:
        while interrupt.asked < 2:
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
                    lost, code = worker.bury()
                    verdict = losses.judge(lost, code)
                    if verdict is not None:
                        tell(_given_up(lost, *verdict))
                    elif interrupt.asked:
                        tell(_given_up(lost, "interrupted", ""))
                    else:
                        waiting.append(lost)
                elif event is not None:
                    again = worker.last
                    stopped = isinstance(event, Ended) and event.status == "interrupted"
                    if stopped and again is not None and not interrupt.asked:
                        waiting.append(again)  # somebody stopped this worker alone
                    else:
                        tell(event)
            wait([worker.pipe for worker in crew if worker.work], timeout=0.2)
    finally:
        for worker in crew:
            worker.dismiss(at_once=interrupt.asked > 1)
        for worker in crew:
            worker.join()


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


class _Losses:
    """The workers that each run has lost, and what follows."""

    def __init__(self) -> None:
        self._crashes: dict[Path, list[str]] = {}
        self._kills: dict[Path, list[str]] = {}

    def judge(self, work: Work, code: int | None) -> tuple[manifest.Status, str] | None:
        """The status and the reason to give a run up with; None where it is tried again.

        `code` is the worker's exit code: minus the number of a signal, or what it ended with.
        """
        crashed = code is not None and (code >= 0 or -code in _CRASHES)
        lost = (self._crashes if crashed else self._kills).setdefault(work.folder, [])
        lost.append(_how(code))
        how = " and ".join(dict.fromkeys(lost))
        if crashed and len(lost) >= MOST_CRASHES:
            return "failed", f"its worker died {len(lost)} times by {how}"
        if not crashed and len(lost) >= MOST_KILLS:
            memory = " (out of memory?)" if "SIGKILL" in lost else ""
            return "interrupted", f"its worker was killed {len(lost)} times by {how}{memory}"
        return None


def _how(code: int | None) -> str:
    if code is None or code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _given_up(work: Work, status: manifest.Status, error: str) -> Ended:
    """Record that a run was given up; its checkpoint stays."""
    with suppress(InputError, BusyError, OSError):
        work.folder.mkdir(parents=True, exist_ok=True)
        with held(work.folder):
            # It may have died before it wrote anything; what is damaged the next attempt finds.
            record = manifest.read_if_good(work.folder)
            if record is None and error and not (work.folder / manifest.NAME).exists():
                record = manifest.Manifest(settings=work.settings, status=status)
            if record is not None and record.status != "done":
                record.status, record.error = status, error
                manifest.write(work.folder, record)
    return Ended(work.folder.name, status, error)


class _Worker:
    """A process, which is started when there is something to do, and our end of its pipe."""

    def __init__(self, every: float) -> None:
        self._every = every
        self.work: Work | None = None
        self.last: Work | None = None
        self._process: SpawnProcess | None = None
        self._stopping = False

    def _start(self) -> SpawnProcess:
        context = multiprocessing.get_context("spawn")
        resource_tracker.ensure_running()  # now: starting it later would unblock the signals
        self.pipe, theirs = context.Pipe()
        arguments = (theirs, os.getpid(), self._every)
        process = context.Process(target=_serve, args=arguments, daemon=True)
        # Blocked until the child has handlers of its own: it would die of them before.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        process.start()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        theirs.close()
        return process

    def give(self, work: Work) -> None:
        """Let it do this work."""
        self._process = self._process or self._start()
        self.work = self.last = work
        with suppress(OSError):  # it died: listen() will notice
            self.pipe.send(sent(work))

    def ask_to_stop(self) -> None:
        """Let it finish its chunk and checkpoint."""
        if not self._stopping:
            self._stopping = True
            self._signal(signal.SIGTERM)
            self._signal(signal.SIGCONT)  # a stopped process would not hear it

    def _signal(self, number: int) -> None:
        if self._process is not None and self._process.is_alive() and self._process.pid:
            with suppress(ProcessLookupError):
                os.kill(self._process.pid, number)

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
            self._signal(signal.SIGCONT)
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
    interrupt = Interrupt()
    for each in (signal.SIGINT, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)  # the parent decides
    signal.signal(signal.SIGTERM, interrupt)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    last = [0.0]

    def stop() -> bool:
        return interrupt.asked > 0 or os.getppid() != parent

    def report(standing: Standing) -> None:
        if time.monotonic() - last[0] > 0.5:
            last[0] = time.monotonic()
            try:
                pipe.send(("standing", *standing))
            except OSError:  # the parent is gone: no fault of the run, which stops and checkpoints
                interrupt()

    given: dict[str, Any] = {"stop": stop, "report": report, "every": every}
    given |= {"patience": PATIENCE, "problems": Problems()}
    try:
        while (message := pipe.recv()) is not None:
            ended = do_one(received(*message), **given)
            interrupt.asked = 0
            pipe.send(("ended", *ended))
    except (EOFError, OSError):  # the parent is gone
        return


def sent(work: Work) -> tuple[str, str, str, bool]:
    """What another process is told of a run."""
    return str(work.folder), work.settings.model_dump_json(), str(work.problem_file), work.given


def received(folder: str, settings: str, problem_file: str, given: bool) -> Work:
    """The run again, in the other process."""
    kept = RunSettings.model_validate_json(settings)
    return Work(Path(folder), kept, Path(problem_file), given=given)


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
            how: dict[str, Any] = {"stop": stop, "report": report, "every": every}
            record = perform(*work[:3], **how, problems=problems, given=work.given)
            return Ended(folder.name, record.status, record.error)
        except BusyError:
            if time.monotonic() >= deadline or stop():
                return Ended(folder.name, "busy", "another process works on it")
            time.sleep(0.5)
        except Exception as error:  # a folder that cannot be written, a record that is newer
            return Ended(folder.name, "failed", str(error))
