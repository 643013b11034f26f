"""Live run in progress: an environment, a learner, the counts so far, and its display.

A row is an algorithm with its settings, and a setup has the sizes and signals of the environment.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import Progress

from cmdplab.algorithms.counts import NOWHERE
from cmdplab.algorithms.row import Row
from cmdplab.display import Cell
from cmdplab.display.terminal import Printer
from cmdplab.engines.families import LiveSession
from cmdplab.experiments.executors.worker import Interrupt
from cmdplab.experiments.play import CHUNK_SECONDS
from cmdplab.experiments.progress import LINE_EVERY, columns
from cmdplab.live import files
from cmdplab.live.environment import Copies, Env
from cmdplab.live.episodes import Played, roll_out, roll_out_together
from cmdplab.live.evaluation import Evaluation, Tally
from cmdplab.live.files import Saved, Settings
from cmdplab.live.masks import ToldMask, projected
from cmdplab.live.model.baseline import by_rows
from cmdplab.live.model.choice import Trial
from cmdplab.live.model.experience import Experience
from cmdplab.live.model.steps import change
from cmdplab.live.signals import Setup
from cmdplab.numerics.noise import uniforms
from cmdplab.statistics.samples import LEVEL
from cmdplab.types import Array, Indices

BATCH = 64  # episodes whose uniforms are drawn at once
FIRST_TEST = 64  # episodes after which steps are compared, and again at each doubling


class Standing(NamedTuple):
    """Phase, episodes and speed of a live run."""

    phase: str  # "learning" or "evaluating"
    episodes: int
    total: int
    rate: float  # episodes per second, in this call
    words: str  # means of the last block of episodes


OnProgress = Callable[[Standing], None]


class Watch(NamedTuple):
    """Requests to stop, callback of progress, and checkpoints of a run."""

    stop: Interrupt
    on_progress: OnProgress | None
    folder: Path | None  # folder of checkpoints
    every: float  # seconds between two checkpoints
    settings: Settings


class Playing:
    """Live run in progress, which learns from an environment episode by episode."""

    def __init__(
        self,
        env: Env,
        setup: Setup,
        row: Row,
        begin: Callable[[Row, Setup, Any], LiveSession],
        seed: int,
        saved: Saved | None,
        watch: Watch,
        may_switch: bool = False,
    ) -> None:
        """Begin a run, or continue from `saved`.

        begin : makes a session from row, setup and state, again whenever more actions are closed.
        may_switch : True if the learner changes to counts per step as soon as steps differ.
        """
        self.env, self.setup, self.row, self.seed = env, setup, row, seed
        self._may_switch, self.switched = may_switch, 0
        self._begin, self.watch, self._due = begin, watch, time.monotonic() + watch.every
        sizes = (setup.spaces.states, setup.spaces.actions, len(setup.names))
        steps = Experience(*sizes, setup.horizon)
        fresh = Saved(None, Tally(len(setup.names)), 0, Experience(*sizes), steps)
        _, self.tally, self.cut, self.seen, self.steps, self.earlier, told = saved or fresh
        self.clipped = 0
        self.prices: list[tuple[int, Array]] = []  # (episode, multiplier) at powers of two
        self.told = ToldMask(setup.horizon, setup.spaces) if setup.opened is None else None
        if self.told is not None and told is not None:
            self.told.remember(told)
            self.setup = setup._replace(opened=told)
        self.session = begin(row, self.setup, saved.state if saved else None)

    def saved(self) -> Saved:
        """Return learner, counts and estimates as the content of a checkpoint."""
        told = None if self.told is None else self.told.opened
        seen = (self.tally, self.cut, self.seen, self.steps, self.earlier)
        return Saved(self.session.state(), *seen, told)

    def visits(self) -> Indices:
        """Return the number of plays of each action at each step in each state, [H, X, A]."""
        visits = self.steps.visits().astype(np.int64)
        return visits if self.earlier is None else visits + self.earlier

    def learn(self, episodes: int) -> None:
        """Learn until `episodes` episodes are done in total. Save checkpoints by time."""
        going = self._episodes(self.tally.episodes + 1, episodes)
        for played in self._watched("learning", going, self.tally, episodes):
            self.watch.stop.raises = False  # until the learner has taken the whole episode
            self.take(played)
            self.tally.add(played.signals.sum(axis=1))
            done = self.tally.episodes
            if done & (done - 1) == 0:
                self.prices.append((done, self.multiplier()))
                if self._may_switch and done >= FIRST_TEST and change(self.steps, self.setup):
                    self._may_switch, self.switched, self.prices = False, done, []
                    self.row = self.row.with_settings(dynamics="per-step")
                    self.session = self._begin(self.row, self.setup, None)
            self.watch.stop.raises = True
            if self.watch.folder and time.monotonic() >= self._due:
                self.save()

    def save(self) -> None:
        """Write a checkpoint if there is a folder and at least one episode."""
        _, _, folder, every, settings = self.watch
        if folder and self.tally.episodes:
            settings["dynamics"] = self.row.dynamics
            files.save(folder, settings, self.saved())
            self._due = time.monotonic() + every

    def take(self, played: Played) -> None:
        """Let the learner learn from one episode, and count its transitions."""
        if self.told is not None and self.told.news:
            self.setup = self.setup._replace(opened=self.told.opened)
            self.session = self._begin(self.row, self.setup, self.session.state())
            self.told.news = False
        rewards = self.setup.scale.to_unit(played.signals)
        self.session.observe(self._followed(played), played.actions, rewards)
        self.cut += played.cut
        self.clipped += played.clipped
        steps = played.steps(self.setup)
        self.seen.add(*steps)
        self.steps.add(*steps)

    def _followed(self, played: Played) -> Indices:
        """Return the states [S + 1] for the learner.

        If counts are pooled and the episode ends at step H, the end may be the time limit. The last
        state is then left unknown.
        """
        pooled = self.row.pooled and self.setup.steps > 1
        if not pooled or played.leads(self.setup) is not None:
            return played.states
        return np.append(played.states[:-1], NOWHERE)

    def policy(self) -> Array:
        """Return the present policy of the learner, [H, X, A], without closed actions."""
        real = (slice(self.setup.lead, None), slice(self.setup.spaces.states))
        return projected(self.session.policy()[real], self.setup.opened)

    def play(self, episodes: int, rows: Array | None) -> Trial:
        """Play the learner's policy, or `rows` [H, X, A], for `episodes` episodes. Return means.

        The uniforms differ from those of all learning episodes.
        """
        done, tally = self.tally.episodes, Tally(len(self.setup.names))
        places = np.zeros((self.setup.horizon, self.setup.spaces.states))
        going = self._episodes(done + 1, done + episodes, rows)
        phase = "evaluating" if rows is None else "evaluating the plan"
        for played in self._watched(phase, going, tally, episodes):
            states = played.steps(self.setup)[0]
            places[np.arange(len(states)), states] += 1.0
            tally.add(played.signals.sum(axis=1))
        within = partial(self.evaluation, tally, 1.0)
        return Trial(within(LEVEL), within, places)

    def evaluation(self, tally: Tally, share: float = 1.0, level: float = LEVEL) -> Evaluation:
        """Estimate returns from the last `share` of a tally, within this environment's bounds."""
        ends = self.setup.horizon * np.array([self.setup.scale.worst, self.setup.scale.best])
        return tally.evaluation(np.sort(ends, axis=0), share, level)

    def multiplier(self) -> Array:
        """Return the multipliers [N] in the user's units: objective per unit of cost or utility."""
        width = self.setup.scale.width
        multiplier = np.asarray(self.session.state().multiplier, np.float64)
        return np.asarray(multiplier * width[0] / width[1:])

    def remarks(self) -> list[str]:
        """Return remarks on switched counts, truncated episodes and clipped signals."""
        remarks = []
        if self.switched:
            remarks.append(
                f"After {self.switched:,} episodes the learner began anew with counts for each "
                'step; dynamics="stationary" prevents this.'
            )
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

        masked = None if self.told is None else partial(self.told.choose, row, lead)
        copies = self.env if isinstance(self.env, Copies) else None
        size = copies.count if copies else BATCH
        for begin in range(first, last + 1, size):
            noise = uniforms(self.seed, begin, size, self.setup.steps)[:, :, 0].tolist()
            if copies:  # one policy plays the episodes of all copies
                act = self.session.act if other is None else other
                played = roll_out_together(copies, self.setup, act, noise, begin, masked)
                yield from played[: last + 1 - begin]
                continue
            for e in range(min(size, last + 1 - begin)):
                act = self.session.act if other is None else other
                yield roll_out(self.env, self.setup, act, noise[e], begin + e, masked)

    def _watched(
        self, phase: str, going: Iterator[Played], tally: Tally, total: int
    ) -> Iterator[Played]:
        """Yield episodes and report progress. Raise `KeyboardInterrupt` if a stop is requested.

        tally : the caller adds each episode to it. total : the number of episodes, for the display.
        """
        began = shown = time.monotonic()
        before = tally.episodes
        for played in going:
            yield played
            now, done, on_progress = time.monotonic(), tally.episodes, self.watch.on_progress
            if on_progress and (done == total or now - shown >= CHUNK_SECONDS):
                shown = now
                means = zip(self.setup.names, tally.curve().mean[-1], strict=True)
                words = ", ".join(f"{name} {mean:.3f}" for name, mean in means)
                rate = (done - before) / max(now - began, 1e-9)
                on_progress(Standing(phase, done, total, rate, words))
            if self.watch.stop.asked:
                raise KeyboardInterrupt


@contextmanager
def shown(title: str, console: Console | None = None) -> Iterator[OnProgress]:
    """Display the progress of one `learn`, named `title`, in a `with` block. Yield the callback."""
    console = console if console is not None else Printer(stderr=True)
    cells, tasks = defaultdict[str, Cell](Cell), dict[str, int]()
    last = time.monotonic()

    def cell(at: Standing) -> None:
        words, ended = f"{title} {at.phase}, {at.rate:,.0f}/s {at.words}", at.episodes >= at.total
        cells[at.phase].show(at.episodes, at.total, words, ended=ended)

    def line(at: Standing) -> None:
        nonlocal last
        if at.episodes < at.total and time.monotonic() - last < LINE_EVERY:
            return
        last, left = time.monotonic(), (at.total - at.episodes) / max(at.rate, 1e-9)
        console.print(
            f"{title} {at.phase}: {at.episodes:,} of {at.total:,} episodes, "
            f"{at.rate:,.0f}/s, {left:.0f} s left; {at.words}",
            highlight=False,
            soft_wrap=True,
        )

    if console.is_jupyter or not console.is_terminal:
        yield cell if console.is_jupyter else line
        return
    with Progress(*columns(12, "words"), console=console) as bars:

        def bar(at: Standing) -> None:
            if at.phase not in tasks:
                tasks[at.phase] = bars.add_task(f"{title} {at.phase}", total=at.total, words="")
            words = f"{at.rate:,.0f}/s {at.words}"
            bars.update(tasks[at.phase], completed=at.episodes, words=words)  # type: ignore[arg-type]

        yield bar
