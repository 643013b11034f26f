"""The fixed environments as a data set: files that need no cmdplab to be read.

DIR/NAME/problem.npz, problem.drn and transitions.csv for each environment; suite.json and suite.csv
with certified numbers, units and origins; README.md; checksums.sha256, which is written last.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from cmdplab import __version__
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments import ENVIRONMENTS, Environment, named
from cmdplab.errors import InputError
from cmdplab.files import file_digest
from cmdplab.files.write import to_json, writable_folder, write_text, written_whole
from cmdplab.formats.assemble import stationary_tables
from cmdplab.formats.drn import write_drn
from cmdplab.solvers import solve_feasible

DIGITS = 10  # of certified numbers: what is beyond depends on the machine
CHECKSUMS = "checksums.sha256"
LICENCE = (
    "MIT, as cmdplab. The files hold numbers computed from the parameters that the source states; "
    "no code and no file of the source is included. Cite the source."
)


class Suite(NamedTuple):
    """A data set that was written."""

    folder: Path
    environments: list[str]
    files: int
    bytes: int
    notes: list[str]  # what a format cannot say


def export_suite(
    folder: str | Path,
    environments: Sequence[str] = (),
    on_environment: Callable[[str], None] = lambda name: None,
) -> Suite:
    """Write the fixed environments, or some of them, into a folder that is empty or not there.

    `on_environment` is told each name before its files are written.
    """
    names = [_fixed(each) for each in environments] or [
        name for name, each in ENVIRONMENTS.items() if not each.random
    ]
    target = Path(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise InputError(f"{target} is not empty: name a folder that is, or that does not exist")
    writable_folder(target)
    records, notes = [], []
    for name in names:
        on_environment(name)
        record, missing = _exported(name, ENVIRONMENTS[name], target / name)
        records.append(record)
        notes += missing
    about = {"suite": "cmdplab", "version": __version__, "licence": LICENCE}
    write_text(target / "suite.json", to_json(about | {"environments": records}) + "\n")
    _write_csv(target / "suite.csv", [_line(record) for record in records])
    write_text(target / "README.md", _readme(records, notes))
    files = sorted(path for path in target.rglob("*") if path.is_file())
    lines = [f"{file_digest(path)}  {path.relative_to(target).as_posix()}\n" for path in files]
    write_text(target / CHECKSUMS, "".join(lines))
    size = sum(path.stat().st_size for path in [*files, target / CHECKSUMS])
    return Suite(target, names, len(files) + 1, size, notes)


def _fixed(name: str) -> str:
    """The plain name of an environment that is one instance."""
    found = named(name)
    for plain, each in ENVIRONMENTS.items():
        if each is found and not each.random:
            return plain
    raise InputError(f"{name!r} is no fixed environment: see `cmdplab list environments`")


def _exported(name: str, entry: Environment, folder: Path) -> tuple[dict[str, Any], list[str]]:
    """Write the files of one environment; its record, and what a format cannot say."""
    writable_folder(folder)
    problem = entry.make(0)
    problem.save(folder / "problem.npz")
    notes = []
    try:
        write_drn(problem, folder / "problem.drn")
    except InputError as error:
        notes.append(f"{name} has no problem.drn: {error}")
    _write_csv(folder / "transitions.csv", _transitions(problem))
    return _record(name, entry, problem, [path.name for path in sorted(folder.iterdir())]), notes


def _transitions(problem: CMDP) -> Iterator[dict[str, Any]]:
    """One row for each transition of an open pair; a column `step` where steps differ."""
    labels = problem.labels
    signals = ["objective", *(f"utility_{n + 1}" for n in range(problem.constraints))]
    try:
        stationary_tables(problem, "a table without steps")
        steps = 1
    except InputError:
        steps = problem.horizon
    for h in range(steps):
        for x in range(problem.states):
            for a in range(problem.actions):
                if not problem.opened[h, x, a]:
                    continue
                pays = {
                    name: float(each)
                    for name, each in zip(signals, problem.reward[:, h, x, a], strict=True)
                }
                head: dict[str, Any] = {"step": h} if steps > 1 else {}
                head |= {"state": labels.state(x), "action": labels.action(a)}
                for y, p in zip(*problem.kernel.successors(h, x, a), strict=True):
                    yield head | {"next": labels.state(int(y)), "probability": float(p)} | pays


def _record(name: str, entry: Environment, problem: CMDP, files: list[str]) -> dict[str, Any]:
    """All that is known of an environment, its optimum solved and certified now."""
    optimum = solve_feasible(problem)
    assert entry.certified is not None
    assert optimum.multiplier is not None
    published = entry.published()
    return {
        "name": name,
        "version": entry.version,
        "summary": entry.summary,
        "files": [f"{name}/{each}" for each in files],
        "states": problem.states,
        "actions": problem.actions,
        "horizon": problem.horizon,
        "constraints": problem.constraints,
        "start": problem.labels.state(problem.start),
        "thresholds": problem.threshold.tolist(),
        "optimum": _rounded(optimum.value),
        "certificate": float(f"{optimum.duality_gap:.0e}"),
        "multipliers": [_rounded(each) for each in optimum.multiplier],
        "slater_gap": _rounded(optimum.slater_gap),
        "unconstrained": entry.certified.unconstrained,
        "sense": entry.sense,
        "units": [unit._asdict() for unit in entry.units],
        "published": published and published._asdict(),
        "tail_bound": entry.tail,
        "source": entry.source,
        "unverified": entry.unverified,
        "licence": LICENCE,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(float(value), DIGITS) + 0.0


def _line(record: dict[str, Any]) -> dict[str, Any]:
    """A record as one line of a table: lists become words, and long texts stay in suite.json."""
    left_out = ("files", "units", "published", "licence")
    plain = {name: value for name, value in record.items() if name not in left_out}
    return {
        name: " ".join(map(str, value)) if isinstance(value, list) else value
        for name, value in plain.items()
    }


def _write_csv(path: Path, rows: Sequence[dict[str, Any]] | Iterator[dict[str, Any]]) -> None:
    listed = iter(rows)
    first = next(listed)
    with written_whole(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(first), lineterminator="\n")
        writer.writeheader()
        writer.writerow(first)
        writer.writerows(listed)


def _readme(records: list[dict[str, Any]], notes: list[str]) -> str:
    table = ["| name | X | A | H | N | optimum | multipliers | Slater gap | source |"]
    table += ["|---|---|---|---|---|---|---|---|---|"]
    for r in records:
        prices = ", ".join(f"{each:.6g}" for each in r["multipliers"])
        sizes = f"{r['states']} | {r['actions']} | {r['horizon']} | {r['constraints']}"
        numbers = f"{r['optimum']:.8g} | {prices} | {r['slater_gap']:.6g}"
        table.append(f"| `{r['name']}` v{r['version']} | {sizes} | {numbers} | {r['source']} |")
    lost = "\n".join(f"- {note}" for note in notes) or "- nothing"
    return README.format(
        version=__version__, table="\n".join(table), licence=LICENCE, notes=lost, sums=CHECKSUMS
    )


README = """# Constrained MDPs with certified optima

{table}

Written by `cmdplab export-suite`, cmdplab {version}. Check the files with `sha256sum -c {sums}`.

## A problem

Maximise V[objective] such that V[utility_n] >= threshold_n for every n. V[r] is the expected sum
of r over H steps from the start state. All rewards lie in [0, 1]. A cost c within a budget B is the
utility 1 - c with the threshold H - B. The optimum, the multipliers and the Slater gap above are in
these units. `suite.json` also has those of the source: published = offset + factor * ours, for the
objective and then for each utility, as `units` lists them.

The *optimum* is attained by a policy, and proved by multipliers, to within `certificate`. A
*multiplier* is what the optimum loses when its threshold rises by one unit. The *Slater gap* is the
largest slack that all constraints can have at once.

## Files

- `NAME/problem.npz`: NumPy arrays. `transition` [H, X, A, X], or [X, A, X] where it is the same at
  every step (large problems have lists of successors instead), `reward` [1 + N, H, X, A] with the
  objective first, `threshold` [N], `start`, and `mask` where actions are closed. No pickle.
- `NAME/problem.drn`: the same for Storm, where nothing depends on the step.
- `NAME/transitions.csv`: one row for each transition: state, action, next, probability, and what
  the pair pays. A column `step`, counted from 0, where something depends on it. A pair without rows
  is closed.
- `suite.json`, `suite.csv`: sizes, thresholds, certified numbers, units, origin.

What a format cannot say:

{notes}

## Licence and origin

{licence} The version after a name goes up when results on it would change: cite it too.
"""
