"""Measures of a run, in memory that does not grow with the number of episodes.

Every episode enters every sum, minimum and maximum. Only the curve is thinned, to a grid that
depends on the number of the episode alone. Each grid point keeps the minimum and the maximum since
the one before, so that no oscillation is lost. All sums run episode by episode: the division into
chunks does not change a bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.algorithms.learner import Chunk
from cmdplab.cmdp import exact
from cmdplab.errors import InputError
from cmdplab.measures.mistakes import SERIES, Mistakes, epsilons
from cmdplab.measures.safety import BASELINE
from cmdplab.types import Array

FINENESS = 9  # 2^9 = 512 grid points in each octave
TAIL = 10_000  # episodes over which the final oscillation is measured


class Summary(NamedTuple):
    """The end of a run in a few numbers. If N = 0, the numbers about violation are None."""

    episodes: int
    final_gap: float
    final_violation: float | None
    tail_std: float  # standard deviation of the gap over the last TAIL episodes
    tail_range: float  # maximum less minimum of the gap over the last TAIL episodes
    strong_regret: float
    weak_regret: float
    strong_violation_regret: float | None
    weak_violation_regret: float | None


NUMBERS = tuple(field for field in Summary._fields if field != "episodes")


def on_grid(episodes: Array) -> Array:
    """Return booleans [E]: True for episodes up to 1023, then for 512 equally spaced an octave."""
    _, exponent = np.frexp(episodes)  # 2^(exponent - 1) <= k < 2^exponent
    step = np.exp2(np.maximum(exponent - 1 - FINENESS, 0))
    return np.asarray(episodes % step == 0.0)


class Measures:
    """Accumulator of gaps, violations, regrets and mistakes over the episodes of a run.

        gap^k = V* - V^{pi^k}[r^0], violation^k = max_n b^n - V^{pi^k}[r^n]   (Section 2.2);
        weak regret is the plain sum, strong regret the sum of positive parts   (Appendix B).

    optimum, threshold : V* and b [N].
    with_baseline : sum the probability of the safe policy as well.
    """

    def __init__(
        self, optimum: float, threshold: Array, horizon: int, with_baseline: bool = False
    ) -> None:
        N = len(threshold)
        self._with_baseline = with_baseline  # one more column: the probability of the safe policy
        self._given = 0.0
        self._epsilons = epsilons(horizon)
        self._mistakes = Mistakes(self._epsilons, 3 if N else 1)
        self._optimum, self._threshold = optimum, threshold
        self._series = ["gap"] + ["violation"] * (N > 0) + [f"violation_{n + 1}" for n in range(N)]
        self._summed = min(N + 1, 2)  # gap and the largest violation
        self._episodes = 0
        self._sums = np.zeros((2, self._summed))  # strong, weak
        self._low = np.full(len(self._series), np.inf)
        self._high = np.full(len(self._series), -np.inf)
        self._last = np.zeros(len(self._series))
        self._last_multiplier = np.zeros(N)
        self._tail = np.zeros(0)
        self._rows: list[Array] = []

    def add(self, chunk: Chunk) -> None:
        """Add the next episodes, a chunk of returns; refuse values that are not finite."""
        series = self._values(chunk.returns)
        if not np.isfinite(series).all():
            first = self._episodes + 1 + int(np.argmin(np.isfinite(series).all(axis=1)))
            raise InputError(
                f"the values of episode {first} are not finite: a setting is too large"
            )
        episodes = self._episodes + np.arange(1, len(series) + 1, dtype=np.float64)
        sums, given = self._running_sums(series), self._running_share(chunk)
        self._mistakes.add(self._judged(series), episodes)
        ends = np.flatnonzero(on_grid(episodes))
        if len(ends):
            # Segment j begins after the grid point before, and ends at the point ends[j].
            starts = np.concatenate([[0], ends[:-1] + 1])
            until = series[: ends[-1] + 1]
            low = np.minimum.reduceat(until, starts)
            high = np.maximum.reduceat(until, starts)
            low[0] = np.minimum(low[0], self._low)
            high[0] = np.maximum(high[0], self._high)
            columns = [episodes[ends, None], series[ends], low, high]
            columns += [sums[ends], chunk.multiplier[ends], given[ends]]
            self._rows.append(np.hstack(columns))
            self._low[:], self._high[:] = np.inf, -np.inf
        rest = series[ends[-1] + 1 if len(ends) else 0 :]
        self._low = np.minimum(self._low, rest.min(axis=0, initial=np.inf))
        self._high = np.maximum(self._high, rest.max(axis=0, initial=-np.inf))
        self._episodes += len(series)
        # Copies: a view would keep the whole chunk alive.
        self._sums = sums[-1].reshape(2, -1).copy()
        self._last, self._last_multiplier = series[-1].copy(), chunk.multiplier[-1].copy()
        self._given = float(given[-1, 0]) if self._with_baseline else 0.0
        self._tail = np.concatenate([self._tail, series[-TAIL:, 0]])[-TAIL:].copy()

    def arrays(self) -> dict[str, Array]:
        """Return the state as named arrays, from which `resumed` continues."""
        return {
            "episodes": np.array(float(self._episodes)),
            "sums": self._sums,
            "low": self._low,
            "high": self._high,
            "last": self._last,
            "last_multiplier": self._last_multiplier,
            "tail": self._tail,
            **({"given": np.array(self._given)} if self._with_baseline else {}),
            "rows": np.vstack(self._rows) if self._rows else np.zeros((0, self._columns())),
            **self._mistakes.arrays(),
        }

    @classmethod
    def resumed(
        cls, optimum: float, threshold: Array, horizon: int, arrays: dict[str, Array]
    ) -> Measures:
        """Return measures that continue from `arrays()` of an earlier part, to the last bit."""
        measures = cls(optimum, threshold, horizon, "given" in arrays)
        measures._given = float(arrays.get("given", 0.0))
        measures._mistakes.resume(arrays)
        measures._episodes = int(arrays["episodes"])
        measures._rows = [arrays["rows"]]
        for field in ("sums", "low", "high", "last", "last_multiplier", "tail"):
            setattr(measures, f"_{field}", arrays[field].copy())
        return measures

    def _columns(self) -> int:
        of_each = 1 + 3 * len(self._series) + 2 * self._summed + len(self._threshold)
        return of_each + self._with_baseline

    def _values(self, returns: Array) -> Array:
        """Return gap, largest violation and violations [E, 1 + 1 + N] of returns [E, 1 + N]."""
        gap = exact.gap(self._optimum, returns[:, :1])
        violations = exact.violation(self._threshold, returns[:, 1:])
        largest = violations.max(axis=1, keepdims=True) if len(self._threshold) else violations
        return np.hstack([gap, largest, violations])

    def _judged(self, series: Array) -> Array:
        """Return gap, largest violation and the larger of both, [E, 3]; [E, 1] if N = 0."""
        judged = series[:, : self._summed]
        return (
            np.hstack([judged, judged.max(axis=1, keepdims=True)]) if self._summed > 1 else judged
        )

    def mistakes(self) -> dict[str, Array]:
        """Return the number of mistakes and the last one for each epsilon, as named columns."""
        columns = {"epsilon": self._epsilons}
        counts, last = self._mistakes.counts(), self._mistakes.last()
        for n, name in enumerate(SERIES[: len(counts)]):
            columns |= {f"{name}_mistakes": counts[n], f"{name}_last_mistake": last[n]}
        return columns

    def _running_sums(self, series: Array) -> Array:
        """Return strong and weak sums after each episode, added strictly in order: [E, S]."""
        summed = series[:, : self._summed]
        terms = np.hstack([np.maximum(summed, 0.0), summed])
        return np.add.accumulate(np.vstack([self._sums.reshape(1, -1), terms]), axis=0)[1:]

    def _running_share(self, chunk: Chunk) -> Array:
        """Return the sum of the safe policy's probability so far, [E, 1]; [E, 0] if not kept."""
        if not self._with_baseline:
            return np.empty((len(chunk.returns), 0))
        return np.add.accumulate(np.append(self._given, chunk.on_baseline))[1:, None]

    def curves(self) -> dict[str, Array]:
        """Return the columns over the grid and the last episode, by name (docs/records.md)."""
        rows = [*self._rows]
        if not on_grid(np.array([float(self._episodes)]))[0]:
            values = [self._last, self._low, self._high, self._sums.ravel(), self._last_multiplier]
            values += [np.array([self._given])] * self._with_baseline
            rows.append(np.concatenate([[float(self._episodes)], *values])[None])
        table = np.vstack(rows)
        names = ["episode", *self._series]
        names += [f"{name}_{end}" for end in ("min", "max") for name in self._series]
        what = ["regret", "violation_regret"][: self._summed]
        names += [f"{kind}_{each}" for kind in ("strong", "weak") for each in what]
        names += [f"multiplier_{n + 1}" for n in range(len(self._threshold))]
        names += [BASELINE] * self._with_baseline
        return dict(zip(names, table.T.copy(), strict=True))

    def summary(self) -> Summary:
        """Return the end of the run so far in a few numbers."""
        constrained = self._summed == 2
        strong, weak = self._sums
        return Summary(
            episodes=self._episodes,
            final_gap=float(self._last[0]),
            final_violation=float(self._last[1]) if constrained else None,
            tail_std=float(np.std(self._tail)),
            tail_range=float(np.ptp(self._tail)),
            strong_regret=float(strong[0]),
            weak_regret=float(weak[0]),
            strong_violation_regret=float(strong[1]) if constrained else None,
            weak_violation_regret=float(weak[1]) if constrained else None,
        )
