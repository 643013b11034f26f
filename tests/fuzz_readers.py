"""Damaged files: a reader returns what passes all its own checks, or raises InputError.

    python tests/fuzz_readers.py [FILES] [SEED]

Bits are flipped, slices cut, doubled and moved, numbers replaced by awkward ones, also beneath the
checksums. No other exception, no file that takes long, no huge allocation; what is accepted is
right: rows sum to one, and a save and a load, or a second reading of the settings, give the same
again; and nothing that differs from what was written is believed where a digest could tell.
"""

from __future__ import annotations

import io
import resource
import shutil
import signal
import sys
import tempfile
import warnings
import zlib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow.parquet as pq
from damaging import damaged, damaged_archive, damaged_json, damaged_npy, damaged_table, npy
from made_up_records import records

from cmdplab import load_runs
from cmdplab.algorithms import algorithm
from cmdplab.algorithms.task import checked_baseline
from cmdplab.audit import events
from cmdplab.cli.run import _policy
from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.errors import InputError
from cmdplab.experiments import checkpoint, manifest
from cmdplab.experiments.durable import run_in_folder
from cmdplab.experiments.experiment import parse_experiment, read_experiment, resolve
from cmdplab.experiments.folder import read_folder, works_of
from cmdplab.experiments.run_settings import RunSettings, fingerprint
from cmdplab.experiments.sweep import sweep
from cmdplab.experiments.work import Work
from cmdplab.figures.plots import KINDS, plot
from cmdplab.figures.sources import records_of
from cmdplab.files import NoDigestWarning, digest_of_arrays
from cmdplab.formats import Roles, read_drn, write_drn
from cmdplab.report import gather, write_tables
from cmdplab.report.page import page

SECONDS = 30  # for one file, a hundred times what the slowest takes
MEMORY = 8 << 30  # bytes of address space, much of which the interpreter's libraries reserve
SMALL = 1_000_000  # numbers up to which an accepted problem is written and read again

DRN = (
    """// cmdplab {"objective": "gold", "horizon": 5, "utilities": {"safe": 2.5}, "name": "mine"}
@type: MDP
@parameters

@reward_models
gold safe hits
@nr_states
3
@nr_choices
5
@model
state 0 [0, 0.5, 0] init
\taction 0 [0.5, 0.25, 0]
\t\t0 : 0.9
\t\t1 : 0.1
\taction 1 [1, 0, 0.5]
\t\t0 : 0.5
\t\t2 : 0.5
state 1 [0.25, 0.5, 0] "deep mine" dark
\taction 0 [0, 0, 0]
\t\t1 : 1
state 2 [0, 0, 1]
// two ways out
\taction 0
\t\t0 : 1/3
\t\t1 : 2/3
\taction 2 [0, 1, 0]
\t\t2 : 1
""",
)
ROLES = Roles("gold", 4, {"safe": 1.0}, {"hits": 2.0}, "given")

TOML = (
    """name = "small"
episodes = 1_000
seeds = [3, 4]
preset = "printed"

[[problems]]
environment = "three-state"

[[algorithms]]
name = "UOpt-RPGPD"
bonus_scale = [1e-3, 1e-4]
delta = 0.05

[[algorithms]]
name = "OptCMDP"
replan = "doubling"
tuned_for = 1000
""",
)


def small_problem(seed: int) -> CMDP:
    """A random stationary problem with a closed pair; every other one has lists of successors."""
    rng = np.random.default_rng(seed)
    X, A = int(rng.integers(2, 5)), int(rng.integers(2, 4))
    kernel, reward = rng.dirichlet(np.full(X, 0.4), (X, A)), rng.random((2, X, A))
    mask = np.ones((X, A), dtype=bool)
    mask[seed % X, 0] = seed % 3 == 0
    rows = Sparse.of(kernel) if seed % 2 else kernel
    return CMDP(rows, reward, np.array([0.3]), 1, 3, f"small {seed}", mask)


def same(one: CMDP, other: CMDP) -> bool:
    """Whether two problems are equal to the last bit, wherever an action may be taken."""
    arrays = (
        (p.table * p.opened[..., None], p.reward, p.threshold, p.opened) for p in (one, other)
    )
    fixed = [(p.start, p.horizon, p.name) for p in (one, other)]
    equal = all(np.array_equal(a, b) for a, b in zip(*arrays, strict=True))
    return equal and fixed[0] == fixed[1]


def check_problem(problem: CMDP, folder: Path) -> None:
    """What was accepted is a problem, and survives being saved."""
    rows = problem.transition
    rows = rows.probability if isinstance(rows, Sparse) else rows
    assert np.abs(rows.sum(axis=-1) - 1.0).max() <= 1e-12, "a row does not sum to one"
    assert rows.min() >= 0.0, "a negative probability"
    assert np.abs(problem.reward - 0.5).max() <= 0.5, "a reward outside [0, 1]"
    assert problem.opened.any(axis=-1).all(), "a state without actions"
    assert np.isfinite(problem.threshold).all(), "a threshold that is no number"
    assert 0 <= problem.start < problem.states, "a start that is no state"
    if problem.reward.size <= SMALL:
        problem.save(folder / "again.npz")
        assert same(problem, CMDP.load(folder / "again.npz")), "a save and a load changed it"


def check_drn(path: Path, roles: Roles | None) -> None:
    """Read a DRN file, and write and read what was accepted."""
    problem = read_drn(path, roles)
    check_problem(problem, path.parent)
    if problem.reward.size <= SMALL:
        write_drn(problem, path.parent / "again.drn")
        again = read_drn(path.parent / "again.drn")
        assert same(problem, again), "writing and reading changed it"


def check_toml(path: Path, known: dict[str, CMDP]) -> None:
    """Read an experiment; its own dump must say the same, and its runs must resolve or refuse."""
    experiment = read_experiment(path)
    assert parse_experiment(experiment.model_dump(), "dump") == experiment, "a dump changed it"
    if len(experiment.seed_list()) <= 10:
        runs = resolve(experiment, known)
        assert len({run.folder for run in runs}) == len(runs), "two runs in one folder"


class Kind(NamedTuple):
    """A kind of file: whole ones, how they get damaged, and what their reader makes of them."""

    name: str
    digest: bool  # whether the whole file has one, or a manifest has one of it
    said: bool  # whether a reader that finds none must say so
    path: Path
    whole: list[bytes]
    damage: Callable[[bytes, np.random.Generator], bytes]
    read: Callable[[Path], Any]  # two readings of the same are equal


def _same_problem(problem: CMDP, folder: Path) -> tuple[str, str]:
    check_problem(problem, folder)
    return problem.name, fingerprint(problem)


def _drn(path: Path, roles: Roles | None) -> tuple[str, str]:
    check_drn(path, roles)
    return _same_problem(read_drn(path, roles), path.parent)


def _toml(path: Path, known: dict[str, CMDP]) -> str:
    check_toml(path, known)
    return read_experiment(path).model_dump_json()


def _shown(path: Path) -> str:
    """The report of a run's folder."""
    found = gather(path.parent)
    write_tables(path.parent, path.parent / "tables", found)
    return page(found)


def _drawn(path: Path) -> str:
    """What a figure is drawn from, and one that is drawn now and then."""
    kinds = [kind for kind, (_, file, _) in KINDS.items() if file == path.name]
    number = zlib.crc32(path.read_bytes())
    if number % 5 == 0:
        plot(path.parent, kinds[number % len(kinds)], path.parent / "figure.svg")
    return repr(_bits(records_of(path.parent, path.name).curves))


def _bits(value: Any) -> Any:
    """Arrays by their bytes, for comparisons to the last bit."""
    if isinstance(value, dict):
        return {key: _bits(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_bits(each) for each in value]
    return value.tobytes() if isinstance(value, np.ndarray) else value


def _loaded(path: Path) -> Any:
    return load_runs(path.parent)


def _manifest(path: Path) -> str:
    record = manifest.read(path.parent)
    return "" if record is None else record.model_dump_json()


def _checkpoint(path: Path) -> str:
    """A damaged one is set aside, with a sentence."""
    try:
        found = checkpoint.find(path.parent)
    finally:
        for aside in path.parent.glob("*.damaged-*"):
            aside.unlink()
    if found.snapshot is None:
        raise InputError("; ".join(found.complaints))
    return digest_of_arrays(found.snapshot)


def _without(data: bytes, rng: np.random.Generator | None = None) -> bytes:
    """A table without digests."""
    out = io.BytesIO()
    pq.write_table(pq.read_table(io.BytesIO(data)).replace_schema_metadata(None), out)
    return out.getvalue()


def _unsealed(data: bytes) -> bytes:
    text = data.decode()
    return (text[: text.rindex(",")] + "\n}\n").encode()


def _run(folder: Path, episodes: int, far: int) -> Path:
    """A run's folder, done or interrupted."""
    problem = random_problem(3, 2, 2, 1)
    folder.mkdir()
    problem.save(folder / "problem.npz")
    settings = RunSettings.of(problem, algorithm("UOpt-RPGPD", "printed"), episodes, 0)
    looks = iter(range(10**9))
    run_in_folder(Work(folder, settings, folder / "problem.npz"), stop=lambda: next(looks) >= far)
    return folder


def _archives(folder: Path) -> tuple[list[bytes], list[bytes]]:
    """Problems as we write them, and without digests, as others do."""
    ours, others = [], []
    for seed in range(6):
        small_problem(seed).save(folder / "valid.npz")
        ours.append((folder / "valid.npz").read_bytes())
        arrays = dict(np.load(folder / "valid.npz"))
        arrays.pop("digest")
        out = io.BytesIO()
        np.savez_compressed(out, **arrays)
        others.append(out.getvalue())
    return ours, others


def _texts(folder: Path) -> list[Kind]:
    known = {"0" * 32: small_problem(0)}
    drn, toml = [each.encode() for each in DRN], [each.encode() for each in TOML]
    path = folder / "damaged.drn"
    return [
        Kind("drn", False, False, path, drn, damaged, lambda path: _drn(path, None)),
        Kind("drn with roles", False, False, path, drn, damaged, lambda path: _drn(path, ROLES)),
        Kind("toml", False, False, folder / "damaged.toml", toml, damaged,
             lambda path: _toml(path, known)),
    ]  # fmt: skip


def _arrays(folder: Path) -> list[Kind]:
    ours, others = _archives(folder)
    easy = random_problem(3, 2, 2, 1)
    easy = CMDP(easy.table, easy.reward, easy.threshold * 0.0, easy.start)
    policies = [npy(np.full(shape, 0.5)) for shape in [(2, 3, 2)] * 2]

    def problem(path: Path) -> tuple[str, str]:
        return _same_problem(CMDP.load(path), folder)

    def policy(path: Path) -> bytes:
        found = checked_baseline(easy, _policy(path)).policy
        assert np.abs(found.sum(axis=-1) - 1.0).max() <= 1e-9
        return found.tobytes()

    npz, archive = folder / "damaged.npz", damaged_archive
    return [
        Kind("problem .npz", True, False, npz, ours, archive, problem),
        Kind("problem .npz", False, False, npz, others, archive, problem),
        Kind("policy .npy", False, False, folder / "p.npy", policies, damaged_npy, policy),
    ]


def _reported(folder: Path) -> list[Kind]:
    """Of a run that a report and a figure are made of, and of a lone table without digests."""
    made = works_of(records(folder / "made", ("UOpt-RPGPD",), 1, 40))[0].folder
    lone = folder / "lone"
    lone.mkdir()
    kinds = []
    for name in ("curves.parquet", "mistakes.parquet"):
        whole = (made / name).read_bytes()
        (lone / name).write_bytes(_without(whole))
        kinds += [
            Kind(f"{name}, report", True, True, made / name, [whole], damaged_table, _shown),
            Kind(f"{name}, plot", True, True, made / name, [whole], damaged_table, _drawn),
            Kind(f"{name}, plot", False, True, lone / name, [_without(whole)], damaged_table,
                 _drawn),
        ]  # fmt: skip
    return kinds


def _runs(folder: Path) -> list[Kind]:
    """Of a run's folder, finished or not, and of a sweep's."""
    done, part = _run(folder / "done", 40, 10**9), _run(folder / "part", 10**7, 2)
    old, curves = folder / "old", "curves.parquet"
    shutil.copytree(part, old)
    (old / curves).write_bytes(_without((old / curves).read_bytes()))
    kinds = [
        Kind(f"{curves}, load", each != old, True, each / curves, [(each / curves).read_bytes()],
             damaged_table, _loaded)
        for each in (done, part, old)
    ]  # fmt: skip
    for each, name, damage, read in (
        (done, "manifest.json", damaged_json, _manifest),
        (part, "checkpoint.npz", damaged_archive, _checkpoint),
    ):
        lone = folder / f"lone-{name}"
        lone.mkdir()
        shutil.copy(each / name, lone / name)
        whole = [(lone / name).read_bytes()]
        kinds.append(Kind(name, True, True, lone / name, whole, damage, read))
    values = {"name": "e", "episodes": 5, "problems": [{"file": str(done / "problem.npz")}]}
    values |= {"seeds": 2, "algorithms": [{"name": "UOpt-RPGPD", "bonus_scale": [1.0, 0.5]}]}
    nobody = {"executor": lambda works, tell, interrupt, every: None}  # only the list is needed
    sweep(parse_experiment(values, "fuzz"), folder / "swept", **nobody)
    path = folder / "swept" / "experiment.json"
    event = folder / "events"
    small = events.problem_of("small")
    events.failure_events(small, event, seeds=3, episodes=5)

    def listed(path: Path) -> str:
        return read_folder(path.parent).model_dump_json()

    def happened(path: Path) -> Any:
        return events.failure_events(small, path.parent, seeds=3, episodes=5)

    for file, read in ((path, listed), (event / events.NAME, happened)):
        whole = file.read_bytes()
        kinds += [
            Kind(file.name, True, True, file, [whole], damaged_json, read),
            Kind(file.name, False, True, file, [_unsealed(whole)], damaged_json, read),
        ]
    return kinds


class TooSlowError(Exception):
    """A file took longer than `SECONDS`."""


def _too_slow(*_: object) -> None:
    raise TooSlowError(f"more than {SECONDS} s")


class Outcome(NamedTuple):
    """What a reader made of a damaged file."""

    what: str  # refused, equal, different, believed, wrong
    why: str = ""


def _outcome(kind: Kind, expected: Any) -> Outcome:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("error")
        warnings.simplefilter("always", NoDigestWarning)
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            found = kind.read(kind.path)
        except InputError as error:
            lines = str(error).count("\n")
            return Outcome("wrong", f"more than one line: {error}") if lines else Outcome("refused")
        except Exception as error:
            return Outcome("wrong", f"{type(error).__name__}: {error}")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    if found == expected:
        return Outcome("equal")
    if (kind.said and not caught) or (kind.digest and not kind.said):
        return Outcome("believed", "differs from what was written, and nobody said so")
    return Outcome("different")


def fuzz(files: int, seed: int, folder: Path) -> tuple[dict[str, Counter[str]], list[str]]:
    """For each kind of file how many were refused and accepted, and what went wrong.

    A file that fails is kept in `folder`.
    """
    signal.signal(signal.SIGALRM, _too_slow)
    kinds = [*_texts(folder), *_arrays(folder), *_reported(folder), *_runs(folder)]
    expected = []
    for kind in kinds:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoDigestWarning)
            expected.append([_read_whole(kind, each) for each in kind.whole])
    counts: dict[str, Counter[str]] = {}
    wrong: list[str] = []
    for n in range(files):
        kind, known = kinds[n % len(kinds)], expected[n % len(kinds)]
        rng = np.random.default_rng([seed, n])
        chosen = int(rng.integers(len(kind.whole)))
        kind.path.write_bytes(kind.damage(kind.whole[chosen], rng))
        data = kind.path.read_bytes()
        outcome = _outcome(kind, known[chosen])
        label = f"{kind.name}, {'digest' if kind.digest else 'no digest'}"
        counts.setdefault(label, Counter())[outcome.what] += 1
        if outcome.why:
            kept = folder / f"kept-{seed}-{n}{kind.path.suffix}"
            kept.write_bytes(data)
            wrong.append(f"{label} {seed} {n}: {outcome.why} ({kept.name})")
        kind.path.write_bytes(kind.whole[0])  # its folder is used by others too
    return counts, wrong


def _read_whole(kind: Kind, whole: bytes) -> Any:
    kind.path.write_bytes(whole)
    return kind.read(kind.path)


COLUMNS = ("refused", "equal", "different", "believed", "wrong")


def main(files: int = 100_000, seed: int = 0) -> int:
    """Damage so many files; the number of failures is the exit code, at most one.

    different: accepted, without a digest that could tell, and said so where it is a record of ours.
    believed: accepted in silence although a digest was there. wrong: any other exception.
    """
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    counts, wrong = fuzz(files, seed, folder)
    total: Counter[str] = sum(counts.values(), Counter())
    print(" ".join(f"{each:>10}" for each in ("files", *COLUMNS)), " kind")
    for kind, found in [*counts.items(), ("all", total)]:
        print(" ".join(f"{n:10}" for n in (found.total(), *(found[c] for c in COLUMNS))), "", kind)
    for each in wrong:
        print(each)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
    print(f"{len(wrong)} of {files} files went wrong; memory: at most {peak} MiB"
          + (f": see {folder}" if wrong else ""))  # fmt: skip
    if not wrong:
        shutil.rmtree(folder)
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main(*(int(each) for each in sys.argv[1:])))
