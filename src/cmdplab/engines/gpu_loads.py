"""A load that leaves the first-level cache to others.

Counts are read once an episode by one run, the true kernel by all runs of a multiprocessor: counts
that took room in its cache would drive the kernel out. Numba's own cache hints are not declared to
read memory, so that a compiler may take them out of a loop; this one is.
"""

from __future__ import annotations

from typing import Any

from cmdplab.engines.gpu_setup import simulated

_LOAD = "ld.global.L1::no_allocate.b32 $0, [$1];"


def _plain(array: Any, place: Any) -> Any:
    """array[place], in the simulator."""
    return array[place]


def _intrinsic() -> Any:
    from llvmlite import ir
    from numba.cuda.extending import intrinsic

    @intrinsic  # type: ignore[untyped-decorator]
    def streamed(typing: Any, array: Any, place: Any) -> Any:
        """array[place] of 32-bit whole numbers, for an unsigned place."""

        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            whole = context.get_value_type(signature.return_type)
            held = context.make_array(signature.args[0])(context, builder, value=values[0])
            pointer = builder.gep(held.data, [values[1]])
            kind = ir.FunctionType(whole, [pointer.type])
            load = ir.InlineAsm(kind, _LOAD, "=r,l", side_effect=True)
            return builder.call(load, [pointer])

        return array.dtype(array, place), generate

    return streamed


streamed = _plain if simulated() else _intrinsic()
