"""Sweeps as real processes, and what can happen to them: for the tests and `make torture`."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from cmdplab.algorithms import ALGORITHMS
from cmdplab.cmdp.problem import CMDP
from cmdplab.experiments import checkpoint
from cmdplab.experiments.folder import works_of
from cmdplab.experiments.run_settings import RunSettings, fingerprint
from cmdplab.experiments.status import status_of
from cmdplab.files import digest_of_arrays

Result = dict[str, tuple[bytes, str]]


def write_experiment(folder: Path, episodes: int, seeds: int, rows: int | None = None) -> Path:
    """Every registered algorithm (or the first few) on one small problem."""
    from conftest import random_problem

    random_problem(4, 2, 3, 1, seed=5, stationary=True).save(folder / "small.npz")
    lines = [f'name = "torture"\nepisodes = {episodes}\nseeds = {seeds}']
    lines.append('[[problems]]\nfile = "small.npz"')
    for name, preset in list(ALGORITHMS)[:rows]:
        lines.append(f'[[algorithms]]\nname = "{name}"\npreset = "{preset}"')
    (folder / "torture.toml").write_text("\n".join(lines) + "\n")
    return folder / "torture.toml"


def settings_of(problem: CMDP, **given: Any) -> RunSettings:
    """The settings of one run of UOpt-RPGPD as printed, of the seed 0, where nothing else is said.

    `given` must hold the number of episodes.
    """
    usual = {"algorithm": "UOpt-RPGPD", "preset": "printed", "seed": 0}
    about = {"problem": problem.name, "fingerprint": fingerprint(problem)}
    return RunSettings(**about | usual | given)


def experiment_values(episodes: int, *problems: dict[str, Any], **more: Any) -> dict[str, Any]:
    """What the TOML of an experiment with UOpt-RPGPD says."""
    algorithms = [{"name": "UOpt-RPGPD"}]
    known = {"name": "small", "episodes": episodes, "problems": list(problems)}
    return known | {"algorithms": algorithms} | more


def start(
    experiment: Path,
    out: Path,
    workers: int = 2,
    largest_file: int | None = None,
    ray: str | None = None,
    every: str = "0.05",
) -> subprocess.Popen:
    """`cmdplab sweep` in a process group of its own, checkpointing all the time."""

    def limit() -> None:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a suite under nohup would pass it on ignored
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))

    command = [sys.executable, "-m", "cmdplab", "sweep", str(experiment), "--out", str(out)]
    command += ["--workers", str(workers), "--checkpoint-every", every]
    command += ["--ray", ray] if ray else []
    return subprocess.Popen(
        command,
        start_new_session=True,
        preexec_fn=limit,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_until_under_way(out: Path, seconds: float = 60.0) -> None:
    """Until some run of the sweep has left a manifest: starting takes a second, or ten."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and not list(out.glob("runs/*/manifest.json")):
        time.sleep(0.05)


def workers(process: subprocess.Popen) -> list[psutil.Process]:
    """The workers of a sweep that live."""
    try:
        children = psutil.Process(process.pid).children()
        return [each for each in children if "spawn_main" in " ".join(each.cmdline())]
    except psutil.NoSuchProcess:
        return []


def await_workers(process: subprocess.Popen, unlike: set[int], seconds: float = 120.0) -> list:
    """Its workers, as soon as there is one whose number is not among `unlike`."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        if found := [each for each in workers(process) if each.pid not in unlike]:
            return found
        time.sleep(0.01)
    return []


def wait_until(true: Callable[[], bool], seconds: float = 120.0) -> bool:
    """Whether it became true in that time, which is long: machines are slow at times."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.02)
    return False


def finish(experiment: Path, out: Path, workers: int = 2) -> None:
    """Let the sweep run to its end, undisturbed."""
    process = start(experiment, out, workers)
    printed, _ = process.communicate(timeout=300)
    assert process.returncode == 0, printed


def kill(process: subprocess.Popen, how: signal.Signals = signal.SIGKILL) -> None:
    """The whole group: the sweep and its workers."""
    try:
        os.killpg(process.pid, how)
    except ProcessLookupError:
        return
    process.communicate(timeout=60)


def results(out: Path) -> Result:
    """Of finished runs: the curves byte for byte, and the digest of the last checkpoint."""
    found = {}
    for work in works_of(out):
        if status_of(work).status == "done":
            snapshot = checkpoint.find(work.folder).snapshot
            assert snapshot is not None
            tables = ("curves.parquet", "mistakes.parquet")
            curves = b"".join((work.folder / name).read_bytes() for name in tables)
            found[work.folder.name] = (curves, digest_of_arrays(snapshot))
    return found


def damage(path: Path, rng: np.random.Generator) -> None:
    """Truncate a file somewhere, or flip one bit of it."""
    content = bytearray(path.read_bytes())
    if not content:
        return
    if rng.random() < 0.5:
        path.write_bytes(bytes(content[: rng.integers(0, len(content))]))
    else:
        content[rng.integers(0, len(content))] ^= 1 << int(rng.integers(8))
        path.write_bytes(bytes(content))
