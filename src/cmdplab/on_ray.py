"""The same sweep on a Ray cluster: a run is a task, a lost worker's task continues elsewhere.

Every node must see the experiment's folder under the same path (one machine, or a shared file
system): checkpoints and records are files there, exactly as in a local sweep.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cmdplab.errors import InputError
from cmdplab.pool import Ended, Interrupt, Work, do_one
from cmdplab.sweeping import Tell

CONNECT_SECONDS = 20
RETRIES = 20  # of a task whose worker or node was lost; each goes on from its checkpoint


def ray_executor(address: str | None) -> Any:
    """An executor for `sweep`: on the cluster at the address, or on a local one of its own."""

    def execute(works: list[Work], tell: Tell, interrupt: Interrupt, every: float) -> None:
        with _connected(address) as ray:
            task = ray.remote(num_cpus=1, max_retries=RETRIES)(_perform)
            waiting = {
                task.remote(
                    str(w.folder.resolve()),
                    w.settings.model_dump_json(),
                    str(w.problem_file.resolve()),
                    every,
                ): w.folder.name
                for w in works
            }
            while waiting and not interrupt.asked:
                ready, _ = ray.wait(list(waiting), timeout=0.5)
                for reference in ready:
                    tell(_result(ray, reference, waiting.pop(reference)))
            for reference in waiting:
                ray.cancel(reference, force=False)

    return execute


def _perform(folder: str, settings: str, problem_file: str, every: float) -> tuple[str, str, str]:
    """On a worker: the same function as in a local sweep."""
    ended = do_one(Path(folder), settings, Path(problem_file), every=every, patience=60.0)
    return tuple(ended)  # type: ignore[return-value]


def _result(ray: Any, reference: Any, name: str) -> Ended:
    try:
        return Ended(*ray.get(reference))
    except Exception as error:
        return Ended(name, "failed", str(error).splitlines()[0])


@contextmanager
def _connected(address: str | None) -> Iterator[Any]:
    try:
        import ray
    except ImportError:
        raise InputError("Ray is not installed: pip install 'cmdplab[ray]'") from None
    os.environ.setdefault("RAY_DEDUP_LOGS", "1")
    quiet = {"log_to_driver": False, "logging_level": "ERROR", "ignore_reinit_error": True}
    if address is not None:
        _reachable(address)
        try:
            ray.init(address=address, **quiet)
        except Exception as error:
            reason = str(error).splitlines()[0]
            raise InputError(f"no Ray cluster answers at {address}: {reason}") from None
    else:
        # A cluster of our own listens on the loopback address only.
        ray.init(_node_ip_address="127.0.0.1", include_dashboard=False, **quiet)
    try:
        yield ray
    finally:
        ray.shutdown()


def _reachable(address: str) -> None:
    """One sentence after seconds, where Ray itself would try for minutes."""
    import socket

    if address == "auto":
        return
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=CONNECT_SECONDS):
            return
    except (OSError, ValueError) as error:
        raise InputError(f"no Ray cluster answers at {address}: {error}") from None
