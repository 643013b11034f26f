"""Measures computed on the card: only rows of the thinned curve and sums are copied to the host.

One thread judges one run, episode after episode, in the order of `Measures`. Every number equals,
to the last bit, that of returns copied and judged on the host. B is the number of runs, and N' is
the number N of constraints, at least 1.
"""
# Numba infers the types of the kernel.

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numba.extending import register_jitable

from cmdplab.cmdp import exact
from cmdplab.engines.gpu.device import WARP, as_kernel, cuda
from cmdplab.errors import InputError
from cmdplab.measures.measures import TAIL, Measures, on_grid
from cmdplab.measures.mistakes import epsilons
from cmdplab.types import Array

gap, violation = register_jitable(exact.gap), register_jitable(exact.violation)

# Registers of a thread that judges, at most those of a thread that plays, which it replaces. With
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
    """Add gaps and violations of every episode to the `Accumulators`, by one thread per run."""
    b = cuda.grid(1)
    if b >= len(optimum):
        return
    N, summed = constraints, sums.shape[2]
    series = low.shape[1]
    row = 0
    for k in range(returns.shape[1]):
        largest = -np.inf
        for n in range(N):
            last[b, 2 + n] = violation(threshold[b, n], returns[b, k, 1 + n])
            largest = max(largest, last[b, 2 + n])
        last[b, 0] = gap(optimum[b], returns[b, k, 0])
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
    """Results of the judge on the card: S series, M of them summed, C of them counted."""

    sums: Any  # [B, 2, M]: of positive parts, of values
    low: Any  # [B, S], since the last row
    high: Any  # [B, S]
    last: Any  # [B, S]
    counts: Any  # [B, C, 202], a histogram over the grid of epsilon
    latest: Any  # [B, C, 202], the last episode of each bin
    tail: Any  # [B, TAIL], the gap of episode k at k modulo TAIL
    final: Any  # [B, N'], the multipliers after the last episode


@cache
def judge_kernel() -> Any:
    """Return the kernel that judges, which is compiled at its first launch."""
    return as_kernel(_judge, WARP, _REGISTERS)


def measure_bytes(constraints: int, chunk: int) -> int:
    """Return the bytes on the card for the measures of one run, for chunks of `chunk` episodes."""
    judged = 3 if constraints else 1
    kept = TAIL + 2 * judged * 202 + 4 * (constraints + 2) + 8
    return 8 * (kept + chunk * (1 + 3 * (constraints + 2) + 4 + constraints))


class Standing(NamedTuple):
    """Gap and largest violation of all runs after the same number of episodes."""

    episodes: int
    last: Array  # [B, 1 or 2], gap and largest violation


class CardMeasures:
    """Measures of all runs of a batch, computed from the results of `GpuBatch.launch`.

    optima, thresholds : the optimal value and the thresholds of each run, [B] and [B, N].
    keep : selects the episodes that become points of the curves.
    before : `Measures.arrays` of each run, to continue. All runs must have played equally many
    episodes.
    """

    def __init__(
        self,
        optima: Sequence[float],
        thresholds: Array,
        horizon: int,
        keep: Callable[[Array], Array] = on_grid,
        before: Sequence[dict[str, Array]] | None = None,
    ) -> None:
        B, N = thresholds.shape
        S, M, C = (N + 2, 2, 3) if N else (1, 1, 1)
        self._optima, self._thresholds, self._horizon = list(optima), thresholds, horizon
        grid = epsilons(horizon)
        self._fixed = [
            cuda.to_device(each) for each in (np.array(self._optima), _padded(thresholds), grid)
        ]
        counted = (B, C, len(grid) + 1)
        empty = Accumulators(
            sums=np.zeros((B, 2, M)),
            low=np.full((B, S), np.inf),
            high=np.full((B, S), -np.inf),
            last=np.zeros((B, S)),
            counts=np.zeros(counted),
            latest=np.zeros(counted),
            tail=np.zeros((B, TAIL)),
            final=np.zeros((B, max(N, 1))),
        )
        self._columns = 1 + 3 * S + 2 * M + N
        self._keep = keep
        self._rows: list[Array] = []  # [B, points, columns]
        self._episodes = 0
        if before is not None:
            empty = self._resumed(before)
        self._card = Accumulators(*(cuda.to_device(each) for each in empty))
        self._waiting: Any = None  # the rows of the latest episodes, still on the card
        self._stream: Any = None  # on which something was judged
        self.standing: Standing | None = None  # one launch behind: nobody waits for it

    def _resumed(self, before: Sequence[dict[str, Array]]) -> Accumulators:
        if len({float(each["episodes"]) for each in before}) > 1:
            raise InputError("the runs of a batch are not equally far")
        self._episodes = int(before[0]["episodes"])

        def of(name: str) -> Array:
            return np.stack([each[name] for each in before])

        self._rows = [of("rows")]
        tail = np.zeros((len(before), TAIL))
        tail[:, self._ring() % TAIL] = of("tail")
        spread = (of("sums"), of("low"), of("high"), of("last"), of("mistakes"))
        multiplier = _padded(of("last_multiplier"))
        return Accumulators(*spread, of("last_mistakes"), tail, multiplier)

    def _ring(self) -> Any:
        """Return the numbers of the last TAIL episodes."""
        return np.arange(max(self._episodes - TAIL, 0), self._episodes) + 1

    def add(self, chunk: Any, stream: Any) -> None:
        """Judge the next episodes of every run, a `CardChunk`, on a stream beside the launches.

        One thread per run leaves registers for the blocks that play, so the judge takes no extra
        time.
        """
        self._collect(stream)  # what came before
        B, E, _ = chunk.returns.shape
        N = self._thresholds.shape[1]
        kept = self._keep(self._episodes + np.arange(1, E + 1, dtype=np.float64))
        rows = cuda.device_array((B, max(int(kept.sum()), 1), self._columns), np.float64)
        blocks = -(-B // WARP)
        marked = cuda.to_device(kept.astype(np.int8), stream=stream)
        given = (*self._fixed, marked, self._episodes + 1, N)
        chunk.played.wait(stream)
        judged = (chunk.returns, chunk.multiplier)
        judge_kernel()[blocks, WARP, stream](*judged, *given, *self._card, rows)
        chunk.read.record(stream)
        self._stream = stream
        self._waiting = rows if kept.any() else None
        self._episodes += E

    def _collect(self, stream: Any) -> None:
        """Wait for the last judgement, while the card plays on, and fetch its rows."""
        if self._stream is None:
            return
        if self._waiting is not None:
            self._rows.append(self._waiting.copy_to_host(stream=stream))
            self._waiting = None
        last = self._card.last.copy_to_host(stream=stream)
        stream.synchronize()
        # Join pieces of similar length. A thousand short ones make `each` ten times as slow.
        while len(self._rows) > 1 and self._rows[-1].shape[1] >= self._rows[-2].shape[1]:
            later, earlier = self._rows.pop(), self._rows.pop()
            self._rows.append(np.concatenate([earlier, later], axis=1))
        self.standing = Standing(self._episodes, last[:, :2])

    def broken(self) -> list[int]:
        """Return the indices of runs whose values are not finite: a setting is too large."""
        if self._stream is not None:
            self._stream.synchronize()
        good = np.isfinite(self._card.sums.copy_to_host()).all(axis=(1, 2))
        return [int(b) for b in np.flatnonzero(~good)]

    def measures(self) -> list[Measures]:
        """Return the measures of every run on the host, equal to those judged on the host."""
        return list(self.each())

    def each(self) -> Iterator[Measures]:
        """Yield the measures of every run on the host, one after the other."""
        if self._stream is not None:
            self._collect(self._stream)
        host = Accumulators(*(each.copy_to_host() for each in self._card))
        ring = self._ring() % TAIL
        for b, optimum in enumerate(self._optima):
            arrays = {
                "episodes": np.array(float(self._episodes)),
                "sums": host.sums[b],
                "low": host.low[b],
                "high": host.high[b],
                "last": host.last[b],
                "last_multiplier": host.final[b][: self._thresholds.shape[1]],
                "tail": host.tail[b][ring],
                "rows": np.concatenate([np.zeros((0, self._columns)), *(r[b] for r in self._rows)]),
                "mistakes": host.counts[b],
                "last_mistakes": host.latest[b],
            }
            known = (optimum, self._thresholds[b], self._horizon)
            yield Measures.resumed(*known, arrays)


def _padded(columns: Array) -> Array:
    """Convert [B, N] to [B, N'], because no array on the card may be empty."""
    return columns if columns.shape[1] else np.zeros((len(columns), 1))
