"""`cmdplab audit`: mistakes, regret and convergence of many runs, or failures of the proof."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cmdplab.cli.options import Engine, command, find_here, refuse
from cmdplab.cli.output import Answer, errors, print_line, print_note, print_rows, warn
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.audit import Finding
    from cmdplab.audit.events import OnProgress
    from cmdplab.statistics import Exponent

DELTA = 0.1  # where none is given
EVENTS = Path("runs/failure-events")


@command()
def audit_command(
    source: Path | None = None,
    out: Path | None = None,
    epsilon: list[float] | None = None,
    delta: float | None = None,
    partial: bool = False,
    failure_events: bool = False,
    seeds: int | None = None,
    episodes: int | None = None,
    instance_seed: int = 0,
    workers: int | None = None,
    engine: Engine = "cpu",
) -> Answer:
    """Count mistakes for every epsilon at once, with bands, exponents and verdicts.

    An experiment is run first, or the missing runs of it: the command can be interrupted and given
    again. It writes audit.json, audit.csv, audit.png and audit.pdf. With --failure-events it counts
    instead the failures of the proof's confidence sets, and writes failure_events.json.
    """
    if delta is not None and not 0.0 < delta < 1.0:
        raise InputError(f"delta is {delta:g}, not between 0 and 1")
    sure = DELTA if delta is None else delta
    from cmdplab.experiments.folder import check_apart

    how = {"--workers": workers, "--engine": engine if engine != "cpu" else None}
    if failure_events:
        of_records = {"--epsilon": epsilon or None, "--partial": partial, **how}
        refuse(of_records, "does not go with --failure-events")
        return _count_events(source, out, sure, seeds, episodes, instance_seed)
    of_events = {"--seeds": seeds, "--episodes": episodes, "--instance-seed": instance_seed or None}
    refuse(of_events, "needs --failure-events")
    if not epsilon:
        refuse({"--delta": delta}, "needs --epsilon or --failure-events")
    if source is None:
        raise InputError("say which sweep or experiment to audit, or give --failure-events")
    if out is not None:
        check_apart(out)
    if source.suffix == ".toml":
        source = _swept(source, workers, engine, epsilon or [])
    elif source.is_file():
        raise InputError(f"{source} is neither a folder of records nor an experiment (.toml)")
    else:
        refuse(how, "is for an experiment (TOML): a folder is not run again")
    return _audit_records(source, out, epsilon or [], sure, partial)


def _audit_records(
    folder: Path, out: Path | None, epsilon: list[float], delta: float, partial: bool
) -> Answer:
    from cmdplab.audit import audit, gather, sample_complexity, write_audit
    from cmdplab.audit.files import row_of
    from cmdplab.audit.findings import unanswered

    groups, notes = gather(folder, partial)
    _check(epsilon, {group.horizon for group in groups})
    findings = [audit(group) for group in groups]
    asked = {
        f"{value:g}": {
            f"{f.environment}, {f.label}": sample_complexity(f, value, delta) for f in findings
        }
        for value in epsilon
    }
    target = write_audit(findings, notes, out if out is not None else folder / "audit")
    for note in notes:
        warn(note)
    rows = [row_of(f) | {"unanswered": unanswered(f)} for f in findings]

    def show() -> None:
        _print(findings, asked, delta)
        print_line(f"figure, table and every count are in {target}/")

    return Answer("audit", {"notes": notes, "findings": rows, "pac": asked}, show)


def _check(epsilon: list[float], horizons: set[int]) -> None:
    """Refuse an epsilon outside a grid before anything is run or written."""
    from cmdplab.audit.accuracy import place_of
    from cmdplab.measures.mistakes import epsilons

    for horizon in horizons:
        for value in epsilon:
            place_of(epsilons(horizon), value)


def _swept(file: Path, workers: int | None, engine: str, epsilon: list[float]) -> Path:
    from cmdplab.cli.sweep import Given, carry_out
    from cmdplab.experiments.experiment import problems, read_experiment
    from cmdplab.experiments.sweep import prepare

    experiment = read_experiment(file)
    find_here(each.name for each in experiment.algorithms)
    if experiment.precision == "float32" and epsilon:
        from cmdplab.engines.gpu.limits import check_precision

        check_precision("float32", min(epsilon))
    found = problems(experiment, file.parent)
    _check(epsilon, {problem.horizon for problem in found.values()})
    folder = Path("runs") / experiment.name
    carry_out(lambda: prepare(experiment, found, folder, engine), Given(workers, engine))
    return folder


def _print(findings: list[Finding], asked: dict[str, Any], delta: float) -> None:
    from cmdplab.audit.files import row_of
    from cmdplab.audit.findings import extent
    from cmdplab.cli.tables import print_broken

    for environment in dict.fromkeys(f.environment for f in findings):
        mine = [f for f in findings if f.environment == environment]
        rows = [row_of(f) for f in mine]
        columns = "algorithm verdict final_gap final_violation"
        print_rows(f"{environment}: {extent(mine)}", "AuditRow", columns, rows)
        fits = {"mistake": "mistakes", "regret": "regret"}
        powers = [f"{fit}_exponent{part}" for fit in fits for part in ("", "_of_term_i")]
        fitted = []
        for f in mine:
            found = [
                (_exponent(getattr(f, f"{a}_exponent")), _terms(f, b)) for a, b in fits.items()
            ]
            fitted.append(dict(zip(powers, [*found[0], *found[1]], strict=True)))
        rows = [row | fit for row, fit in zip(rows, fitted, strict=True)]
        print_rows("exponents", "AuditRow", " ".join(["algorithm", *powers]), rows)
        print_rows(
            "safety while learning",
            "AuditRow",
            "algorithm promise violating_runs violating_episodes first_violation largest_violation",
            [row for row in rows if row["violating_runs"] is not None],
            violating_runs=lambda row: f"{row['violating_runs']} of {row['runs']}",
        )
        print_broken({f.label: f.safety for f in mine if f.safety is not None})
    print_note(
        "medians (of an instance: over its seeds first); exponents with 95 % intervals, (i) and "
        "(ii) those of the terms of Theorem 4.1; local: slopes differ over two decades, and this "
        "is the last of them; – where the data carry none"
    )
    if any(f.theorem and f.heuristic for f in findings):
        print_note("~ no guarantee applies as it was run (audit.json: why)")
    _print_unanswered(findings)
    for value, by_label in asked.items():
        for label, bound in by_label.items():
            words = bound.why_not
            if bound.mistakes is not None:
                counted = f"counted at {bound.epsilon:g}, over {bound.over}"
                words = f"at most {bound.mistakes:,.0f} mistakes ({counted})"
            print_line(f"{label}, epsilon {value}, delta {delta:g}: {words}", soft_wrap=True)


def _print_unanswered(findings: list[Finding]) -> None:
    """Print each missing result once, with the findings that lack it."""
    from cmdplab.audit.findings import unanswered

    places = {finding.environment for finding in findings}
    whose: dict[tuple[str, str], list[str]] = {}
    for f in findings:
        name = f.label if len(places) == 1 else f"{f.label} on {f.environment}"
        for what, why in unanswered(f).items():
            whose.setdefault((what, why), []).append(name)
    for (what, why), names in whose.items():
        words = "all" if len(names) == len(findings) > 1 else ", ".join(names)
        print_note(f"no {what}: {why} ({words})", soft_wrap=True)


def _terms(finding: Finding, what: str) -> str:
    """Return the powers of terms (i) and (ii); empty if the theorem excludes the algorithm."""
    if finding.theorem is None:
        return ""
    return "{:.3g}, {:.3g}".format(*finding.theorem[what]) + "~" * bool(finding.heuristic)


def _exponent(fit: Exponent) -> str:
    from cmdplab.audit.exponents import TRANSIENT

    words = f"{fit.slope:.2f} [{fit.low:.2f}, {fit.high:.2f}]"
    if fit.why_not:
        words = TRANSIENT if fit.why_not == TRANSIENT else "–"
    return f"local {words}" if fit.local else words


def _count_events(
    source: Path | None,
    out: Path | None,
    delta: float,
    seeds: int | None,
    episodes: int | None,
    instance_seed: int,
) -> Answer:
    from cmdplab.audit.events import EPISODES, NAME, SEEDS, SMALL, failure_events, problem_of

    problem = problem_of(SMALL if source is None else str(source), instance_seed)
    folder = EVENTS if out is None else out
    runs = SEEDS if seeds is None else seeds
    length = EPISODES if episodes is None else episodes
    with _shown() as on_progress:
        sizes = {"seeds": runs, "episodes": length, "delta": delta}
        found = failure_events(problem, folder, **sizes, on_progress=on_progress)  # type: ignore[arg-type]
    fields = {"problem": problem.name, **sizes, "bonus_scale": 1.0, "events": found}

    def show() -> None:
        size = f"{runs:,} runs of {length:,} episodes, delta {delta:g}, bonus scale 1"
        print_rows(
            f"{problem.name}: {size}",
            "Event Frequency",
            "event successes middle low lemma against_lemma union_bound against_union_bound",
            [event._asdict() | event.frequency._asdict() for event in found],
            low=lambda row: f"[{row['low']:.4f}, {row['high']:.4f}]",
        )
        print_note(
            "asked after every episode; exact 95 % intervals, one for each event; lemma: its share "
            "of delta as printed; union: as a union bound gives it; undecided: too few runs"
        )
        print_line(f"the first failure of every run is in {folder / NAME}")

    return Answer("failure-events", fields, show)


@contextmanager
def _shown() -> Iterator[OnProgress]:
    """Yield a function that shows a bar in a terminal, or prints a line after each 10 %."""
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
