"""Damaged files: a reader returns what passes all its own checks, or raises InputError.

    python tests/fuzz_readers.py [FILES] [SEED]

Bits are flipped, slices cut, doubled and moved, numbers replaced by awkward ones. No other
exception, no file that takes long, no huge allocation; and what is accepted is right: rows sum to
one, and a save and a load, or a second reading of the settings, give the same again.
"""

from __future__ import annotations

import io
import re
import resource
import signal
import sys
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cmdplab.errors import InputError
from cmdplab.experiment import parse_experiment, read_experiment, resolve
from cmdplab.formats import Roles, read_drn, write_drn
from cmdplab.kernels import Sparse
from cmdplab.problem import CMDP

SECONDS = 20  # for one file, a hundred times what the slowest takes
MEMORY = 6 << 30  # bytes of address space, most of which the interpreter's libraries reserve
SMALL = 1_000_000  # numbers up to which an accepted problem is written and read again

NUMBERS = (
    *("nan", "-1", "0", "1e999", "-1e999", "1e-999", "99999999", "10000000000000", "9" * 400),
    *("0.5", "2", "1.0000001", "inf", "-0.0", "1/0", "1/3", "0x10", "1_0", "1e", ".", "", "[0,1]"),
    *("true", "\u0663", "18446744073709551616", "9223372036854775808", "-9223372036854775809"),
)

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


def _flip(data: bytearray, rng: np.random.Generator) -> bytearray:
    data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    return data


def _cut(data: bytearray, rng: np.random.Generator) -> bytearray:
    return data[: rng.integers(len(data) + 1)]


def _move(data: bytearray, rng: np.random.Generator) -> bytearray:
    """A slice is copied, or swapped away, to another place."""
    start, to = rng.integers(len(data), size=2)
    piece = data[start : start + rng.integers(1, 60)]
    if rng.random() < 0.5:
        del data[start : start + len(piece)]
    return data[:to] + piece + data[to:]


def _lines(data: bytearray, rng: np.random.Generator) -> bytearray:
    lines = data.split(b"\n")
    here, there = rng.integers(len(lines), size=2)
    if rng.random() < 0.5:
        lines.insert(int(there), lines[here])
    else:
        del lines[here]
    return bytearray(b"\n".join(lines))


def _number(data: bytearray, rng: np.random.Generator) -> bytearray:
    found = list(re.finditer(rb"[0-9][0-9._e-]*", data))
    if not found:
        return data
    place = found[rng.integers(len(found))]
    new = NUMBERS[rng.integers(len(NUMBERS))].encode()
    return data[: place.start()] + new + data[place.end() :]


CHANGES = (_flip, _flip, _cut, _move, _lines, _number, _number, _number)


def damaged(data: bytes, rng: np.random.Generator) -> bytes:
    """The same bytes, changed in one way or two."""
    changed = bytearray(data)
    for _ in range(rng.integers(1, 3)):
        if changed:
            changed = CHANGES[rng.integers(len(CHANGES))](changed, rng)
    return bytes(changed)


def damaged_archive(data: bytes, rng: np.random.Generator) -> bytes:
    """Damage beneath the checksums: a member is changed and the archive made anew."""
    if rng.random() < 0.3:
        return damaged(data, rng)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    names = sorted(members)
    name = names[rng.integers(len(names))]
    match rng.integers(4):
        case 0:
            members[name] = damaged(members[name], rng)
        case 1:
            members[name] = _npy(_awkward(members[name], rng))
        case 2:
            members[name] = members[names[rng.integers(len(names))]]
        case _:
            del members[name]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for each, content in members.items():
            archive.writestr(each, content)
    return out.getvalue()


def _awkward(member: bytes, rng: np.random.Generator) -> np.ndarray:
    """A member as an array with one awkward number, another type or another shape."""
    array = np.load(io.BytesIO(member), allow_pickle=False)
    kinds = ("f4", "f2", "i8", "u1", "?", "c16", "U3", "M8[s]", "f8")
    with np.errstate(all="ignore"):
        match rng.integers(3):
            case 0 if array.dtype.kind == "f" and array.size:
                changed = array.copy()
                awkward = (np.nan, np.inf, -1.0, 2.0, 1e300, 1e-320, -0.0)
                changed.flat[rng.integers(array.size)] = awkward[rng.integers(len(awkward))]
                return changed
            case 1 if array.dtype.kind in "fi":
                return array.astype(kinds[rng.integers(len(kinds))])
            case _:
                return array[None] if rng.random() < 0.5 else array.reshape(-1)


def _npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array, allow_pickle=False)
    return out.getvalue()


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


Case = tuple[str, str, Callable[[np.random.Generator], bytes], Callable[[Path], None]]


def cases(folder: Path) -> list[Case]:
    """Kind, suffix, how to make a damaged file, and what to hold its reader to."""
    archives = []
    for seed in range(6):
        small_problem(seed).save(folder / "valid.npz")
        archives.append((folder / "valid.npz").read_bytes())
    known = {"0" * 32: small_problem(0)}

    def one_of(texts: tuple[str, ...]) -> Callable[[np.random.Generator], bytes]:
        return lambda rng: damaged(texts[rng.integers(len(texts))].encode(), rng)

    return [
        ("drn", ".drn", one_of(DRN), lambda path: check_drn(path, None)),
        ("drn with roles", ".drn", one_of(DRN), lambda path: check_drn(path, ROLES)),
        ("toml", ".toml", one_of(TOML), lambda path: check_toml(path, known)),
        (
            "npz",
            ".npz",
            lambda rng: damaged_archive(archives[rng.integers(len(archives))], rng),
            lambda path: check_problem(CMDP.load(path), folder),
        ),
    ]


class TooSlowError(Exception):
    """A file took longer than `SECONDS`."""


def _too_slow(*_: object) -> None:
    raise TooSlowError(f"more than {SECONDS} s")


def fuzz(files: int, seed: int, folder: Path) -> tuple[Counter[str], list[str]]:
    """How many files of each kind were accepted and refused, and what went wrong.

    A file that fails is kept in `folder`.
    """
    signal.signal(signal.SIGALRM, _too_slow)
    counts: Counter[str] = Counter()
    wrong: list[str] = []
    todo = cases(folder)
    for n in range(files):
        kind, suffix, make, check = todo[n % len(todo)]
        path = folder / f"damaged{suffix}"
        path.write_bytes(make(np.random.default_rng([seed, n])))
        signal.setitimer(signal.ITIMER_REAL, SECONDS)
        try:
            check(path)
            counts[f"{kind}: accepted"] += 1
        except InputError as error:
            counts[f"{kind}: refused"] += 1
            if "\n" in str(error).strip():
                wrong.append(f"{kind} {seed} {n}: more than one line: {str(error)!r}")
        except Exception as error:
            kept = path.rename(folder / f"kept-{seed}-{n}{suffix}")
            wrong.append(f"{kind} {seed} {n}: {type(error).__name__}: {error} ({kept.name})")
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    return counts, wrong


def main(files: int = 100_000, seed: int = 0) -> int:
    """Damage so many files; the number of failures is the exit code, at most one."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))
    folder = Path(tempfile.mkdtemp(prefix="fuzz-"))
    counts, wrong = fuzz(files, seed, folder)
    for what, count in sorted(counts.items()):
        print(f"{count:8} {what}")
    for each in wrong:
        print(each)
    print(f"{len(wrong)} of {files} files went wrong" + (f": see {folder}" if wrong else ""))
    if not wrong:
        for path in folder.iterdir():
            path.unlink()
        folder.rmdir()
    return min(len(wrong), 1)


if __name__ == "__main__":
    sys.exit(main(*(int(each) for each in sys.argv[1:])))
