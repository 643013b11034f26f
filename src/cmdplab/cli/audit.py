"""`cmdplab audit`: mistakes, regret and convergence of many runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cmdplab.cli.options import (
    Engine,
    EngineOption,
    InstanceSeed,
    Json,
    Workers,
    argument,
    count,
    find_here,
    option,
)
from cmdplab.cli.output import print_json, print_line, print_note, print_table, warn
from cmdplab.cli.theory import count_events
from cmdplab.errors import InputError

if TYPE_CHECKING:
    from cmdplab.audit import Complexity, Finding
    from cmdplab.statistics import Exponent

DELTA = 0.1  # where none is given


def audit_command(
    source: Annotated[
        Path | None,
        argument(
            "The folder of a sweep, or an experiment (TOML) to run first. "
            "With --failure-events: an environment, a .npz file, or `small` (the default)."
        ),
    ] = None,
    out: Annotated[
        Path | None, option("Default: audit/ in the folder; runs/failure-events.")
    ] = None,
    epsilon: Annotated[
        list[float] | None, option("Say what holds at this accuracy (repeat for more).")
    ] = None,
    delta: Annotated[
        float | None, option("Of --epsilon and --failure-events: the probability to fail; 0.1.")
    ] = None,
    partial: Annotated[
        bool, option("Go on without the runs that are not done.", "--partial")
    ] = False,
    failure_events: Annotated[
        bool,
        option(
            "Play UOpt-RPGPD at bonus scale 1; count the events of the paper's Lemma H.1.",
            "--failure-events",
        ),
    ] = False,
    seeds: Annotated[int | None, count("Of --failure-events: runs; 500 by default.")] = None,
    episodes: Annotated[
        int | None, count("Of --failure-events: episodes of each run; 600 by default.")
    ] = None,
    instance_seed: InstanceSeed = 0,
    workers: Workers = None,
    engine: EngineOption = Engine.cpu,
    as_json: Json = False,
) -> None:
    """Count mistakes for every epsilon at once, with bands, exponents and verdicts.

    An experiment is run first, or the missing runs of it: the command can be interrupted and given
    again. It writes audit.json, audit.csv, audit.png and audit.pdf. With --failure-events it counts
    instead the failures of the proof's confidence sets, and writes failure_events.json.
    """
    if delta is not None and not 0.0 < delta < 1.0:
        raise InputError(f"delta is {delta:g}, not between 0 and 1")
    sure = DELTA if delta is None else delta
    other = engine if engine is not Engine.cpu else None
    from cmdplab.experiments.folder import check_apart

    of_records: dict[str, Any] = {"--epsilon": epsilon or None, "--partial": partial}
    of_records |= {"--workers": workers, "--engine": other}
    given_instance = instance_seed or None
    of_events = {"--seeds": seeds, "--episodes": episodes, "--instance-seed": given_instance}
    if failure_events:
        _refuse(of_records, "does not go with --failure-events")
        count_events(source, out, sure, seeds, episodes, instance_seed, as_json)
        return
    _refuse(of_events, "needs --failure-events")
    if not epsilon:
        _refuse({"--delta": delta}, "needs --epsilon or --failure-events")
    if source is None:
        raise InputError("say which sweep or experiment to audit, or give --failure-events")
    if out is not None:
        check_apart(out)
    if source.suffix == ".toml":
        source = _swept(source, workers, engine, epsilon or [])
    elif source.is_file():
        raise InputError(f"{source} is neither a folder of records nor an experiment (.toml)")
    else:
        again = {"--engine": other, "--workers": workers}
        _refuse(again, "is for an experiment (TOML): a folder is not run again")
    _audit_records(source, out, epsilon or [], sure, partial, as_json)


def _refuse(options: dict[str, Any], why: str) -> None:
    for name, value in options.items():
        if value is not None and value is not False:
            raise InputError(f"{name} {why}")


def _audit_records(
    folder: Path, out: Path | None, epsilon: list[float], delta: float, partial: bool, as_json: bool
) -> None:
    from cmdplab.audit import audit, gather, sample_complexity, write_audit
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
    if as_json:
        from cmdplab.audit.files import row_of

        rows = [row_of(f) | {"unanswered": unanswered(f)} for f in findings]
        print_json("audit", {"notes": notes, "findings": rows, "pac": asked})
        return
    _print(findings, asked, delta)
    print_line(f"figure, table and every count are in {target}/")


def _check(epsilon: list[float], horizons: set[int]) -> None:
    """Refuse an epsilon outside a grid before anything is run or written."""
    from cmdplab.audit.accuracy import place_of
    from cmdplab.measures.mistakes import epsilons

    for horizon in horizons:
        for value in epsilon:
            place_of(epsilons(horizon), value)


def _swept(file: Path, workers: int | None, engine: Engine, epsilon: list[float]) -> Path:
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
    from cmdplab.audit.findings import extent
    from cmdplab.display.terminal import number

    header = ["algorithm", "verdict", "gap", "viol."]
    powers = ["exponents", "mistakes ~ (1/ε)^", "(i), (ii)", "regret ~ k^", "(i), (ii)"]
    for environment in dict.fromkeys(f.environment for f in findings):
        mine = [f for f in findings if f.environment == environment]
        rows, slopes = [], []
        for f in mine:
            gaps = [number(i.middle if i else None, 3) for i in (f.final_gap, f.final_violation)]
            rows.append([f.label, f.verdict, *gaps])
            fitted = {"mistakes": f.mistake_exponent, "regret": f.regret_exponent}
            pairs = [(_exponent(fit), _terms(f, what)) for what, fit in fitted.items()]
            slopes.append([f.label, *pairs[0], *pairs[1]])
        print_table(f"{environment}: {extent(mine)}", header, rows, left=2)
        print_table("", powers, slopes)
        _print_safety(mine)
    print_note(
        "medians (of an instance: over its seeds first); exponents with 95 % intervals, (i) and "
        "(ii) those of the terms of Theorem 4.1; local: slopes differ over two decades, and this "
        "is the last of them; – where the data carry none"
    )
    if any(f.theorem and f.heuristic for f in findings):
        print_note("~ no guarantee applies as it was run (audit.json: why)")
    _print_unanswered(findings)
    for value, by_label in asked.items():
        for label, found in by_label.items():
            words = f"{label}, epsilon {value}, delta {delta:g}: {_bound(found)}"
            print_line(words, soft_wrap=True)


def _print_safety(findings: list[Finding]) -> None:
    """Print the runs that violated while they learnt; a broken promise in red."""
    from cmdplab.cli.tables import print_broken

    known = {f.label: f.safety for f in findings if f.safety is not None}
    rows = []
    for label, each in known.items():
        first = "–" if each.first is None else f"{each.first:,}"
        runs = f"{each.violating_runs} of {each.runs}"
        rows.append(
            [label, each.promise, runs, f"{each.violating:,.0f}", first, f"{each.largest:.2g}"]
        )
    header = ["safety", "promise", "runs that violated", "episodes", "first", "largest"]
    if rows:
        print_table("", header, rows, left=2)
    print_broken(known)


def _bound(found: Complexity) -> str:
    if found.mistakes is None:
        return found.why_not
    counted = f"counted at {found.epsilon:g}, over {found.over}"
    return f"at most {found.mistakes:,.0f} mistakes ({counted})"


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
        all_of_them = len(names) == len(findings) > 1
        words = "all" if all_of_them else ", ".join(names)
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
