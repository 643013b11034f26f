"""Executor that plays sweeps on a Ray cluster: each run is a task.

If a worker is lost, its task continues on another one. Every node must see the experiment's folder
under the same path, since checkpoints and records are files there, as in a local sweep.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

from cmdplab.errors import EngineError, check_installed
from cmdplab.experiments.durable import do_one
from cmdplab.experiments.executors.worker import Interrupt
from cmdplab.experiments.sweep import Executor
from cmdplab.experiments.work import Event, OnEvent, Work

CONNECT_SECONDS = 30.0
STOP_SECONDS = 4.0  # for every task to finish its chunk and checkpoint
LOOPBACK = ("127.", "localhost")
RETRIES = 20  # restarts of a task after a lost worker; it resumes its checkpoint


@contextmanager
def ray_executor(address: str | None) -> Iterator[Executor]:
    """Connect to the Ray cluster at `address`, or start one here. Yield an executor for `sweep`."""
    check_installed("ray")
    if address is not None:
        _reachable(address)
    with _connected(address) as ray:
        yield partial(_execute, ray)


def _execute(
    ray: Any, works: list[Work], on_event: OnEvent, interrupt: Interrupt, every: float
) -> None:
    task = ray.remote(num_cpus=1, max_retries=RETRIES)(_perform)
    # Tasks cannot be signalled across machines; all of them can see a file.
    stop = works[0].folder.resolve().parent / f".stop-{uuid4().hex}"
    waiting = {}
    for w in works:
        there = w._replace(folder=w.folder.resolve(), problem_file=w.problem_file.resolve())
        waiting[task.remote(there._replace(entry=None), stop, every)] = w.folder.name
    deadline = float("inf")
    try:
        while waiting and time.monotonic() < deadline and interrupt.asked < 2:
            ready, _ = ray.wait(list(waiting), timeout=0.5)
            for reference in ready:
                on_event(_result(ray, reference, waiting.pop(reference)))
            if interrupt.asked and deadline == float("inf"):
                stop.touch()
                deadline = time.monotonic() + STOP_SECONDS
        for reference in waiting:
            ray.cancel(reference, force=False)
    finally:
        stop.unlink(missing_ok=True)


def _perform(work: Work, stop: Path, every: float) -> Event:
    ended, _ = do_one(work, stop=stop.exists, every=every, patience=60.0)
    return ended


def _result(ray: Any, reference: Any, name: str) -> Event:
    try:
        event: Event = ray.get(reference)
        return event
    except Exception as error:
        own = isinstance(error, ray.exceptions.RayTaskError)
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        return Event(name, "failed" if own else "interrupted", reason)


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    if address is None or address.startswith(LOOPBACK):
        # Ray replaces a loopback address by the machine's outer address, where no cluster listens,
        # unless this variable is 0. Ray reads it when it is imported.
        os.environ.setdefault("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")
    import ray

    options: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
    if address is None:
        # A cluster of our own listens on the loopback address only. Not in a thread: the system
        # ends its processes when the thread that started them ends.
        ray.init(_node_ip_address="127.0.0.1", include_dashboard=False, **options)
    else:
        _within(CONNECT_SECONDS, lambda: ray.init(address=address, **options), address)
    try:
        yield ray
    finally:
        ray.shutdown()


def _within(seconds: float, connect: Callable[[], Any], address: str) -> None:
    """Call `connect`. Raise an `EngineError` with `address` if it fails or exceeds `seconds`."""
    answer: list[BaseException | None] = []

    def attempt() -> None:
        try:
            connect()
            answer.append(None)
        except BaseException as error:
            answer.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    if not answer:
        raise EngineError(f"no Ray cluster answers at {address} within {seconds:g} seconds")
    if answer[0] is not None:
        reason = str(answer[0]).splitlines()[0]
        raise EngineError(f"no Ray cluster answers at {address}: {reason}")


def _reachable(address: str) -> None:
    import socket

    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=5):
            return
    except (OSError, ValueError) as error:
        raise EngineError(f"no Ray cluster answers at {address}: {error}") from None
