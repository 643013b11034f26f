"""JSON of the commands that look at runs, and of those that write a file."""

from __future__ import annotations

from cmdplab.schemas.fields import EPISODES, PRICE, RETURN, Part, field


class AuditRow(Part):
    """One algorithm on one environment."""

    environment: str = field("its name")
    algorithm: str = field("with the settings that tell it apart")
    runs: int = field("how many")
    instances: int = field("how many")
    over: str = field("seeds or instances: what statistics are over")
    episodes: int = field("of each run", EPISODES)
    verdict: str = field("in words")
    envelope_exponent: float | None = field("local: errors from k on ~ k^-this, the median")
    final_gap: float = field("the median", RETURN)
    final_violation: float | None = field("the median", RETURN)
    average_gap: float | None = field("of the average iterate: weak regret / K", RETURN)
    average_violation: float | None = field("of the average iterate", RETURN)
    amplitude: float | None = field("of the gap in the second half: largest less smallest", RETURN)
    period: float | None = field("of the oscillation", EPISODES)
    quiet_epsilon: float | None = field("no run made a larger mistake since K / 4", RETURN)
    mistake_exponent: float | None = field("mistakes ~ (1/epsilon)^this")
    mistake_exponent_is_local: bool | None = field("local slopes differ: this is the last")
    mistake_exponent_of_term_i: float | None = field("Theorem 4.1 (i), optimisation")
    mistake_exponent_of_term_ii: float | None = field("Theorem 4.1 (ii), bias")
    regret_exponent: float | None = field("regret from k to 2k ~ k^this")
    regret_exponent_is_local: bool | None = field("local slopes differ: this is the last")
    regret_exponent_of_term_i: float | None = field("Theorem 4.1 (i), optimisation")
    regret_exponent_of_term_ii: float | None = field("Theorem 4.1 (ii), bias")
    heuristic: str = field("why the theorem is not about these runs; empty if it is")
    violating_runs: int | None = field("in which some episode violated by more than 1e-5 H")
    violating_episodes: float | None = field("in a run, the median", EPISODES)
    first_violation: int | None = field("the earliest of all runs; null: none", "episode")
    largest_violation: float | None = field("of any episode of any run; 0: none", RETURN)
    baseline_share: float | None = field("of probability to a safe policy; null: not recorded")
    promise: str = field("none; kept; kept or not kept, but heuristic; or PROMISE BROKEN")
    unanswered: dict[str, str] = field("what the data cannot say, and why")


class PacBound(Part):
    """(epsilon, delta)-PAC, or the reason why nothing is said."""

    mistakes: float | None = field("at most so many", EPISODES)
    why_not: str = field("empty where there is a number")
    epsilon: float = field("the point of the grid that was counted", RETURN)
    over: str = field("what delta is the probability over")


class Audit(Part):
    """`cmdplab audit`."""

    notes: list[str] = field("warnings")
    findings: list[AuditRow] = field("one for each algorithm on each environment")
    pac: dict[str, dict[str, PacBound]] = field("by --epsilon, then by environment and algorithm")


class Frequency(Part):
    """How often, with an exact interval."""

    successes: int = field("runs in which it happened")
    trials: int = field("runs")
    low: float = field("of the interval")
    middle: float = field("the share")
    high: float = field("of the interval")
    level: float = field("of the interval")


class Event(Part):
    """One failure event."""

    event: str = field("its name")
    frequency: Frequency = field("over runs")
    lemma: float = field("the share of delta that Lemma H.1 prints")
    against_lemma: str = field("below, above or undecided")
    union_bound: float = field("the share that a union bound gives")
    against_union_bound: str = field("below, above or undecided")


class FailureEvents(Part):
    """`cmdplab audit --failure-events`."""

    problem: str = field("its name")
    seeds: int = field("runs")
    episodes: int = field("of each run", EPISODES)
    delta: float = field("the probability to fail")
    bonus_scale: float = field("always 1: the theory")
    events: list[Event] = field("each of the lemma's")


class Timing(Part):
    """One row."""

    engine: str = field("which")
    algorithm: str = field("its name")
    states: int = field("how many")
    actions: int = field("how many")
    horizon: int = field("steps of an episode", "steps")
    constraints: int = field("how many")
    runs: int = field("at once")
    us_per_episode: float = field("wall clock", "microseconds")


class Bench(Part):
    """`cmdplab bench`."""

    timings: list[Timing] = field("the paper's size first")


class Difference(Part):
    """The largest differences to a trace."""

    gap: float = field("of the optimality gap", RETURN)
    violation: float = field("of the violation", RETURN)
    multiplier: float = field("of the multiplier", PRICE)
    policy: float = field("of a probability")


class PlannedDifference(Part):
    """The largest differences to a trace of plans."""

    gap: float = field("of the optimality gap", RETURN)
    violation: float = field("of the violation", RETURN)
    promise: float = field("of the value that a plan promises", RETURN)
    box: float = field("of an end of the box of kernels")
    optimality: float = field(
        "what recorded policies lack of the optimum of their programs", RETURN
    )


class VerifyTrace(Part):
    """`cmdplab verify-trace`."""

    algorithms: dict[str, Difference | PlannedDifference] = field("by name")


class ReportPage(Part):
    """`cmdplab report`."""

    page: str = field("the HTML page")
    tables: list[str] = field("summary.tex and summary.csv")


class SuitePage(Part):
    """`cmdplab export-suite`: the data set that was written."""

    folder: str = field("its path")
    environments: list[str] = field("those it holds")
    files: int = field("how many")
    bytes: int = field("their size", "bytes")
    notes: list[str] = field("what a format cannot say")


class Written(Part):
    """`cmdplab convert`, `export`, `plot` and `portrait`: the file that was written."""

    file: str = field("its path")
    notes: list[str] = field("what it lacks")
