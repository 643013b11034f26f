"""Display of the progress of runs: bars in a terminal or a notebook, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TaskProgressColumn,
    TimeRemainingColumn,
)

from cmdplab.algorithms import as_row
from cmdplab.display import Cell
from cmdplab.display.terminal import Printer, Words
from cmdplab.experiments.work import Event, Work

if TYPE_CHECKING:
    from cmdplab.algorithms.row import Row
    from cmdplab.experiments.play import Job, OnProgress, Run
    from cmdplab.experiments.work import OnEvent

LINE_EVERY = 10.0  # seconds between plain lines


@contextmanager
def shown(
    jobs: Sequence[Job], episodes: int, console: Console | None = None
) -> Iterator[OnProgress]:
    """Display the progress of runs in memory during a `with` block. Yield their `on_progress`.

    jobs, episodes : the arguments of `run_many`.
    """
    console = console if console is not None else Printer(stderr=True)
    lengths = {_place(as_row(job.algorithm), job.seed): episodes for job in jobs}
    lock = threading.Lock()
    with _display({}, lengths, console) as on_event:

        def on_progress(run: Run) -> None:
            s, place = run.summary, _place(run.algorithm, run.seed)
            rate = s.episodes / max(run.seconds, 1e-9)
            far = (s.episodes, rate, s.final_gap, s.final_violation)
            with lock:  # runs are threads
                on_event(Event(place, "running", "", *far))
                if s.episodes >= episodes:
                    on_event(Event(place, "done"))

        yield on_progress


def _place(row: Row, seed: int) -> str:
    return f"{row.name}:{row.preset}, seed {seed}"


def sweep_shown(works: Sequence[Work], console: Console) -> AbstractContextManager[OnEvent]:
    """Display the progress of recorded runs during a `with` block. Yield their `on_event`."""
    names = {work.folder.name: work.words for work in works}
    lengths = {work.folder.name: work.settings.episodes for work in works}
    return _display(names, lengths, console)


@contextmanager
def _display(
    names: Mapping[str, str], lengths: Mapping[str, int | None], console: Console
) -> Iterator[OnEvent]:
    tally = _Tally(names, lengths)
    way = _cell if console.is_jupyter else _bars if console.is_terminal else _lines
    with way(tally, console) as show:

        def on_event(event: Event) -> None:
            tally.update(event)
            if event.status not in ("running", "done", "interrupted"):
                reason = (event.error.strip().splitlines() or [""])[-1]
                words = f"{tally.name(event)} ({event.folder}) {event.status}"
                words += f": {reason}" * bool(reason)
                console.print(words, highlight=False, soft_wrap=True)
            show(event)

        yield on_event


class _Tally:
    """Progress of all runs together. names, lengths : names and numbers of episodes by folder."""

    def __init__(self, names: Mapping[str, str], lengths: Mapping[str, int | None]) -> None:
        self._names, self.lengths = names, lengths
        self.total = None if None in lengths.values() else sum(n or 0 for n in lengths.values())
        self._ended: dict[str, int] = {}
        self._done = 0  # sum of `_ended`, which may have 10^4 entries
        self.under_way: dict[str, Event] = {}

    def update(self, event: Event) -> None:
        if not event.ended:
            self.under_way[event.folder] = event
            return
        last = self.under_way.pop(event.folder, None)
        reached = last.episodes if last is not None else 0
        if event.status == "done":
            reached = self.lengths.get(event.folder) or reached
        self._done += reached - self._ended.get(event.folder, 0)
        self._ended[event.folder] = reached

    @property
    def all_ended(self) -> bool:
        return len(self._ended) >= len(self.lengths)

    @property
    def episodes(self) -> int:
        """Number of finished episodes of all runs, at most the total."""
        done = self._done + sum(each.episodes * each.runs for each in self.under_way.values())
        return done if self.total is None else min(done, self.total)

    def words(self, event: Event) -> str:
        """Describe runs and episodes done, rate, time left, and the progress of a running run."""
        of = "" if self.total is None else f" of {self.total:,}"
        text = f"{len(self._ended)} of {len(self.lengths)} runs, {self.episodes:,}{of} episodes"
        rate = sum(each.rate for each in self.under_way.values())
        if rate > 0.0:
            text += f", {rate:,.0f}/s"
            if self.total is not None:
                text += f", {(self.total - self.episodes) / rate:,.0f} s left"
        return text if event.ended else f"{text}; {self.name(event)}: {_standing(event)}"

    def name(self, event: Event) -> str:
        name = self._names.get(event.folder) or event.folder
        return f"{name} and {event.runs - 1:,} more" if event.runs > 1 else name


def _standing(event: Event) -> str:
    violation = event.violation
    return f"gap {event.gap:+.3f}" + ("" if violation is None else f" viol {violation:+.3f}")


def columns(width: int, field: str, name: str = "{task.description}") -> list[ProgressColumn]:
    """Return the columns of a bar: `name`, bar, percentage, time left and the task's `field`."""
    return [
        Words(name),
        BarColumn(bar_width=width),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        Words(f"{{task.fields[{field}]}}"),
    ]


@contextmanager
def _bars(tally: _Tally, console: Console) -> Iterator[OnEvent]:
    with Progress(*columns(8, "standing", "{task.description:<18}"), console=console) as bars:
        runs = f"{len(tally.lengths)} runs"
        whole = bars.add_task(runs, total=tally.total, standing="")
        tasks: dict[str, TaskID] = {}

        def show(event: Event) -> None:
            bars.update(whole, completed=tally.episodes)
            if event.ended:
                if event.folder in tasks:
                    bars.remove_task(tasks.pop(event.folder))
                return
            if event.folder not in tasks:
                length = tally.lengths.get(event.folder)
                tasks[event.folder] = bars.add_task("", total=length, standing="")
            words = f"{event.rate:,.0f}/s {_standing(event)}"
            task = tasks[event.folder]
            bars.update(task, description=tally.name(event), standing=words)
            bars.update(task, completed=event.episodes)

        yield show


@contextmanager
def _cell(tally: _Tally, console: Console) -> Iterator[OnEvent]:
    cell = Cell()

    def show(event: Event) -> None:
        cell.show(tally.episodes, tally.total, tally.words(event), ended=tally.all_ended)

    yield show


@contextmanager
def _lines(tally: _Tally, console: Console) -> Iterator[OnEvent]:
    last = [time.monotonic()]

    def show(event: Event) -> None:
        if tally.all_ended or time.monotonic() - last[0] >= LINE_EVERY:
            last[0] = time.monotonic()
            console.print(tally.words(event), highlight=False, soft_wrap=True)

    yield show
