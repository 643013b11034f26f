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
)
from cmdplab.cli.output import console, large, print_line, print_note, print_rows
from cmdplab.display.terminal import number
from cmdplab.experiments.folder import study_in
from cmdplab.experiments.play import Run
from cmdplab.experiments.records.labels import by_label
from cmdplab.measures.safety import BROKEN, SafetyOverSeeds
from cmdplab.measures.verdict import NEGATIVE_GAP, common_verdict
from cmdplab.studies.conclusions import medians, safety_of

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
JUDGED = "algorithm verdict final_gap final_violation tail_std strong_regret us_per_episode"
COMPARED = (
    "algorithm final_gap final_violation strong_regret weak_regret strong_violation_regret "
    "weak_violation_regret us_per_episode needs"
)
OF_JUDGED = (
    "gap and violation of the last episode; std of the gap over the last 10,000; "
    "R+: sum of positive gaps; us per episode, measures included"
)
OF_COMPARED = (
    "gap and violation of the last episode; R+ and R: strong and weak regret; V+ and V: of the "
    "violation; us per episode, measures included; needs: what it must be told (K: number of "
    "episodes, gap: Slater gap, safe: a safe policy, eps: accuracy, next: which states can follow)"
)


def print_study(runs: Sequence[Run], summary: dict[str, Any], folder: Path) -> None:
    """Print the findings of `reproduce` or `compare`, and where all of it is."""
    compared, seeds = study_in(folder) == "compare", summary["seeds"]
    about = f"{summary['episodes']:,} episodes" if compared else summary["preset"]
    over = f"medians over {seeds} seeds" if seeds > 1 else "one seed"
    print_runs(runs, f"{summary['instance']}, {about}: {over}", compared)
    if "versus" in summary:
        print_versus(summary["versus"])
    print_line(f"open {folder}/report.html; figure, curves and summary are there too")


def print_runs(runs: Sequence[Run], title: str, compared: bool = False) -> None:
    """Print the declared numbers of each algorithm with its verdict, or with its needs."""
    rows = []
    for name, mine in by_label(runs).items():
        row = mine[0].algorithm
        found = medians(mine) | {"algorithm": name}
        if compared:
            for field in ("final_gap", "final_violation"):
                found[field] = number(found[field], 3)
            found["algorithm"] += "*" * bool(row.unverified) + "~" * bool(row.heuristic)
            found["needs"] = " ".join(filter(None, (SHORT[each] for each in row.needs))) or "–"
        else:
            horizon = round(float(mine[0].mistakes["epsilon"][-1]))  # the largest epsilon is H
            found["verdict"] = common_verdict([run.curves for run in mine], horizon)
        rows.append(found)
    print_rows(title, "Compared", COMPARED if compared else JUDGED, rows)
    print_note(OF_COMPARED if compared else OF_JUDGED)
    if any(run.summary.final_gap < 0.0 for run in runs):
        print_note(NEGATIVE_GAP)
    if compared:
        print_note(
            "* constants that no source confirms; ~ no guarantee applies as it was run "
            "(--json: why)"
        )
    _print_safety(runs)
    _print_remarks(runs)


def _print_safety(runs: Sequence[Run]) -> None:
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


def _print_remarks(runs: Sequence[Run]) -> None:
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
