"""`make torture`: kill a sweep of every algorithm at least 200 times, then compare.

Each round starts the sweep, does something to it at a random instant, and checks that no finished
run was lost. Rounds: SIGKILL of the whole group (most), SIGTERM, and SIGKILL followed by damage to
random checkpoints, manifests and curves. At the end the results must equal an undisturbed sweep's
byte for byte.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

import faults

from cmdplab.experiments.folder import works_of


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="SIGKILLs at least")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folder", type=Path, default=None)
    arguments = parser.parse_args()
    folder = arguments.folder or Path(tempfile.mkdtemp(prefix="torture-"))
    folder.mkdir(parents=True, exist_ok=True)
    experiment = faults.write_experiment(folder, episodes=400_000, seeds=2)
    began = time.monotonic()
    faults.finish(experiment, folder / "undisturbed")
    expected = faults.results(folder / "undisturbed")
    print(f"undisturbed: {len(expected)} runs in {time.monotonic() - began:.0f} s", flush=True)
    rng = np.random.default_rng(arguments.seed)
    counts: Counter[str] = Counter()
    round_ = 0
    while counts["SIGKILL"] < arguments.kills:
        counts.update(torture(experiment, folder / f"round-{round_}", expected, rng))
        round_ += 1
        words = ", ".join(f"{n} {what}" for what, n in sorted(counts.items()))
        print(f"{time.monotonic() - began:.0f} s: {round_} sweeps equal; {words}", flush=True)
    print("every sweep ended with the undisturbed results, byte for byte; no finished run was lost")


def torture(
    experiment: Path, out: Path, expected: faults.Result, rng: np.random.Generator
) -> Counter[str]:
    """One sweep, disturbed until it is done."""
    counts: Counter[str] = Counter()
    done: faults.Result = {}
    while len(done) < len(expected):
        process = faults.start(experiment, out, workers=int(rng.integers(1, 4)))
        time.sleep(rng.uniform(0.2, 3.0))
        how = signal.SIGTERM if rng.random() < 0.15 else signal.SIGKILL
        faults.kill(process, how)
        counts[how.name] += 1
        if not (out / "experiment.json").exists():
            continue
        now = faults.results(out)
        lost = [name for name in done if now.get(name) != done[name]]
        if lost:
            raise SystemExit(f"finished runs were lost or changed: {lost}")
        done = now
        if how is signal.SIGKILL and rng.random() < 0.15:
            counts["damaged files"] += hurt(out, rng)
            done = faults.results(out)  # a damaged finished run is repaired, not lost
    faults.finish(experiment, out)
    if faults.results(out) != expected:
        raise SystemExit(f"the results in {out} differ from the undisturbed ones")
    return counts


def hurt(out: Path, rng: np.random.Generator) -> int:
    """Damage a file in about one run of four."""
    damaged = 0
    for work in works_of(out):
        names = ("checkpoint.npz", "checkpoint.before.npz", "manifest.json", "curves.parquet")
        name = names[int(rng.integers(len(names)))]
        if (work.folder / name).exists() and rng.random() < 0.25:
            faults.damage(work.folder / name, rng)
            damaged += 1
    return damaged


if __name__ == "__main__":
    main()
