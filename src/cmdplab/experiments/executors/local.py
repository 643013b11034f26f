"""Local workers: one process with one thread each, connected by a pipe.

If a worker dies, another one resumes its run from the checkpoint. A run fails after two crashes of
its workers. It is interrupted if its workers were killed from outside five times. After Ctrl-C,
SIGTERM or a closed terminal, workers finish their chunk and checkpoint within `GRACE` seconds. A
second Ctrl-C or SIGTERM stops at once.
"""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

from cmdplab.errors import CmdplabError
from cmdplab.experiments import manifest
from cmdplab.experiments.durable import held
from cmdplab.experiments.executors.worker import DEAD, Interrupt, Worker, signals_named
from cmdplab.experiments.work import Event, OnEvent, Work

GRACE = 1.75  # seconds for a chunk and a checkpoint; a worker that compiles receives no signal
MOST_CRASHES = 2  # deaths of workers, after which their run has failed
MOST_KILLS = 5  # of workers by others, after which a run is given up: memory may be short


_CRASHES = signals_named("SIGSEGV", "SIGBUS", "SIGABRT", "SIGFPE", "SIGILL", "SIGSYS")


def run_locally(
    works: Sequence[Work],
    workers: int,
    on_event: OnEvent,
    interrupt: Interrupt,
    every: float,
) -> None:
    """Play works in worker processes until all have ended or a stop is requested.

    every : seconds between checkpoints. interrupt : the number of requests to stop.
    """
    waiting, losses, last_moment = list(reversed(works)), _Losses(), math.inf
    crew = [Worker(every) for _ in range(min(workers, len(works)))]
    try:
        while interrupt.asked < 2:
            if interrupt.asked:
                waiting.clear()
                last_moment = min(last_moment, time.monotonic() + GRACE)
                for worker in crew:
                    worker.ask_to_stop()
                    if time.monotonic() > last_moment:
                        worker.kill()
            for worker in crew:
                if worker.work is None and waiting:
                    worker.give(waiting.pop())
            if all(worker.work is None for worker in crew):
                return
            for worker in crew:
                event = worker.listen()
                if event is DEAD:
                    lost, code = worker.bury()
                    verdict = losses.judge(lost, code)
                    if verdict is not None:
                        on_event(_given_up(lost, *verdict))
                    elif interrupt.asked:
                        on_event(_given_up(lost, "interrupted", ""))
                    else:
                        waiting.append(lost)
                elif event is not None:
                    stopped = event.status == "interrupted" and not interrupt.asked
                    if stopped and worker.last is not None:
                        waiting.append(worker.last)  # a signal stopped this worker alone
                    else:
                        on_event(event)
            busy = [worker.pipe for worker in crew if worker.work]
            if len(busy) == len(crew) or (busy and not waiting):  # else an idle one begins
                wait(busy, timeout=0.2)
    finally:
        for worker in crew:
            worker.dismiss(at_once=interrupt.asked > 1)
        for worker in crew:
            worker.join()


class _Losses:
    def __init__(self) -> None:
        self._lost: dict[tuple[Path, bool], list[str]] = {}

    def judge(self, work: Work, code: int | None) -> tuple[manifest.Status, str] | None:
        """Return status and reason if this loss ends the run, or None to try the run again.

        code : the exit code of the worker, or minus the number of the signal that ended it.
        """
        crashed = code is not None and (code >= 0 or -code in _CRASHES)
        lost = self._lost.setdefault((work.folder, crashed), [])
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


def _given_up(work: Work, status: manifest.Status, error: str) -> Event:
    with suppress(CmdplabError, OSError):
        work.folder.mkdir(parents=True, exist_ok=True)
        with held(work.folder):
            # The worker may have died before it wrote a manifest. The next attempt finds damage.
            record = manifest.read_if_good(work.folder)
            if record is None and error and not (work.folder / manifest.NAME).exists():
                record = manifest.Manifest(settings=work.settings, status=status)
            if record is not None and record.status != "done":
                record.status, record.error = status, error
                manifest.write(work.folder, record)
    return Event(work.folder.name, status, error)
