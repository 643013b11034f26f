"""A live run in progress: an environment, a learner, and what was counted on the way."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cmdplab.algorithms.counts import NOWHERE
from cmdplab.engines.protocol import LiveSession
from cmdplab.experiments.play import CHUNK_SECONDS
from cmdplab.live.checkpoints import Saved
from cmdplab.live.environment import Copies, Env
from cmdplab.live.episodes import Act, Masked, Played, Setup, roll_out, roll_out_together
from cmdplab.live.evaluation import Evaluation, Tally
from cmdplab.live.masks import ToldMask, projected
from cmdplab.live.model.baseline import by_rows
from cmdplab.live.model.experience import Experience, Visits
from cmdplab.live.progress import OnProgress, Standing
from cmdplab.numerics.noise import uniforms
from cmdplab.types import Array, Indices

BATCH = 64  # episodes whose uniforms are drawn at once


class Playing:
    """A session that learns from an environment, episode by episode."""

    def __init__(
        self,
        env: Env,
        setup: Setup,
        begin: Callable[[Setup, Any], LiveSession],
        seed: int,
        saved: Saved | None,
        pooled: bool = False,
    ) -> None:
        """begin : makes a session of a setup and a state, anew whenever more actions are closed.

        pooled : whether the learner's steps share their counts.
        """
        self.pooled = pooled and setup.steps > 1
        self.env, self.setup, self.seed = env, setup, seed
        self._begin = begin
        sizes = (setup.spaces.states, setup.spaces.actions, len(setup.names))
        shape = (setup.horizon, *sizes[:2])
        fresh = (Tally(len(setup.names)), Visits(shape), 0, Experience(*sizes), None)
        self.tally, self.visits, self.cut, self.seen, told = fresh if saved is None else saved[1:6]
        self.clipped = 0
        self.prices: list[tuple[int, Array]] = []  # (episode, multiplier) at powers of two
        self.told = ToldMask(setup.horizon, setup.spaces) if setup.opened is None else None
        if self.told is not None and told is not None:
            self.told.remember(told)
            self.setup = setup._replace(opened=told)
        self.session = begin(self.setup, None if saved is None else saved.state)

    def saved(self) -> Saved:
        """The content of a checkpoint."""
        told = None if self.told is None else self.told.opened
        seen = (self.tally, self.visits, self.cut, self.seen)
        return Saved(self.session.state(), *seen, told)

    def learn(self, episodes: int) -> Iterator[int]:
        """Learn until so many episodes are done in all; yields their number after each."""
        for played in self._episodes(self.tally.episodes + 1, episodes):
            self.take(played)
            self.tally.add(played.signals.sum(axis=1))
            done = self.tally.episodes
            if done & (done - 1) == 0:
                self.prices.append((done, self.multiplier()))
            yield done

    def take(self, played: Played) -> None:
        """Learn from one episode, whoever played it."""
        if self.told is not None and self.told.news:
            self.setup = self.setup._replace(opened=self.told.opened)
            self.session = self._begin(self.setup, self.session.state())
            self.told.news = False
        rewards = self.setup.scale.to_unit(played.signals)
        self.session.observe(self._followed(played), played.actions, rewards)
        self.cut += played.cut
        self.clipped += played.clipped
        steps = played.steps(self.setup)
        self.visits.add(*steps[:2])
        self.seen.add(*steps)

    def _followed(self, played: Played) -> Indices:
        """[S + 1], the states as the learner counts them.

        An end at step H may be that of the time: pooled, it would be an end of every step.
        """
        if not self.pooled or played.leads(self.setup) is not None:
            return played.states
        return np.append(played.states[:-1], NOWHERE)

    def policy(self) -> Array:
        """[H, X, A], what the learner would play next, without what is known to be closed."""
        real = (slice(self.setup.lead, None), slice(self.setup.spaces.states))
        return projected(self.session.policy()[real], self.setup.opened)

    def evaluate(self, episodes: int, tally: Tally, rows: Array | None = None) -> Iterator[int]:
        """Play a policy, the learner's or another [H, X, A], on uniforms of no learning episode."""
        done = self.tally.episodes
        for played in self._episodes(done + 1, done + episodes, rows):
            tally.add(played.signals.sum(axis=1))
            yield tally.episodes

    def evaluation(self, tally: Tally, share: float = 1.0) -> Evaluation:
        """Estimates from a tally, with the bounds of this environment."""
        ends = self.setup.horizon * np.array([self.setup.scale.worst, self.setup.scale.best])
        return tally.evaluation(np.sort(ends, axis=0), share)

    def multiplier(self) -> Array:
        """[N], in the user's units: objective per unit of cost or utility."""
        width = self.setup.scale.width
        multiplier = np.asarray(self.session.state().multiplier, np.float64)
        return np.asarray(multiplier * width[0] / width[1:])

    def remarks(self) -> list[str]:
        """Remarks on the episodes."""
        remarks = []
        if self.cut:
            remarks.append(
                f"{self.cut:,} episodes were truncated before step {self.setup.horizon}, which the "
                "learner takes for an end: raise the time limit (max_episode_steps) or lower "
                "horizon=."
            )
        if self.clipped:
            remarks.append(f"{self.clipped:,} signals beyond their range were clipped.")
        return remarks

    def _episodes(self, first: int, last: int, rows: Array | None = None) -> Iterator[Played]:
        other, lead = None if rows is None else by_rows(rows, self.setup.lead), self.setup.lead

        def row(h: int, x: int) -> Array:
            found = self.session.policy()[h, x] if rows is None else rows[h - lead, x]
            return np.asarray(found)

        masked = None if self.told is None else Masked(self.told, row)
        if isinstance(self.env, Copies):
            yield from self._together(self.env, first, last, other, masked)
            return
        for begin in range(first, last + 1, BATCH):
            size = min(BATCH, last + 1 - begin)
            noise = uniforms(self.seed, begin, size, self.setup.steps)[:, :, 0].tolist()
            for e in range(size):
                act = self.session.act if other is None else other
                yield roll_out(self.env, self.setup, act, noise[e], begin + e, masked)

    def _together(
        self,
        copies: Copies,
        first: int,
        last: int,
        other: Act | None,
        masked: Masked | None,
    ) -> Iterator[Played]:
        """Batches of an episode in each copy, all of them by the policy before the first."""
        for begin in range(first, last + 1, copies.count):
            noise = uniforms(self.seed, begin, copies.count, self.setup.steps)[:, :, 0].tolist()
            act = self.session.act if other is None else other
            played = roll_out_together(copies, self.setup, act, noise, begin, masked)
            yield from played[: last + 1 - begin]


def advanced(
    phase: str,
    playing: Iterator[int],
    tally: Tally,
    total: int,
    names: tuple[str, ...],
    on_progress: OnProgress | None,
    look: Callable[[float], bool],
) -> float:
    """Go through the episodes, report now and then, and stop when `look` at the clock says so.

    Gives the seconds that it took.
    """
    began = shown = time.monotonic()
    before = tally.episodes
    for done in playing:
        now = time.monotonic()
        if on_progress and (done == total or now - shown >= CHUNK_SECONDS):
            shown = now
            means = tally.curve().mean[-1]
            words = ", ".join(f"{n} {m:.3f}" for n, m in zip(names, means, strict=True))
            rate = (done - before) / max(now - began, 1e-9)
            on_progress(Standing(phase, done, total, rate, words))
        if look(now):
            break
    return time.monotonic() - began


@contextmanager
def patient() -> Iterator[Callable[[], bool]]:
    """Yield whether Ctrl-C was pressed, to be asked between two episodes, where a learner is whole.

    A second one interrupts at once, as it always does.
    """
    asked: list[bool] = []
    if threading.current_thread() is not threading.main_thread():
        yield lambda: False  # only the main thread may handle signals
        return

    def remember(*_: Any) -> None:
        asked.append(True)
        signal.signal(signal.SIGINT, signal.default_int_handler)

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield lambda: bool(asked)
    finally:
        signal.signal(signal.SIGINT, before)
