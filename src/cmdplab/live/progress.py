"""Progress of live learning: a bar in a terminal or a notebook, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console
from rich.progress import Progress

from cmdplab.display import Cell
from cmdplab.display.terminal import Printer
from cmdplab.experiments.progress import LINE_EVERY, columns


class Standing(NamedTuple):
    """Phase, episodes and speed of a live run."""

    phase: str  # "learning" or "evaluating"
    episodes: int
    total: int
    rate: float  # episodes per second, in this call
    words: str  # means of the last block of episodes


OnProgress = Callable[[Standing], None]


@contextmanager
def shown(title: str, console: Console | None = None) -> Iterator[OnProgress]:
    """Show the progress of one `learn` while the block lasts; yields its `on_progress`."""
    console = console if console is not None else Printer(stderr=True)
    way = _cell if console.is_jupyter else _bar if console.is_terminal else _lines
    with way(title, console) as on_progress:
        yield on_progress


@contextmanager
def _bar(title: str, console: Console) -> Iterator[OnProgress]:
    with Progress(*columns(12, "words"), console=console) as bars:
        phases: dict[str, int] = {}

        def on_progress(at: Standing) -> None:
            if at.phase not in phases:
                phases[at.phase] = bars.add_task(f"{title} {at.phase}", total=at.total, words="")
            words = f"{at.rate:,.0f}/s {at.words}"
            bars.update(phases[at.phase], completed=at.episodes, words=words)  # type: ignore[arg-type]

        yield on_progress


@contextmanager
def _cell(title: str, console: Console) -> Iterator[OnProgress]:
    cells: dict[str, Cell] = {}

    def on_progress(at: Standing) -> None:
        words = f"{title} {at.phase}, {at.rate:,.0f}/s {at.words}"
        if at.phase not in cells:
            cells[at.phase] = Cell()
        cells[at.phase].show(at.episodes, at.total, words, ended=at.episodes >= at.total)

    yield on_progress


@contextmanager
def _lines(title: str, console: Console) -> Iterator[OnProgress]:
    last = [time.monotonic()]

    def on_progress(at: Standing) -> None:
        if at.episodes < at.total and time.monotonic() - last[0] < LINE_EVERY:
            return
        last[0] = time.monotonic()
        left = (at.total - at.episodes) / max(at.rate, 1e-9)
        console.print(
            f"{title} {at.phase}: {at.episodes:,} of {at.total:,} episodes, "
            f"{at.rate:,.0f}/s, {left:.0f} s left; {at.words}",
            highlight=False,
            soft_wrap=True,
        )

    yield on_progress
