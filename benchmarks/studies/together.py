"""Many runs played side by side up to an episode or a time limit, and what is kept of them.

On the engine `gpu` all runs are one batch; on `cpu` they are played one after the other. Nothing
here needs more than NumPy and Numba.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from cmdplab.algorithms.families.primal_dual import PrimalDual
from cmdplab.algorithms.task import Task
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import session
from cmdplab.errors import InputError
from cmdplab.files import read_npz
from cmdplab.files.write import writable_folder, written_whole
from cmdplab.measures.measures import Measures
from cmdplab.types import Array

SAVED_EVERY = 60.0  # seconds between two partial results
TOLD_EVERY = 10.0
SERIES = ("gap", "violation")

Keep = Callable[[Array], Array]  # episode numbers [E] -> [E], whether each is a point of a curve


class Played(NamedTuple):
    """One run."""

    problem: CMDP
    row: PrimalDual
    task: Task
    seed: int
    optimum: float
    state: Any = None


class Together(Protocol):
    """Runs in progress, all equally far."""

    chunk: int  # episodes that are played at a time

    def advance(self, episodes: int) -> None:
        """So many more episodes of every run."""

    def measures(self) -> list[Measures]:
        """Of every run, up to now."""

    def states(self) -> Iterator[Any]:
        """Of every run, now."""


class OnCard:
    """One batch on the GPU."""

    def __init__(self, runs: Sequence[Played], precision: str, keep: Keep) -> None:
        from cmdplab.engines.gpu.batch import GpuBatch
        from cmdplab.engines.gpu.limits import chunk_size

        problems, rows, tasks, seeds, self._optima, states = (
            list(each) for each in zip(*runs, strict=True)
        )
        given = None if states[0] is None else states
        self._batch = GpuBatch(problems, rows, tasks, seeds, given, precision)
        self._judged = self._batch.judge(self._optima, keep)
        self.chunk = chunk_size(len(runs))

    def advance(self, episodes: int) -> None:
        self._batch.measure(self._optima, episodes, self._judged)

    def measures(self) -> list[Measures]:
        return self._judged.measures()

    def states(self) -> Iterator[Any]:
        return self._batch.states()


class OnCores:
    """One run after the other on the CPU, in double precision."""

    chunk = 1 << 13

    def __init__(self, runs: Sequence[Played], precision: str, keep: Keep) -> None:

        self._sessions = [
            session("cpu", each.problem, each.row, each.task, each.seed, each.state)
            for each in runs
        ]
        self._judged = [
            Measures(each.optimum, each.problem.threshold, each.problem.horizon) for each in runs
        ]

    def advance(self, episodes: int) -> None:
        for run, judged in zip(self._sessions, self._judged, strict=True):
            judged.add(run.play(episodes))

    def measures(self) -> list[Measures]:
        return self._judged

    def states(self) -> Iterator[Any]:
        return (session.state() for session in self._sessions)


ENGINES: dict[str, Callable[[Sequence[Played], str, Keep], Together]] = {
    "gpu": OnCard,
    "cpu": OnCores,
}


def octaves(parts: int) -> Keep:
    """The grid with so many points an octave, a power of 2; all episodes of the first ones."""

    def keep(episodes: Array) -> Array:
        _, exponent = np.frexp(episodes)
        step = np.exp2(np.maximum(exponent - 1 - int(np.log2(parts)), 0))
        return np.asarray(episodes % step == 0.0)

    return keep


def thinned(curves: dict[str, Array], keep: Keep) -> dict[str, Array]:
    """Curves at fewer points; minima and maxima are those since the point before."""
    ends = np.flatnonzero(keep(curves["episode"]))
    starts = np.concatenate([[0], ends[:-1] + 1])
    found = {"episode": curves["episode"][ends]}
    for name in SERIES:
        found[name] = curves[name][ends]
        for end, reduce in (("min", np.minimum), ("max", np.maximum)):
            within = curves[f"{name}_{end}"][: ends[-1] + 1]
            found[f"{name}_{end}"] = reduce.reduceat(within, starts)
    multipliers = [name for name in curves if name.startswith("multiplier_")]
    found["multiplier"] = np.stack([curves[name][ends] for name in multipliers], axis=-1)
    return found


def table(judged: Sequence[Measures], keep: Keep) -> dict[str, Array]:
    """Curves [R, points] in single precision, mistakes of either kind [R, epsilons], whole."""
    curves = [thinned(each.curves(), keep) for each in judged]
    found = {"episode": curves[0].pop("episode")}
    for name in curves[0]:
        found[name] = np.stack([each[name] for each in curves]).astype(np.float32)
    mistakes = [each.mistakes() for each in judged]
    found["epsilon"] = mistakes[0]["epsilon"]
    for name in ("mistakes", "last_mistake"):
        found[name] = np.stack([each[f"either_{name}"] for each in mistakes]).astype(np.int64)
    found["episodes"] = np.array(judged[0].summary().episodes)
    return found


class Limits(NamedTuple):
    """How far and how long."""

    episodes: int
    seconds: float
    engine: str = "gpu"
    precision: str = "float64"
    photographed: tuple[int, ...] = ()  # episodes after which states are kept


def play(
    runs: Sequence[Played],
    limits: Limits,
    keep: Keep,
    write: Callable[[dict[str, Array], list[list[Any]], bool], None],
    began: float,
) -> None:
    """Play until an end, and give `write` the table and the states so far, now and then.

    The last argument of `write` says whether all episodes were played. Seconds count from `began`.
    """
    together = ENGINES[limits.engine](runs, limits.precision, keep)
    done, states, saved = 0, list[list[Any]](), time.monotonic()
    told, started = saved, saved
    while done < limits.episodes and time.monotonic() - began < limits.seconds:
        stops = [each for each in (*limits.photographed, limits.episodes) if each > done]
        size = min(together.chunk, stops[0] - done)
        together.advance(size)
        done += size
        if done in limits.photographed:
            states.append(list(together.states()))
        now = time.monotonic()
        if now - told >= TOLD_EVERY:
            rate = len(runs) * done / (now - started) / 1e6
            print(
                f"  {now - began:5.0f} s: {done:,} episodes of {len(runs)} runs, {rate:.2f} M/s",
                flush=True,
            )
            told = now
        if now - saved >= SAVED_EVERY and done < limits.episodes:
            write(table(together.measures(), keep), states, False)
            saved = time.monotonic()
    if done:
        write(table(together.measures(), keep), states, done >= limits.episodes)
    print(f"  {time.monotonic() - began:5.0f} s: stopped after {done:,} episodes", flush=True)


def save(path: Path, stamp: dict[str, Any], arrays: dict[str, Array], finished: bool) -> None:
    """Write a result whole, with what it belongs to."""
    mark = json.dumps(stamp | {"finished": finished})
    with written_whole(path) as temporary, temporary.open("wb") as stream:
        np.savez_compressed(stream, stamp=np.array(mark), **arrays)
    print(f"  {path}: {path.stat().st_size / 1e6:.1f} MB", flush=True)


def finished(path: Path, stamp: dict[str, Any]) -> bool:
    """Whether a result is there and complete; one of other settings is refused."""
    if not path.exists():
        return False
    found = json.loads(str(read_npz(path)["stamp"]))
    done = bool(found.pop("finished"))
    if found != json.loads(json.dumps(stamp)):
        raise InputError(f"{path} belongs to other settings: choose another --out")
    return done


def options(description: str, episodes: int) -> argparse.ArgumentParser:
    """What all studies ask."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--episodes", type=int, default=episodes)
    parser.add_argument("--seconds", type=float, default=540.0, help="stop after so long")
    parser.add_argument("--engine", choices=ENGINES, default="gpu")
    parser.add_argument("--precision", choices=("float64", "float32"), default="float64")
    parser.add_argument("--out", type=writable_folder, default=Path("runs") / "studies")
    parser.add_argument("--small", action="store_true", help="a few short runs, to try it out")
    return parser


def as_script(main: Callable[[list[str]], None]) -> None:
    """Run a script with what the command line gives; bad input is one sentence and exit code 1."""
    try:
        main(sys.argv[1:])
    except InputError as error:
        sys.exit(f"error: {error}")
