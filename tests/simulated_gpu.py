"""Numba's CUDA simulator, with what it lacks: the exchange of registers inside a warp.

And with shared arrays that are shared: of two threads that ask for one at the same time, the
simulator gives each an array of its own, now and then.

Not a test: test_gpu.py runs it in a process of its own, with NUMBA_ENABLE_CUDASIM=1.
"""

from __future__ import annotations

import sys
import threading
from typing import Any

import numpy as np

from cmdplab.engines.gpu.device import cuda  # the one place that imports it

kernelapi = cuda.simulator.kernelapi
WARP = 32
PATIENCE = 120.0  # seconds after which a thread that never comes is an error, not a hang


class Warp:
    """Where the threads of one warp meet, and what they hold up for each other."""

    def __init__(self) -> None:
        self.meeting = threading.Barrier(WARP, timeout=PATIENCE)
        self.held: list[list[Any]] = [[None] * WARP, [None] * WARP]
        self.turn = [0] * WARP


def shfl_xor_sync(module: Any, mask: int, value: Any, lanes: int) -> Any:
    """What the thread of the warp holds whose number differs in the bits of `lanes`."""
    thread = threading.current_thread()
    warp, lane = divmod(thread.thread_id, WARP)  # type: ignore[attr-defined]
    with _making:
        warps = thread._manager.__dict__.setdefault("warps", {})  # type: ignore[attr-defined]
        mine = warps.setdefault(warp, Warp())
    held = mine.held[mine.turn[lane]]  # by turns: no thread is two exchanges ahead of another
    mine.turn[lane] ^= 1
    held[lane] = value
    mine.meeting.wait()
    return held[lane ^ lanes]


def shared_array(self: Any, shape: int, dtype: Any) -> Any:
    """The array of a block that a line of code asks for, one for all threads."""
    caller = sys._getframe(1)
    place = (caller.f_code.co_filename, caller.f_lineno)
    return self._allocations.setdefault(place, np.empty(shape, dtype))  # in one step


_making = threading.Lock()
kernelapi.FakeCUDAShared.array = shared_array
kernelapi.FakeCUDAModule.shfl_xor_sync = shfl_xor_sync
sys.setswitchinterval(1e-4)  # the simulator's own loop spins; the threads are what matters
