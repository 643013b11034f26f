"""Tables of runs, for `reproduce`, `run` and `compare`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmdplab.algorithms.row import (
    ACCURACY,
    CONSTRAINT,
    EPISODES,
    ONE_CONSTRAINT,
    SAFE_POLICY,
    SLATER_GAP,
    STATIONARY,
    SUPPORT,
    Row,
)
from cmdplab.cli.output import console, large, print_line, print_note, print_rows
from cmdplab.display.terminal import number
from cmdplab.experiments.folder import study_in
from cmdplab.experiments.play import Run
from cmdplab.experiments.records.labels import by_label
from cmdplab.measures.measures import NUMBERS
from cmdplab.measures.safety import BROKEN, SafetyOverSeeds
from cmdplab.measures.verdict import NEGATIVE_GAP, common_verdict
from cmdplab.studies.conclusions import median, safety_of

SHORT = {
    EPISODES: "K",
    SLATER_GAP: "gap",
    SAFE_POLICY: "safe",
    ACCURACY: "eps",
    CONSTRAINT: "",
    ONE_CONSTRAINT: "N=1",
    STATIONARY: "",
    SUPPORT: "next",
}


def print_study(runs: Sequence[Run], summary: dict[str, Any], folder: Path) -> None:
    """Print the findings of `reproduce` or `compare`, and where all of it is."""
    seeds, preset = summary["seeds"], summary["preset"]
    over = f"medians over {seeds} seeds" if seeds > 1 else "one seed"
    if study_in(folder) == "reproduce":
        horizon = round(float(runs[0].mistakes["epsilon"][-1]))  # the largest epsilon is H
        print_runs(runs, horizon, f"{summary['instance']}, {preset}: {over}")
    else:
        title = f"{summary['instance']}, {summary['episodes']:,} episodes: {over}"
        print_comparison(runs, title)
        if "versus" in summary:
            print_versus(summary["versus"])
    print_line(f"open {folder}/report.html; figure, curves and summary are there too")


def print_runs(runs: Sequence[Run], horizon: int, title: str) -> None:
    """Print a table that says what converged, what oscillates and by how much."""
    rows = [
        _medians(mine)
        | {"algorithm": name, "verdict": common_verdict([run.curves for run in mine], horizon)}
        for name, mine in by_label(runs).items()
    ]
    columns = "algorithm verdict final_gap final_violation tail_std strong_regret us_per_episode"
    print_rows(title, "Compared", columns, rows)
    print_note(
        "gap and violation of the last episode; std of the gap over the last 10,000; "
        "R+: sum of positive gaps; us per episode, measures included"
    )
    _explain(runs)
    print_safety(runs)
    print_notes(runs)


def print_comparison(runs: Sequence[Run], title: str) -> None:
    """Print gaps, violations, strong and weak regrets, speed and needs side by side."""
    rows = []
    for name, mine in by_label(runs).items():
        row = mine[0].algorithm
        mark = "*" * bool(row.unverified) + "~" * bool(row.heuristic)
        numbers = _medians(mine)
        speed = f"{1e6 / numbers['us_per_episode']:.0e}".replace("e+0", "e")
        about = {"algorithm": name + mark, "1/s": speed, "needs": needs(row)}
        rows.append(numbers | about)
    columns = (
        "algorithm final_gap final_violation strong_regret weak_regret strong_violation_regret "
        "weak_violation_regret 1/s needs"
    )
    print_rows(
        title,
        "Compared",
        columns,
        rows,
        final_gap=lambda row: number(row["final_gap"], 3),
        final_violation=lambda row: number(row["final_violation"], 3),
    )
    print_note(
        "gap and violation of the last episode; R+ and R: strong and weak regret; V+ and V: of the "
        "violation; 1/s: episodes per second of one run; needs: what it must be told (K: number of "
        "episodes, gap: Slater gap, safe: a safe policy, eps: accuracy, next: which "
        "states can follow)"
    )
    _explain(runs)
    print_note(
        "* constants that no source confirms; ~ no guarantee applies as it was run (--json: why)"
    )
    print_safety(runs)
    print_notes(runs)


def print_safety(runs: Sequence[Run]) -> None:
    """Print the episodes that violated, and the promises kept and broken."""
    found = {name: safety_of(mine) for name, mine in by_label(runs).items()}
    known = {name: each for name, each in found.items() if each is not None}
    if not known:
        return
    several = max(each.runs for each in known.values()) > 1
    rows = [each._asdict() | {"algorithm": name} for name, each in known.items()]
    columns = "algorithm promise violating first largest total baseline_share"
    print_rows("safety while learning", "SafetyPage", columns, rows)
    over = ": medians over seeds, but the first and the largest of all" if several else ""
    print_note(
        "episodes that violated by more than 1e-5 H, the first of them, the largest violation, "
        f"the sum of all; safe policy: its share of the probability{over}"
    )
    print_broken(known)


def print_broken(known: Mapping[str, SafetyOverSeeds]) -> None:
    """Print the broken promises in red."""
    for name, each in known.items():
        if each.broken:
            console().print(f"{BROKEN}: {name}: {each.words}", style="bold red", highlight=False)


def print_versus(versus: dict[str, Any]) -> None:
    """Print every algorithm against one, seed by seed: differences, their intervals, Holm's p."""
    pairs = versus["comparisons"]
    print_rows(
        f"against {versus['label']}, seed by seed",
        "PairedPage",
        "first measure outcome difference low smaller holm_p",
        pairs,
        measure=lambda p: p["measure"].replace("strong ", ""),
        low=lambda p: "–" if p["low"] != p["low"] else f"[{large(p['low'])}, {large(p['high'])}]",
        smaller=lambda p: f"{p['smaller']} of {p['seeds']}",
    )
    print_note(
        "differences are the algorithm's less the other's, medians over seeds; smaller is better; "
        f"a difference is claimed where Holm's p over these {len(pairs)} comparisons is <= 0.05"
    )


def _explain(runs: Sequence[Run]) -> None:
    """Explain a gap below zero, if there is one."""
    if any(run.summary.final_gap < 0.0 for run in runs):
        print_note(NEGATIVE_GAP)


def needs(row: Row) -> str:
    """Return the needs of a row, in short."""
    return " ".join(filter(None, (SHORT[each] for each in row.needs))) or "–"


def print_notes(runs: Sequence[Run]) -> None:
    """Print unverified constants, runs that are too long, and episodes on a baseline."""
    for name, mine in by_label(runs).items():
        row = mine[0].algorithm
        if row.unverified:
            print_line(f"{name}: constants [unverified]: {row.unverified}")
        if row.safe and row.heuristic:
            print_line(f"{name}: {row.promise_heuristic or row.heuristic}")
        if row.tuning_warning(mine[0].summary.episodes):
            print_line(row.tuning_warning(mine[0].summary.episodes))
        if SAFE_POLICY in row.needs:
            counts = [run.state.baseline_episodes for run in mine]
            share = f"{int(np.median(counts)):,} of {mine[0].summary.episodes:,} episodes"
            print_line(f"{name}: played its safe baseline in {share} (median over seeds)")


def _medians(runs: Sequence[Run]) -> dict[str, Any]:
    """Return the medians over seeds of every number of the runs."""
    medians: dict[str, Any] = {name: median(runs, name) for name in NUMBERS}
    time = float(np.median([run.us_per_episode for run in runs]))
    return medians | {"us_per_episode": time}
