"""Measures that are kept on the card: only rows of the thinned curve and sums ever come back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from cmdplab.engines.gpu.device import WARP, cuda
from cmdplab.engines.gpu.judging import Accumulators, judge_kernel
from cmdplab.errors import InputError
from cmdplab.measures.measures import TAIL, Measures, on_grid
from cmdplab.measures.mistakes import epsilons
from cmdplab.types import Array


def measure_bytes(constraints: int, chunk: int) -> int:
    """Bytes on the card for the measures of one run, with a row for each episode of a chunk."""
    judged = 3 if constraints else 1
    kept = TAIL + 2 * judged * 202 + 4 * (constraints + 2) + 8
    return 8 * (kept + chunk * (1 + 3 * (constraints + 2) + 4 + constraints))


class Standing(NamedTuple):
    """Where all runs stood after an episode."""

    episodes: int
    last: Array  # [B, 1 or 2], gap and largest violation


class CardMeasures:
    """The measures of all runs of a batch, fed with what `GpuBatch.launch` gives.

    `before` is what `Measures.arrays` gave of each run, to go on from: all of them equally far.
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
        """The numbers of the last TAIL episodes."""
        return np.arange(max(self._episodes - TAIL, 0), self._episodes) + 1

    def add(self, chunk: Any, stream: Any) -> None:
        """The next episodes of every run, a `CardChunk`: judged while others are played.

        One thread a run leaves room for the blocks that play: beside them it takes no time.
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
        """Wait for what was judged last, while the card plays on, and fetch what is to be kept."""
        if self._stream is None:
            return
        if self._waiting is not None:
            self._rows.append(self._waiting.copy_to_host(stream=stream))
            self._waiting = None
        last = self._card.last.copy_to_host(stream=stream)
        stream.synchronize()
        # Like with like, so that pieces are few: a thousand of them make `each` ten times as slow.
        while len(self._rows) > 1 and self._rows[-1].shape[1] >= self._rows[-2].shape[1]:
            later, earlier = self._rows.pop(), self._rows.pop()
            self._rows.append(np.concatenate([earlier, later], axis=1))
        self.standing = Standing(self._episodes, last[:, :2])

    def broken(self) -> list[int]:
        """The runs whose values are not finite: a setting of theirs is too large."""
        if self._stream is not None:
            self._stream.synchronize()
        good = np.isfinite(self._card.sums.copy_to_host()).all(axis=(1, 2))
        return [int(b) for b in np.flatnonzero(~good)]

    def measures(self) -> list[Measures]:
        """The measures of every run, on the host: as if it had been judged there."""
        return list(self.each())

    def each(self) -> Iterator[Measures]:
        """The same, one after the other."""
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
    """[B, N] -> [B, N']: no array on the card is empty."""
    return columns if columns.shape[1] else np.zeros((len(columns), 1))
