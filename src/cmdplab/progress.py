"""Progress of many runs: bars in a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from cmdplab.pool import Ended, Event
from cmdplab.surviving import Standing

if TYPE_CHECKING:
    from cmdplab.algorithms.row import Row
    from cmdplab.running import Job, Run
    from cmdplab.running import Progress as Report
    from cmdplab.sweeping import Tell

LINE_EVERY = 10.0  # seconds between plain lines


def standing(run: Run) -> str:
    """Where a run stands: gap and violation of its last episode."""
    summary = run.summary
    violation = summary.final_violation
    more = "" if violation is None else f" viol {violation:+.3f}"
    return f"gap {summary.final_gap:+.3f}{more}"


def key(row: Row) -> tuple[str, str]:
    """What tells rows apart."""
    return row.name, row.preset


class _Tally:
    """Episodes done, over all seeds of an algorithm and over all algorithms."""

    def __init__(self) -> None:
        self._done: dict[tuple[tuple[str, str], int], int] = {}
        self._of_row: dict[tuple[str, str], int] = {}
        self.total = 0
        self.began = time.monotonic()
        self.lock = threading.Lock()

    def update(self, run: Run) -> int:
        """Of the run's algorithm, after what the run says. Not by sums: a GPU has 10^4 runs."""
        row, now = key(run.algorithm), run.summary.episodes
        if not self._done:  # what came before was compiling: it says nothing about the rest
            self.began = time.monotonic()
        more = now - self._done.get((row, run.seed), 0)
        self._done[row, run.seed] = now
        self._of_row[row] = self._of_row.get(row, 0) + more
        self.total += more
        return self._of_row[row]

    def rate(self) -> float:
        return self.total / max(time.monotonic() - self.began, 1e-9)


@contextmanager
def shown(jobs: Sequence[Job], episodes: int, console: Console) -> Iterator[Report]:
    """Show the progress of these runs while the block lasts; yields the callback for `run_many`."""
    with (_bars if console.is_terminal else _lines)(jobs, episodes, console) as report:
        yield report


@contextmanager
def _bars(jobs: Sequence[Job], episodes: int, console: Console) -> Iterator[Report]:
    tally = _Tally()
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(bar_width=8),
        TaskProgressColumn(),
        TextColumn("{task.fields[rate]:>9}"),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        TextColumn("{task.fields[standing]}"),
    )
    with Progress(*columns, console=console) as bars:
        rows = list(dict.fromkeys(key(job.algorithm) for job in jobs))
        total = {row: episodes * sum(key(j.algorithm) == row for j in jobs) for row in rows}
        tasks = {
            row: bars.add_task(row[0], total=total[row], rate="", standing="", start=False)
            for row in rows
        }

        def report(run: Run) -> None:
            with tally.lock:
                done = tally.update(run)
            task = tasks[key(run.algorithm)]
            bars.start_task(task)
            rate = f"{1e6 / run.us_per_episode:,.0f}/s"
            bars.update(task, completed=done, rate=rate, standing=standing(run))

        yield report


@contextmanager
def _lines(jobs: Sequence[Job], episodes: int, console: Console) -> Iterator[Report]:
    tally, last = _Tally(), [time.monotonic()]
    total = episodes * len(jobs)

    def report(run: Run) -> None:
        with tally.lock:
            first = not tally.total
            tally.update(run)
            done = tally.total
            if first:
                last[0] = time.monotonic()
            if done < total and time.monotonic() - last[0] < LINE_EVERY:
                return
            last[0] = time.monotonic()
            left = (total - done) / tally.rate()
            console.print(
                f"{done:,} of {total:,} episodes, {tally.rate():,.0f}/s, {left:.0f} s left; "
                f"{run.algorithm.name} (seed {run.seed}): {standing(run)}",
                highlight=False,
                soft_wrap=True,
            )

    yield report


@contextmanager
def sweep_shown(runs: int, episodes: int | None, console: Console) -> Iterator[Tell]:
    """Show a sweep: the whole of it, and each run that is under way."""
    with (_sweep_bars if console.is_terminal else _sweep_lines)(runs, episodes, console) as tell:
        yield tell


@contextmanager
def _sweep_bars(runs: int, episodes: int | None, console: Console) -> Iterator[Tell]:
    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(bar_width=8),
        TaskProgressColumn(),
        TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        TextColumn("{task.fields[standing]}"),
    )
    with Progress(*columns, console=console) as bars:
        whole = bars.add_task("runs", total=runs, standing="")
        under_way: dict[str, TaskID] = {}

        def tell(event: Event) -> None:
            if isinstance(event, Standing):
                if event.folder not in under_way:
                    under_way[event.folder] = bars.add_task(
                        _name(event), total=episodes, standing=""
                    )
                words = f"{event.rate:,.0f}/s gap {event.gap:+.3f}"
                if event.violation is not None:
                    words += f" viol {event.violation:+.3f}"
                bars.update(under_way[event.folder], completed=event.episodes, standing=words)
                return
            if event.folder in under_way:
                bars.remove_task(under_way.pop(event.folder))
            bars.advance(whole)
            if event.status not in ("done", "interrupted"):
                bars.console.print(_how(event), highlight=False, soft_wrap=True)

        yield tell


@contextmanager
def _sweep_lines(runs: int, episodes: int | None, console: Console) -> Iterator[Tell]:
    ended, last = [0], [time.monotonic()]

    def tell(event: Event) -> None:
        if isinstance(event, Ended):
            ended[0] += 1
            words = f"{ended[0]} of {runs} runs: {_how(event)}"
        elif time.monotonic() - last[0] < LINE_EVERY:
            return
        else:
            far = f"{event.episodes:,}" + (f" of {episodes:,}" if episodes else "")
            words = f"{_name(event)}: {far} episodes, {event.rate:,.0f}/s, gap {event.gap:+.3f}"
            if event.violation is not None:
                words += f", violation {event.violation:+.3f}"
            if episodes:
                left = (episodes - event.episodes) * event.runs / event.rate
                words += f", {left:,.0f} s left of this run"
        last[0] = time.monotonic()
        console.print(words, highlight=False, soft_wrap=True)

    yield tell


def _name(event: Standing) -> str:
    """A run, or the first of a batch and how many go on with it."""
    return event.folder if event.runs == 1 else f"{event.folder} and {event.runs - 1:,} more"


def _how(event: Ended) -> str:
    reason = event.error.strip().splitlines()[-1] if event.error.strip() else ""
    return f"{event.folder} {event.status}" + (f": {reason}" if reason else "")
