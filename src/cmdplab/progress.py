"""Progress of many runs: bars in a terminal, plain lines elsewhere."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from cmdplab.running import Job, Run
    from cmdplab.running import Progress as Report

LINE_EVERY = 10.0  # seconds between plain lines


def standing(run: Run) -> str:
    """Where a run stands: gap and violation of its last episode."""
    summary = run.summary
    violation = summary.final_violation
    return f"gap {summary.final_gap:+.3f}" + (
        f"  violation {violation:+.3f}" if violation is not None else ""
    )


class _Tally:
    """Episodes done, over all seeds of an algorithm and over all algorithms."""

    def __init__(self) -> None:
        self.done: dict[tuple[str, int], int] = {}
        self.began = time.monotonic()
        self.lock = threading.Lock()

    def update(self, run: Run) -> tuple[int, int]:
        name = run.algorithm.name
        self.done[name, run.seed] = run.summary.episodes
        of_name = sum(n for (other, _), n in self.done.items() if other == name)
        return of_name, sum(self.done.values())

    def rate(self) -> float:
        return sum(self.done.values()) / max(time.monotonic() - self.began, 1e-9)


@contextmanager
def shown(jobs: Sequence[Job], episodes: int, console: Console) -> Iterator[Report]:
    """Show the progress of these runs while the block lasts; yields the callback for `run_many`."""
    with (_bars if console.is_terminal else _lines)(jobs, episodes, console) as report:
        yield report


@contextmanager
def _bars(jobs: Sequence[Job], episodes: int, console: Console) -> Iterator[Report]:
    tally = _Tally()
    columns = (
        TextColumn("{task.description:<20}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(elapsed_when_finished=True),
        TextColumn("{task.fields[standing]}"),
    )
    with Progress(*columns, console=console) as bars:
        names = list(dict.fromkeys(job.algorithm.name for job in jobs))
        total = {name: episodes * sum(j.algorithm.name == name for j in jobs) for name in names}
        tasks = {
            name: bars.add_task(name, total=total[name], rate="", standing="", start=False)
            for name in names
        }

        def report(run: Run) -> None:
            with tally.lock:
                done, _ = tally.update(run)
            task = tasks[run.algorithm.name]
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
            _, done = tally.update(run)
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
