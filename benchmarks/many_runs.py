"""A sweep of thousands of short runs: what it leaves on disk, how fast it is made and read back.

`python benchmarks/many_runs.py [--seeds 200] [--episodes 200] [--folder DIR]`: 2,000 runs of 200
episodes on a tiny problem. Every command is a process of its own; seconds are of the clock, CPU
seconds of the process and its workers.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

from cmdplab.cmdp.problem import CMDP

ALGORITHMS = ("UOpt-RPGPD", "No-regularization")
SCALES = [1e-2, 1e-3, 1e-4, 1e-5, 1e-6]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="ten runs for each")
    parser.add_argument("--episodes", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="many-runs-"))
    folder.mkdir(parents=True, exist_ok=True)
    experiment, out = write_experiment(folder, arguments.seeds, arguments.episodes), folder / "out"
    runs = len(ALGORITHMS) * len(SCALES) * arguments.seeds
    took = command("sweep", experiment, "--out", out, "--workers", arguments.workers)
    sizes = Counter[str]()
    files = [each for each in out.rglob("*") if each.is_file()]
    for each in files:
        sizes[each.name] += each.stat().st_blocks * 512
    print(f"{runs} runs, {len(files)} files, {sum(sizes.values()) / 1e6:.0f} MB on disk")
    for name, size in sizes.most_common(6):
        print(f"    {name}: {size / 1e6:.1f} MB")
    print(f"sweep: {took[0]:.1f} s, CPU {took[1]:.1f} s, {runs / took[0]:.1f} runs/s")
    for name, *more in (
        ("status",),
        ("status",),
        ("report", "--out", folder / "report.html"),
        ("audit", "--out", folder / "audit"),
        ("export", "--to", "parquet", "--out", folder / "all.parquet"),
        ("resume",),
    ):
        took = command(name, out, *more)
        print(f"{name}: {took[0]:.1f} s, CPU {took[1]:.1f} s", flush=True)


def write_experiment(folder: Path, seeds: int, episodes: int) -> Path:
    """Two algorithms, five scales of the bonus, many seeds, on a problem of three states."""
    rng = np.random.default_rng(5)
    transition = rng.dirichlet(np.ones(3), size=(3, 3, 2))
    reward = rng.uniform(size=(2, 3, 3, 2))
    CMDP(transition, reward, [1.0], 0, name="tiny").save(folder / "tiny.npz")
    lines = [f'name = "many"\nepisodes = {episodes}\nseeds = {seeds}']
    lines.append('[[problems]]\nfile = "tiny.npz"')
    for name in ALGORITHMS:
        lines.append(
            f'[[algorithms]]\nname = "{name}"\npreset = "released"\nbonus_scale = {SCALES}'
        )
    (folder / "many.toml").write_text("\n".join(lines) + "\n")
    return folder / "many.toml"


def command(*words: object) -> tuple[float, float]:
    """Seconds and CPU seconds of a command, its workers included."""
    began, before = time.perf_counter(), os.times()
    line = [sys.executable, "-m", "cmdplab", *map(str, words)]
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise SystemExit(f"{' '.join(line)} ended with {done.returncode}: {done.stdout[-2000:]}")
    after = os.times()
    spent = after.children_user + after.children_system
    return time.perf_counter() - began, spent - before.children_user - before.children_system


if __name__ == "__main__":
    main()
