"""Estimates of policies from episodes: means with intervals, never exact values."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from cmdplab import display
from cmdplab.statistics.intervals import Estimate, estimate
from cmdplab.statistics.samples import LEVEL
from cmdplab.types import Array, Indices

BLOCKS = 256  # a curve has at least so many blocks, and fewer than twice as many
LATE = 0.1  # the share of the episodes that counts as the last part


class Evaluation(NamedTuple):
    """Estimated returns of a policy with intervals, in the user's units."""

    objective: Estimate
    constrained: tuple[Estimate, ...]  # N costs or utilities

    @classmethod
    def of(cls, means: Iterable[Iterable[float]]) -> Evaluation:
        """Return an evaluation from (low, mean, high, episodes) of each signal, objective first."""
        first, *rest = (Estimate(float(a), float(m), float(b), int(n)) for a, m, b, n in means)
        return cls(first, tuple(rest))

    @property
    def every(self) -> tuple[Estimate, ...]:
        """Estimates [1 + N], the objective first."""
        return (self.objective, *self.constrained)

    def facts(self, names: Sequence[str], more: str = "") -> list[tuple[str, str]]:
        """Return (name, mean with interval) of each signal. `more` is added to the names."""
        return [
            (display.name(name) + more, f"{each.mean:.6g} ({each.low:.6g} to {each.high:.6g})")
            for name, each in zip(names, self.every, strict=True)
        ]


class Curve(NamedTuple):
    """Mean returns of consecutive blocks of B training episodes, in the user's units."""

    last: Indices  # [B], the last episode of each block
    episodes: Indices  # [B], number of episodes in each block
    mean: Array  # [B, 1 + N]


class Tally:
    """Sums and squares of returns in blocks of episodes. Too many blocks are merged in pairs."""

    def __init__(self, signals: int) -> None:
        self.episodes = 0
        self._length = 1  # episodes in a full block
        self._count = np.zeros(2 * BLOCKS)
        self._sums = np.zeros((2, 2 * BLOCKS, signals))  # sums of v and of v²

    @classmethod
    def resumed(cls, arrays: dict[str, Array]) -> Tally:
        """Return the tally that `arrays` wrote."""
        tally = cls(arrays["sums"].shape[-1])
        tally._count[:] = arrays["count"]
        tally._sums[:] = arrays["sums"]
        tally._length = int(arrays["length"])
        tally.episodes = int(tally._count.sum())
        return tally

    def arrays(self) -> dict[str, Array]:
        """Return the content as arrays by name."""
        return {
            "count": self._count.copy(),
            "sums": self._sums.copy(),
            "length": np.array(self._length),
        }

    def add(self, returns: Array) -> None:
        """Add the returns [1 + N] of one episode."""
        block = self.episodes // self._length
        if block == 2 * BLOCKS:
            self._count = _halved(self._count)
            self._sums = np.stack([_halved(each) for each in self._sums])
            self._length *= 2
            block = BLOCKS
        self.episodes += 1
        self._count[block] += 1
        self._sums[0, block] += returns
        self._sums[1, block] += returns**2

    def curve(self) -> Curve:
        """Return the mean returns of the blocks."""
        used = self._count > 0
        count = self._count[used].astype(np.int64)
        return Curve(np.cumsum(count), count, self._sums[0, used] / count[:, None])

    def evaluation(self, bounds: Array, share: float = 1.0, level: float = LEVEL) -> Evaluation:
        """Estimate returns from the last blocks: at most `share` of the episodes, or one block.

        bounds : [2, 1 + N], lowest and highest returns. level : of the intervals.
        """
        behind = self.episodes - np.cumsum(self._count) + self._count
        late = (self._count > 0) & (behind <= max(share * self.episodes, self._length))
        count = int(self._count[late].sum())
        total, squares = self._sums[:, late].sum(axis=1)
        sums = zip(total.tolist(), squares.tolist(), bounds.T.tolist(), strict=True)
        return Evaluation.of(estimate(count, t, s, (a, b), level) for t, s, (a, b) in sums)


def _halved(blocks: Array) -> Array:
    merged = blocks[0::2] + blocks[1::2]
    return np.concatenate([merged, np.zeros_like(merged)])
