"""`cmdplab audit`: what many runs show about mistakes, regret and convergence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cmdplab.cli.options import Json, Workers, console, errors, print_json

if TYPE_CHECKING:
    from cmdplab.audit import Finding
    from cmdplab.statistics import Exponent


def audit_command(
    source: Annotated[
        Path, typer.Argument(help="The folder of a sweep, or an experiment (TOML) to run first.")
    ],
    out: Annotated[Path | None, typer.Option(help="Default: audit/ in the folder.")] = None,
    epsilon: Annotated[
        list[float] | None, typer.Option(help="Say what holds at this accuracy (repeat for more).")
    ] = None,
    delta: Annotated[float, typer.Option(help="With --epsilon: the probability to fail.")] = 0.1,
    partial: Annotated[
        bool, typer.Option("--partial", help="Go on without the runs that are not done.")
    ] = False,
    workers: Workers = None,
    as_json: Json = False,
) -> None:
    """Is it Uniform-PAC? Mistakes for every epsilon at once, with bands, exponents and verdicts.

    An experiment is run first, or what is missing of it: the command can be interrupted and given
    again. Writes audit.json, audit.csv, audit.png and audit.pdf.
    """
    from cmdplab.audit import audit, gather, write_audit
    from cmdplab.audit.findings import sample_complexity

    folder = _swept(source, workers) if source.suffix == ".toml" else source
    groups, notes = gather(folder, partial)
    findings = [audit(group) for group in groups]
    asked = {
        f"{value:g}": {
            f"{f.environment}, {f.label}": sample_complexity(f, value, delta) for f in findings
        }
        for value in epsilon or []
    }
    target = write_audit(findings, notes, out if out is not None else folder / "audit")
    for note in notes:
        errors().print(f"warning: {note}", highlight=False, soft_wrap=True)
    if as_json:
        from cmdplab.audit.writing import row_of

        print_json({"notes": notes, "findings": [row_of(f) for f in findings], "pac": asked})
        return
    _print(findings, asked, delta)
    console().print(f"figure, table and every count are in {target}/", highlight=False)


def _swept(file: Path, workers: int | None) -> Path:
    from cmdplab.experiment import problems, read_experiment, resolve
    from cmdplab.progress import sweep_shown
    from cmdplab.sweeping import sweep

    experiment = read_experiment(file)
    runs = resolve(experiment, problems(experiment, file.parent))
    folder = Path("runs") / experiment.name
    lengths = {run.episodes for run in runs}
    with sweep_shown(len(runs), max(n or 0 for n in lengths) or None, errors()) as tell:
        sweep(experiment, folder, base=file.parent, workers=workers, tell=tell)
    return folder


def _print(findings: list[Finding], asked: dict[str, Any], delta: float) -> None:
    from cmdplab.presenting import grid, number

    header = ["algorithm", "verdict", "gap", "viol.", "mistakes ~ (1/ε)^", "regret ~ k^"]
    for environment in dict.fromkeys(f.environment for f in findings):
        mine = [f for f in findings if f.environment == environment]
        rows = []
        for f in mine:
            gaps = [number(i.middle if i else None, 3) for i in (f.final_gap, f.final_violation)]
            theorem = f.theorem or {}
            slopes = [
                _exponent(f.mistake_exponent, theorem.get("mistakes")),
                _exponent(f.regret_exponent, theorem.get("regret")),
            ]
            rows.append([f.label, f.verdict, *gaps, *slopes])
        seeds = f"{mine[0].runs} runs, {mine[0].instances} instances, {mine[0].episodes:,} episodes"
        grid(console(), f"{environment}: {seeds}", header, rows, left=2)
    console().print(
        "medians over runs; exponents with 95 % intervals over runs, the theorem's in brackets; "
        "– where the data carry none (audit.json says why)",
        style="dim",
        highlight=False,
    )
    for value, by_label in asked.items():
        for label, (count, why) in by_label.items():
            words = why if count is None else f"at most {count:,.0f} mistakes"
            console().print(f"{label}, epsilon {value}, delta {delta:g}: {words}", highlight=False)


def _exponent(fit: Exponent, theorem: float | None) -> str:
    words = "–" if fit.why_not else f"{fit.slope:.2f} [{fit.low:.2f}, {fit.high:.2f}]"
    return words if theorem is None else f"{words} ({theorem:.3g})"
