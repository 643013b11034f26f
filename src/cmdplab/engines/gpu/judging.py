"""How episodes are judged on the card, by the kernel behind gpu_measures.py.

One thread judges one run, episode after episode, in the order of `measures.Measures`, so that every
number is the same to the last bit as if the returns had been copied and judged on the host.
"""
# Numba infers the types of this kernel.

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from cmdplab.engines.gpu.device import WARP, as_kernel, cuda

# Of a thread: no more than a thread that plays has, so that one takes the room of the other. With
# 255 a multiprocessor that judges holds 28 runs in float32 instead of 31.
_REGISTERS = 64


def _judge(
    returns,
    multiplier,
    optimum,
    threshold,
    grid,
    kept,
    first,
    constraints,
    sums,
    low,
    high,
    last,
    counts,
    latest,
    tail,
    final,
    rows,
):
    """Gap, largest violation and each violation of every episode, into all accumulators."""
    b = cuda.grid(1)
    if b >= len(optimum):
        return
    N, summed = constraints, sums.shape[2]
    series = low.shape[1]
    row = 0
    for k in range(returns.shape[1]):
        largest = -np.inf
        for n in range(N):
            violation = threshold[b, n] - returns[b, k, 1 + n]
            last[b, 2 + n] = violation
            largest = max(largest, violation)
        last[b, 0] = optimum[b] - returns[b, k, 0]
        if N > 0:
            last[b, 1] = largest
        for m in range(series):
            low[b, m] = min(low[b, m], last[b, m])
            high[b, m] = max(high[b, m], last[b, m])
        for m in range(summed):
            sums[b, 0, m] += max(last[b, m], 0.0)
            sums[b, 1, m] += last[b, m]
        for m in range(counts.shape[1]):
            value = last[b, m] if m < 2 else max(last[b, 0], last[b, 1])
            if value > grid[0]:
                below, above = 0, len(grid)  # grid[below] < value; the first that is not, by halves
                while above - below > 1:
                    middle = (below + above) // 2
                    if grid[middle] < value:
                        below = middle
                    else:
                        above = middle
                counts[b, m, above] += 1.0
                latest[b, m, above] = first + k
        tail[b, (first + k) % tail.shape[1]] = last[b, 0]
        if kept[k]:
            rows[b, row, 0] = first + k
            for m in range(series):
                rows[b, row, 1 + m] = last[b, m]
                rows[b, row, 1 + series + m] = low[b, m]
                rows[b, row, 1 + 2 * series + m] = high[b, m]
                low[b, m], high[b, m] = np.inf, -np.inf
            for m in range(summed):
                rows[b, row, 1 + 3 * series + m] = sums[b, 0, m]
                rows[b, row, 1 + 3 * series + summed + m] = sums[b, 1, m]
            for n in range(N):
                rows[b, row, 1 + 3 * series + 2 * summed + n] = multiplier[b, k, n]
            row += 1
    for n in range(N):
        final[b, n] = multiplier[b, returns.shape[1] - 1, n]


class Accumulators(NamedTuple):
    """What a judge writes, in the order of its arguments; S series, M of them summed."""

    sums: Any  # [B, 2, M]: of positive parts, of values
    low: Any  # [B, S], since the last row
    high: Any  # [B, S]
    last: Any  # [B, S]
    counts: Any  # [B, C, 202], a histogram over the grid of epsilon
    latest: Any  # [B, C, 202]
    tail: Any  # [B, TAIL], the gap of episode k at k modulo TAIL
    final: Any  # [B, N'], the multipliers after the last episode


@cache
def judge_kernel() -> Any:
    """The kernel, compiled when it is first launched."""
    return as_kernel(_judge, WARP, _REGISTERS)
