"""The GPU engine, measured: what it is equal to, how fast it is, and what limits it.

    python benchmarks/gpu.py --part device equal bits single speed triple_q   (or small, tune)

`device` names the card and its copy bandwidth; `equal` compares every row and preset with the CPU
engine in float64; `bits` cuts the same runs into other batches and chunks; `single` measures the
error of float32; `speed` is episodes a second over runs, sizes and precision, exact returns and
measures of every episode included; `triple_q` is the same of Triple-Q, over registers; `tune`
tries lanes and registers at the paper's size; `small` is for compute-sanitizer. Each part takes
under three minutes. Tables are markdown.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from gpu_cases import check_equals_cpu, check_same_bits, family_rows, mild_rows, told

from cmdplab.algorithms import algorithm
from cmdplab.algorithms.row import Row
from cmdplab.algorithms.triple_q import TRIPLE_Q
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.gpu.batch import GpuBatch
from cmdplab.engines.gpu.device import cuda, missing, simulated
from cmdplab.engines.gpu.layout import Form, form_of
from cmdplab.engines.gpu.limits import chunk_size
from cmdplab.environments import make
from cmdplab.environments.random_cmdp import random_problem
from cmdplab.solvers import solve_feasible

ROW = algorithm("UOpt-RPGPD", "released")
SHAPES = ((30, 3, 10, 1), (7, 40, 3, 1), (5, 4, 4, 3), (7, 3, 5, 0), (6, 3, 1, 2))  # X, A, H, N
SIZES = ((10, 3, 10, 1), (100, 3, 10, 1), (30, 10, 10, 1), (30, 3, 40, 1), (30, 3, 10, 3))
RUNS = (64, 512, 2112, 4096, 8192)
SECONDS = 1.5  # of measuring, for each line of a table
WARM = 3  # launches before
GIGA = 1e9


def bandwidth() -> float:
    """Bytes a second, read and written, of a copy on the card."""
    source = cuda.to_device(np.ones(1 << 28, np.float32))
    target = cuda.device_array_like(source)
    best = 0.0
    for _ in range(5):
        cuda.synchronize()
        began = time.perf_counter()
        target.copy_to_device(source)
        cuda.synchronize()
        best = max(best, 2 * source.alloc_size / (time.perf_counter() - began))
    return best


def episode_traffic(form: Form, itemsize: int) -> int:
    """Bytes that one episode must move through the card's memory: each state once in, once out.

    Counts, inverse and bonus are read, policy and its logarithm read and written. The true kernel
    is common to all runs and comes from the cache.
    """
    H, X, row = form.horizon, form.states, form.row
    return 4 * H * X * row + 6 * itemsize * H * row


def resident(batch: GpuBatch) -> tuple[int, int, int]:
    """Registers and spilt bytes of a thread, and runs that one multiprocessor holds at a time."""
    if simulated():
        return 0, 0, 0
    registers = max(batch.player.kernel.get_regs_per_thread().values())
    spilt = max(batch.player.kernel.get_local_mem_per_thread().values())
    threads = batch.form.threads
    blocks = min(32, 2048 // threads, 65536 // (-(-registers // 8) * 8 * threads))
    return registers, spilt, blocks


def batch_of(
    problem: CMDP,
    runs: int,
    precision: str,
    form: Form | None = None,
    registers: int | None = None,
    row: Row = ROW,
) -> GpuBatch:
    task = told(problem, [row])[0]
    given = ([problem] * runs, [row] * runs, [task] * runs, list(range(runs)))
    return GpuBatch(*given, precision=precision, form=form, registers=registers)


def rate(batch: GpuBatch, optimum: float) -> float:
    """Episodes a second, judged on the card, once curves are thin: not one point an episode."""
    size = chunk_size(batch.runs) if not simulated() else 1
    optima = [optimum] * batch.runs
    measures = batch.measure(optima, WARM * size)
    cuda.synchronize()
    began, played = time.perf_counter(), 0
    while played == 0 or time.perf_counter() - began < SECONDS:
        batch.measure(optima, 2 * size, measures)
        played += 2 * size
    cuda.synchronize()
    return batch.runs * played / (time.perf_counter() - began)


def line(problem: CMDP, precision: str, batch: GpuBatch) -> str:
    """One row of the table."""
    speed = rate(batch, solve_feasible(problem).value or 0.0)
    used = resident(batch)
    R, H, X, A = problem.reward.shape
    moved = speed * episode_traffic(batch.form, 8 if precision == "float64" else 4)
    sizes = f"| {batch.runs} | {X}, {A}, {H}, {R - 1} | {precision} | {batch.form.lanes}"
    limits = f"{used[0]} | {used[1]} | {used[2]}"
    return f"{sizes} | {limits} | {speed / 1e6:.2f} | {moved / GIGA:.0f} |"


HEADER = (
    "| runs | X, A, H, N | precision | lanes | registers | spilt bytes | runs a multiprocessor "
    "| million episodes/s | GB/s |\n|---|---|---|---|---|---|---|---|---|"
)


def device() -> Iterator[str]:
    """The card."""
    if simulated():
        yield "simulator"
        return
    card = cuda.get_current_device()
    name = card.name.decode() if isinstance(card.name, bytes) else card.name
    yield f"{name}, {card.MULTIPROCESSOR_COUNT} multiprocessors, numba-cuda {version('numba-cuda')}"
    yield f"copy bandwidth {bandwidth() / GIGA:.0f} GB/s, read and written"


def equal(shapes: tuple[tuple[int, ...], ...] = SHAPES, episodes: int = 10_000) -> Iterator[str]:
    """GPU against CPU in float64, every row and preset."""
    yield "| X, A, H, N | rows | episodes | largest difference |\n|---|---|---|---|"
    for shape in shapes:
        problem = random_problem(*shape)
        for name, rows in (
            ("primal-dual", family_rows(problem)),
            ("Triple-Q", mild_rows(problem, episodes)),
        ):
            worst = check_equals_cpu(problem, rows, episodes, 1e-9)
            sizes = ", ".join(map(str, shape))
            yield f"| {sizes} | {len(rows)} {name} | {episodes} | {worst:.1e} |"


def small() -> Iterator[str]:
    """A few episodes of small problems: enough for a tool that checks every access to memory."""
    yield from equal(((6, 3, 3, 1), (3, 40, 2, 2)), 40)


def bits(episodes: int = 3000) -> Iterator[str]:
    """Other batches, other chunks, a resume."""
    for shape in SHAPES[:3]:
        problem = random_problem(*shape)
        check_same_bits(problem, family_rows(problem), episodes)
        yield f"{shape}: the same bits alone and in a batch, at once and in pieces, resumed or not"


def single(episodes: int = 10_000) -> Iterator[str]:
    """The error of float32 against the CPU, in returns, multipliers and policies."""
    for preset in ("released", "printed"):
        row = algorithm("UOpt-RPGPD", preset)
        worst = check_equals_cpu(make("published"), [row], episodes, 1.0, None, "float32")
        yield f"float32, {row.name} {preset}, {episodes} episodes: largest difference {worst:.1e}"


def speed() -> Iterator[str]:
    """Over runs at the paper's size, then over sizes."""
    yield HEADER
    paper = make("published")
    for precision in ("float32", "float64"):
        for runs in RUNS:
            yield line(paper, precision, batch_of(paper, runs, precision))
        for shape in SIZES:
            problem = random_problem(*shape)
            yield line(problem, precision, batch_of(problem, 4096, precision))


def triple_q() -> Iterator[str]:
    """Triple-Q as printed, at the paper's size, in float64, over runs and registers."""
    yield "| runs | registers | spilt bytes | million episodes/s |\n|---|---|---|---|"
    paper = make("published")
    optimum = solve_feasible(paper).value or 0.0
    for runs in (64, 4096):
        for registers in (48, 64, 96):
            batch = batch_of(paper, runs, "float64", None, registers, TRIPLE_Q)
            speed, used = rate(batch, optimum), resident(batch)
            yield f"| {runs} | {used[0]} | {used[1]} | {speed / 1e6:.2f} |"


def tune() -> Iterator[str]:
    """Lanes and registers at the paper's size."""
    yield HEADER
    paper = make("published")
    for precision in ("float32", "float64"):
        for lanes, tried in ((1, (56, 64, 72, 96, 128)), (2, (64, 80)), (4, (64,))):
            form = form_of(paper.reward.shape, lanes)
            for registers in tried:
                batch = batch_of(paper, 4096, precision, form, registers)
                yield line(paper, precision, batch)


PARTS: dict[str, Callable[[], Iterator[str]]] = {
    each.__name__: each for each in (device, equal, bits, single, speed, triple_q, small, tune)
}


def main(parts: list[str]) -> None:
    """Print the chosen parts, line by line."""
    if missing():
        sys.exit(missing())
    for part in parts:
        print(f"\n## {part}\n", flush=True)
        began = time.perf_counter()
        for text in PARTS[part]():
            print(text, flush=True)
        print(f"\n({part}: {time.perf_counter() - began:.0f} s)", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    chosen = [each for each in PARTS if each not in ("small", "tune")]
    parser.add_argument("--part", nargs="+", choices=PARTS, default=chosen)
    main(parser.parse_args().part)
