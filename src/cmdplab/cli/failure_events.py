"""The part of `cmdplab audit` that counts the failure events of the paper's proof."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cmdplab.cli.options import console, errors, print_json, print_line, print_note

if TYPE_CHECKING:
    from cmdplab.audit.events import EventTally, OnProgress

OUT = Path("runs/failure-events")


def count_events(
    source: Path | None,
    out: Path | None,
    delta: float,
    seeds: int | None,
    episodes: int | None,
    instance_seed: int,
    as_json: bool,
) -> None:
    """Play, count, print a table; None is a default."""
    from cmdplab.audit.events import EPISODES, NAME, SEEDS, SMALL, failure_events, problem_of

    problem = problem_of(SMALL if source is None else str(source), instance_seed)
    folder = OUT if out is None else out
    runs = SEEDS if seeds is None else seeds
    length = EPISODES if episodes is None else episodes
    with _shown() as on_progress:
        sizes = {"seeds": runs, "episodes": length, "delta": delta}
        found = failure_events(problem, folder, **sizes, on_progress=on_progress)  # type: ignore[arg-type]
    if as_json:
        fields = {"problem": problem.name, **sizes, "bonus_scale": 1.0, "events": found}
        print_json("failure-events", fields)
        return
    title = f"{problem.name}: {runs:,} runs of {length:,} episodes, delta {delta:g}, bonus scale 1"
    _print(title, found)
    print_note(
        "asked after every episode; exact 95 % intervals, one for each event; lemma: its share of "
        "delta as printed; union: as a union bound gives it; undecided: too few runs to tell"
    )
    print_line(f"the first failure of every run is in {folder / NAME}")


@contextmanager
def _shown() -> Iterator[OnProgress]:
    """A bar in a terminal, a line for every tenth elsewhere."""
    if not errors().is_terminal:
        yield _line
        return
    from rich.progress import Progress

    with Progress(console=errors()) as bars:
        bar = bars.add_task("runs", total=None)
        yield lambda done, of: bars.update(bar, completed=done, total=of)


def _line(done: int, of: int) -> None:
    if done * 10 // of > max(done - 1, 0) * 10 // of:
        errors().print(f"{done:,} of {of:,} runs", highlight=False)


def _print(title: str, found: list[EventTally]) -> None:
    from cmdplab.display.terminal import grid, number

    rows = []
    for event, f, lemma, against_lemma, union, against_union in found:
        seen = [f"{f.successes:,}", number(f.middle), f"[{f.low:.4f}, {f.high:.4f}]"]
        shares = [number(lemma), against_lemma, number(union), against_union]
        rows.append([event, *seen, *shares])
    header = ["event", "runs", "frequency", "95 %", "lemma", "it is", "union", "it is"]
    grid(console(), title, header, rows)
