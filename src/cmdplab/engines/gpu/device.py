"""The only import of Numba's CUDA: the check for a device, and the compilation of kernels.

With NUMBA_ENABLE_CUDASIM=1 kernels run in Numba's simulator, in plain Python, without a device.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any

import numpy as np
from numba.core import config

from cmdplab.errors import EngineError
from cmdplab.numerics import compiling
from cmdplab.numerics.cache import Kept

# numba-cuda 0.30 imports a name that NumPy 2.5 removed, and makes a timedelta without a unit, which
# NumPy 2.5 warns about. To be dropped when that is fixed there.
vars(np).setdefault("row_stack", np.vstack)
with warnings.catch_warnings():
    warnings.filterwarnings("ignore", "The 'generic' unit for NumPy", DeprecationWarning)
    cuda = importlib.import_module("numba.cuda")
if not config.ENABLE_CUDASIM:  # a single run is a small launch, and meant to be
    importlib.import_module("numba.cuda.dispatcher").config.CUDA_LOW_OCCUPANCY_WARNINGS = 0

__all__ = ["as_kernel", "card", "cuda", "free_memory", "missing", "needed", "simulated"]

WARP = 32  # threads that run in step and can exchange registers
_REGISTERS = 65536  # of a multiprocessor, which one block must not exceed
_MOST = 255  # registers a thread can have


def simulated() -> bool:
    """Return True if kernels run in the simulator."""
    return bool(config.ENABLE_CUDASIM)


def missing() -> str:
    """Return the reason why kernels cannot run, as a sentence; an empty one if they can."""
    if simulated():
        device = importlib.import_module("numba.cuda.simulator.kernelapi").FakeCUDAModule
        complete = hasattr(device, "shfl_xor_sync")  # the tests add what it lacks
        return "" if complete else "NUMBA_ENABLE_CUDASIM is set, and that is for tests only"
    if importlib.util.find_spec("numba_cuda") is None:
        return "the GPU engine needs numba-cuda: pip install 'cmdplab[gpu]'"
    if not cuda.is_available():
        return "there is no CUDA device here, or its driver is too old"
    return _trouble()


@cache
def _trouble() -> str:
    """Compile and run a minimal kernel. Return its failure as a sentence, or an empty one."""

    def probe(out):  # type: ignore[no-untyped-def]
        out[0] = 1

    try:
        place = cuda.to_device(np.zeros(1, np.int32))
        as_kernel(probe, WARP)[1, 1](place)
        worked = place.copy_to_host()[0] == 1
    except Exception as error:  # a driver older than the toolkit, a toolkit without a compiler
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        return f"the CUDA device cannot be used: {first.rstrip('.')}"
    return "" if worked else "the CUDA device does not compute"


def needed() -> None:
    """Raise an EngineError if no device can be used."""
    why = missing()
    if why:
        raise EngineError(f"{why}; the engine cpu works without")


class _KeptKernel(Kept):
    """Files with the compiled forms of a kernel."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        with importlib.import_module("numba.cuda.utils").numba_target_override():
            return super().load_overload(sig, target_context)


def as_kernel(function: Callable[..., None], threads: int, registers: int = _MOST) -> Any:
    """Return a kernel for blocks of `threads` threads, with at most `registers` registers each.

    The compiled kernel is kept on disk, by the content of its closure. The key of numba-cuda
    pickles the closure, which gives other bytes in every process, and omits the number of
    registers.
    """
    compiling.load()
    if simulated():
        return cuda.jit(function)
    most = min(registers, _REGISTERS // threads // 8 * 8, _MOST)
    kernel = cuda.jit(max_registers=most)(function)
    made = importlib.import_module("numba.cuda.dispatcher")._Kernel
    kernel._cache = _KeptKernel(
        function,
        lambda each: each._reduce_states(),
        lambda context, parts: made._rebuild(**parts),
        (most, version("numba-cuda")),
    )
    return kernel


def card(precision: str) -> dict[str, str]:
    """Return names of device, compiler and precision for a manifest: they decide the last bits."""
    if simulated():
        return {"processor": "CUDA simulator", "features": precision}
    device = cuda.get_current_device()
    name = device.name.decode() if isinstance(device.name, bytes) else str(device.name)
    made = f"numba-cuda {version('numba-cuda')}"
    return {"processor": name, "features": f"{precision} {device.compute_capability} {made}"}


def free_memory() -> int:
    """Return the bytes that can still be allocated on the device."""
    if simulated():
        return 1 << 30
    context = cuda.current_context()
    context.deallocations.clear()  # what is no longer used is given back late otherwise
    return int(context.get_memory_info()[0])
