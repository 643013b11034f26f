"""JSON of the commands that run: run, reproduce, compare, sweep, resume and status."""

from __future__ import annotations

from typing import Any

from cmdplab.schemas.fields import EPISODES, PRICE, RETURN, Part, field
from cmdplab.settings import Declared, with_fields


class Numbers(Part):
    """The end of a run in a few numbers."""

    final_gap: float | None = field("V* less the value of the last policy; see above", RETURN)
    final_violation: float | None = field("the worst constraint's; below 0: none", RETURN)
    tail_std: float | None = field("standard deviation of the last 10,000 gaps", RETURN)
    tail_range: float | None = field("their largest less their smallest", RETURN)
    strong_regret: float | None = field("sum of positive gaps", RETURN)
    weak_regret: float | None = field("sum of gaps", RETURN)
    strong_violation_regret: float | None = field("sum of positive violations", RETURN)
    weak_violation_regret: float | None = field("sum of violations", RETURN)


class SafetyPage(Part):
    """Safety while learning: an episode violates by more than 1e-5 H, or it does not."""

    runs: int = field("over how many")
    violating_runs: int = field("in which some episode violated")
    violating: float = field("that violated, the median over runs", EPISODES)
    most_violating: int = field("that violated, in the worst run", EPISODES)
    first: int | None = field("the earliest of all runs; null: none", "episode")
    largest: float = field("violation of any episode of any run; 0: none", RETURN)
    total: float = field("sum of positive violations, the median over runs", RETURN)
    baseline_share: float | None = field("of probability to the safe policy; null: not recorded")
    left_baseline: float | None = field("the last in which it might have played", "episode")
    promise: str = field("none; kept; kept or not kept, but heuristic; or PROMISE BROKEN")
    broken: bool = field("whether a promise that is proved was broken")


class RunPage(Numbers):
    """`cmdplab run`: the same with and without --out."""

    problem: str = field("its name")
    algorithm: str = field("its name")
    preset: str = field("`released` or `printed`; `custom` for a learner from outside")
    seed: int = field("of the roll-outs")
    settings: dict[str, float | int | str] = field("of the algorithm, its own where none was given")
    folder: str | None = field("the record, with --out")
    status: str = field("done, interrupted, running, failed, damaged or missing")
    episodes: int = field("played", EPISODES)
    of: int | None = field("asked for; null: unlimited", EPISODES)
    multiplier: list[float] | None = field("the learner's, at the end", PRICE)
    us_per_episode: float | None = field("of computing, measures included", "microseconds")
    engine: str = field("cpu, gpu or host")
    precision: str = field("float64 or float32")
    needs: list[str] = field("what the algorithm was told")
    heuristic: str = field("why no guarantee applies as it was run; empty if one does")
    unverified: str = field("constants that no source confirms; empty if none")
    baseline_episodes: int | None = field("played on a safe baseline, if it has one", EPISODES)
    safety: SafetyPage | None = field("while learning; null: no constraint, or not done")
    error: str = field("of a run that failed; empty else")
    notes: list[str] = field("what happened on the way")


class PerSeed(Part):
    """One algorithm: lists have an entry for each seed."""

    final_gap: list[float] = field("V* less the value of the last policy", RETURN)
    final_violation: list[float | None] = field("the worst constraint's", RETURN)
    tail_std: list[float] = field("standard deviation of the last 10,000 gaps", RETURN)
    tail_range: list[float] = field("their largest less their smallest", RETURN)
    strong_regret: list[float] = field("sum of positive gaps", RETURN)
    weak_regret: list[float] = field("sum of gaps", RETURN)
    strong_violation_regret: list[float | None] = field("sum of positive violations", RETURN)
    weak_violation_regret: list[float | None] = field("sum of violations", RETURN)
    us_per_episode: float = field("the median over seeds", "microseconds")


class Compared(PerSeed):
    """One algorithm: lists have an entry for each seed."""

    preset: str = field("`released` or `printed`; `custom` for a learner from outside")
    needs: list[str] = field("what it was told")
    settings: dict[str, float | int | str] = field("its own, or as given")
    heuristic: str = field("why no guarantee applies as it was run; empty if one does")
    unverified: str = field("constants that no source confirms; empty if none")
    tuned: str = field("what to say of a run longer than it was tuned for; empty if nothing")
    baseline_returns: list[float] = field(
        "objective and utilities of its safe baseline, if it has one", default=[]
    )
    baseline_episodes: list[int] = field("episodes played on it, for each seed", default=[])
    safety: SafetyPage | None = field("while learning; null: no constraint", default=None)


class PairedPage(Part):
    """Two algorithms on common seeds: differences are the first's less the second's."""

    first: str = field("the label of an algorithm")
    second: str = field("that of the one it is held against")
    measure: str = field("what is compared: smaller is better")
    difference: float = field("the median over seeds", RETURN)
    low: float | None = field("the lower end of its interval; null: too few seeds", RETURN)
    high: float | None = field("the upper end", RETURN)
    seeds: int = field("that both have")
    smaller: int = field("seeds on which the first is smaller")
    larger: int = field("seeds on which it is larger")
    level: float = field("of the interval")
    p: float = field("of the exact sign test")
    holm_p: float = field("after Holm's correction over all comparisons")
    outcome: str = field("smaller, larger, same, not told apart, or undecided: too few seeds")
    words: str = field("all of it in one sentence")


class Versus(Part):
    """Every algorithm against one."""

    label: str = field("the one")
    comparisons: list[PairedPage] = field("each other algorithm in each measure")


class StudySummary(Part):
    """What a study shows: summary.json is the same, with a digest in place of `schema`."""

    preset: str | None = field("asked for all; null: each its own")
    instance: str = field("the name of the problem")
    episodes: int = field("of each run", EPISODES)
    seeds: int = field("runs of each algorithm")
    bonus_scale: float | None = field("asked for all; null: each its own")
    margin_scale: float | None = field("asked for all; null: each its own")
    optimum: float = field("V*", RETURN)
    threshold: list[float] = field("of each constraint", RETURN)
    slater_gap: float | None = field("the largest slack of all constraints", RETURN)
    algorithms: dict[str, Compared] = field("by label: the name, with what tells it from others")
    engine: str = field("cpu, gpu, or both")
    precision: str = field("float64 or float32")
    versions: dict[str, str] = field("of the packages")
    machine: dict[str, str] = field("that ran it")


class Reproduce(StudySummary):
    """`cmdplab reproduce`: summary.json is the same, with a digest in place of `schema`."""


class Compare(StudySummary):
    """`cmdplab compare`: summary.json is the same, with a digest in place of `schema`."""

    versus: Versus | None = field("with --versus; left out without", default=None)


class RunStanding(Part):
    """Where one run of a folder stands."""

    folder: str = field("its name")
    problem: str = field("its name")
    algorithm: str = field("its name")
    preset: str = field("`released` or `printed`; `custom` for a learner from outside")
    seed: int = field("of the roll-outs")
    status: str = field("done, interrupted, running, failed, damaged or missing")
    episodes: int = field("done", EPISODES)
    of: int | None = field("asked for; null: unlimited", EPISODES)
    rate: float | None = field("of computing", "episodes per second")
    gap: float | None = field("of the last episode", RETURN)
    violation: float | None = field("of the last episode", RETURN)
    error: str = field("of a run that failed; empty else")
    notes: list[str] = field("what happened on the way")
    precision: str = field("float64 or float32")
    label: str = field("the algorithm, with what tells it from others of the experiment")
    settings: dict[str, float | int | str] = field("of the algorithm")


class Standings(Part):
    """`cmdplab sweep`, `resume` and `status`: where every run stands."""

    runs: list[RunStanding] = field("all of the folder")


def _setting(declared: Declared) -> tuple[Any, Any]:
    """A setting of a run; null or left out where the algorithm has none."""
    left_out = {} if declared.written_empty else {"default": None}
    return declared.kind | None, field(declared.meaning, declared.unit, **left_out)


@with_fields(_setting)
class _PlannedAlgorithm(Part):
    problem: str = field("its name")
    fingerprint: str = field("a hash of its arrays")
    algorithm: str = field("its name")
    preset: str = field("`released` or `printed`; `custom` for a learner from outside")


class PlannedRun(_PlannedAlgorithm):
    """One run, resolved; a setting that the algorithm lacks is null or left out."""

    rewards: str | None = field("bernoulli, or left out: known", default=None)
    precision: str | None = field("float32, or left out: float64", default=None)
    episodes: int | None = field("null: unlimited", EPISODES)
    seed: int = field("of the roll-outs")
    folder: str = field("its name")
    label: str = field("the algorithm, with what tells it from others of the experiment")


class Plan(Part):
    """`cmdplab sweep --dry-run`: what would be run."""

    runs: list[PlannedRun] = field("all of the experiment")


class _OfBoard(Part):
    folder: str = field("where the page is")
    page: str | None = field("its file; null: none was written")
    rows: int = field("whole ones: an algorithm at a scale on a problem")
    missing: int = field("runs that are not done")
    troubles: list[str] = field("rows that are not shown, each with the reason")


class BoardStanding(_OfBoard):
    """`cmdplab board`: what is done, and the page."""


class BoardPage(_OfBoard):
    """`cmdplab board-page`: the page, with board.csv, board.parquet and board.md beside it."""
