"""A live run in progress: an environment, a learner, and what was counted on the way."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from cmdplab.engines.protocol import LiveSession
from cmdplab.experiments.play import CHUNK_SECONDS
from cmdplab.live.checkpoints import Saved
from cmdplab.live.environment import Env
from cmdplab.live.episodes import Played, Setup, roll_out
from cmdplab.live.evaluation import Evaluation, Tally
from cmdplab.live.progress import OnProgress, Standing
from cmdplab.numerics.noise import uniforms
from cmdplab.types import Array

BATCH = 64  # episodes whose uniforms are drawn at once


class Playing:
    """A session that learns from an environment, episode by episode."""

    def __init__(
        self, env: Env, setup: Setup, session: LiveSession, seed: int, saved: Saved | None
    ) -> None:
        self.env, self.setup, self.session, self.seed = env, setup, session, seed
        shape = (setup.steps, setup.states, setup.spaces.actions)
        fresh = (Tally(len(setup.names)), np.zeros(shape, dtype=np.int64), 0)
        self.tally, self.visits, self.cut = fresh if saved is None else saved[1:]

    def saved(self) -> Saved:
        """The content of a checkpoint."""
        return Saved(self.session.state(), self.tally, self.visits, self.cut)

    def learn(self, episodes: int) -> Iterator[int]:
        """Learn until so many episodes are done in all; yields their number after each."""
        steps = np.arange(self.setup.steps)
        for played in self._episodes(self.tally.episodes + 1, episodes):
            rewards = self.setup.scale.to_unit(played.signals)
            self.session.observe(played.states, played.actions, rewards)
            self.visits[steps, played.states[:-1], played.actions] += 1
            self.tally.add(played.signals.sum(axis=1))
            yield self.tally.episodes

    def evaluate(self, episodes: int, tally: Tally) -> Iterator[int]:
        """Play the policy as it is, on uniforms that no learning episode has had."""
        done = self.tally.episodes
        for played in self._episodes(done + 1, done + episodes):
            tally.add(played.signals.sum(axis=1))
            yield tally.episodes

    def evaluation(self, tally: Tally, share: float = 1.0) -> Evaluation:
        """Estimates from a tally, with the bounds of this environment."""
        ends = self.setup.horizon * np.array([self.setup.scale.worst, self.setup.scale.best])
        return tally.evaluation(np.sort(ends, axis=0), share)

    def multiplier(self) -> Array:
        """[N], in the user's units: objective per unit of cost or utility."""
        width = np.abs(self.setup.scale.best - self.setup.scale.worst)
        multiplier = np.asarray(self.session.state().multiplier, np.float64)
        return np.asarray(multiplier * width[0] / width[1:])

    def remarks(self) -> list[str]:
        """Remarks on the episodes."""
        if not self.cut:
            return []
        return [
            f"{self.cut:,} episodes were truncated before step {self.setup.horizon}, which the "
            "learner takes for an end: raise the time limit (max_episode_steps) or lower horizon=."
        ]

    def _episodes(self, first: int, last: int) -> Iterator[Played]:
        for begin in range(first, last + 1, BATCH):
            size = min(BATCH, last + 1 - begin)
            noise = uniforms(self.seed, begin, size, self.setup.steps)[:, :, 0].tolist()
            for e in range(size):
                played = roll_out(self.env, self.setup, self.session.act, noise[e], begin + e)
                self.cut += played.cut
                yield played


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
