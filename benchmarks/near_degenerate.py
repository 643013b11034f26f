"""Nearly degenerate problems, against a linear program solved by HiGHS and against exact bounds.

    python benchmarks/near_degenerate.py 2000

makes so many problems of each family and prints, family by family, how many answers are wrong, how
many are refused, and the worst certificate. An answer is judged by HiGHS on the occupancy program,
if its own optimality conditions hold, and else, or where the two differ, by rational arithmetic:
a bound from the multipliers above, a feasible policy below. A wrong "infeasible" is found likewise.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.errors import InputError
from cmdplab.solvers import Solution, solve

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from exact_bounds import bracket, margin
from occupancy_lp import Optimum, occupancy_optimum

AGREE = 1e-9  # per step: the certificate that is promised
Array = np.ndarray


class Sizes(NamedTuple):
    """X, A, H and the kernel's concentration."""

    states: int
    actions: int
    horizon: int
    concentration: float


def sizes(rng: np.random.Generator) -> Sizes:
    """One state and one step, or up to (5, 3, 5)."""
    if rng.random() < 0.4:
        return Sizes(1, int(rng.integers(2, 7)), 1, 1.0)
    X, A, H = (int(i) for i in rng.integers((2, 2, 2), (6, 4, 6)))
    return Sizes(X, A, H, float(rng.choice([0.1, 0.5, 1.0])))


def perturbation(rng: np.random.Generator) -> float:
    """1e-4 to 1e-14."""
    return float(10.0 ** -rng.integers(4, 15))


def rewards(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """In [0.1, 0.9], so that perturbations stay in [0, 1]; half of them coarse, for ties."""
    if rng.random() < 0.5:
        return 0.1 + 0.8 * rng.random(shape)
    return np.asarray(0.1 + 0.2 * rng.integers(0, 5, shape))


def random_policy(rng: np.random.Generator, s: Sizes) -> Array:
    """Deterministic, for thresholds at a vertex, or mixed."""
    shape = (s.horizon, s.states)
    if rng.random() < 0.3:
        return np.eye(s.actions)[rng.integers(0, s.actions, shape)]
    return rng.dirichlet(np.ones(s.actions), shape)


def problem_of(rng: np.random.Generator, s: Sizes, reward: Array, slack: float) -> CMDP:
    """Thresholds that a random policy meets, with this much to spare."""
    kernel = rng.dirichlet(np.full(s.states, s.concentration), (s.horizon, s.states, s.actions))
    free = CMDP(kernel, reward, np.zeros(len(reward) - 1), 0)
    from cmdplab.cmdp import exact

    values = exact.returns(free, random_policy(rng, s))[1:]
    return CMDP(kernel, reward, np.clip(values - slack, 0.0, s.horizon), 0)


def shape_of(s: Sizes, signals: int) -> tuple[int, ...]:
    """[signals, H, X, A]."""
    return (signals, s.horizon, s.states, s.actions)


def parallel(rng: np.random.Generator) -> CMDP:
    """Two to six utilities that are one but for a perturbation."""
    s, size, N = sizes(rng), perturbation(rng), int(rng.integers(2, 7))
    base = rewards(rng, shape_of(s, 2))
    noise = rng.uniform(-1.0, 1.0, shape_of(s, N))
    reward = np.concatenate([base[:1], base[1:] + size * noise])
    return problem_of(rng, s, reward, float(rng.choice([0.0, size, 0.01])))


def single_precision(rng: np.random.Generator) -> CMDP:
    """The second utility is the first one in single precision."""
    s = sizes(rng)
    base = 0.1 + 0.8 * rng.random(shape_of(s, 2))
    reward = np.concatenate([base, base[1:].astype(np.float32)])
    return problem_of(rng, s, reward, float(rng.choice([0.0, 1e-8, 0.01])))


def nearly_constant(rng: np.random.Generator) -> CMDP:
    """Utilities that hardly depend on what one does."""
    s, size, N = sizes(rng), perturbation(rng), int(rng.integers(1, 7))
    level = rng.uniform(0.2, 0.8, (N, 1, 1, 1))
    flat = level + size * rng.uniform(-1.0, 1.0, shape_of(s, N))
    mixed = rng.random(N) < 0.3
    utilities = np.where(mixed[:, None, None, None], rewards(rng, shape_of(s, N)), flat)
    reward = np.concatenate([rewards(rng, shape_of(s, 1)), utilities])
    return problem_of(rng, s, reward, float(rng.choice([0.0, 0.1 * size, 0.01])))


def dependent(rng: np.random.Generator) -> CMDP:
    """Three to six utilities, one of which is nearly a mean of the others."""
    s, size, N = sizes(rng), perturbation(rng), int(rng.integers(3, 7))
    base = rewards(rng, shape_of(s, N))  # the objective and N - 1 utilities
    weight = rng.dirichlet(np.ones(N - 1))
    last = np.tensordot(weight, base[1:], axes=1) + size * rng.uniform(-1.0, 1.0, base.shape[1:])
    reward = np.concatenate([base, last[None]])
    return problem_of(rng, s, reward, float(rng.choice([0.0, size, 0.01])))


def opposite(rng: np.random.Generator) -> CMDP:
    """Two utilities that nearly add up to a constant: little slack, large multipliers."""
    s, size, N = sizes(rng), perturbation(rng), int(rng.integers(2, 7))
    base = rewards(rng, shape_of(s, N))  # the objective and N - 1 utilities
    weight = rng.dirichlet(np.ones(N - 1))
    last = 1.0 - np.tensordot(weight, base[1:], axes=1)
    last = last + size * rng.uniform(-1.0, 1.0, base.shape[1:])
    reward = np.clip(np.concatenate([base, last[None]]), 0.0, 1.0)
    return problem_of(rng, s, reward, float(rng.choice([0.0, size, 0.01])))


def duplicated_actions(rng: np.random.Generator) -> CMDP:
    """Actions that differ by a perturbation alone, one to three constraints."""
    s, size, N = sizes(rng), perturbation(rng), int(rng.integers(1, 4))
    reward = rewards(rng, shape_of(s, 1 + N))
    twin = reward[..., :1] + size * rng.uniform(-1.0, 1.0, reward[..., :1].shape)
    reward = np.concatenate([reward, twin], axis=-1)
    s = s._replace(actions=s.actions + 1)
    return problem_of(rng, s, reward, float(rng.choice([0.0, size, 0.01])))


FAMILIES: dict[str, Callable[[np.random.Generator], CMDP]] = {
    "nearly parallel": parallel,
    "single precision": single_precision,
    "nearly constant": nearly_constant,
    "nearly dependent": dependent,
    "nearly opposite": opposite,
    "twin actions": duplicated_actions,
}


class Tally:
    """What became of the problems of one family."""

    def __init__(self) -> None:
        self.problems = self.wrong = self.refused = self.tight = self.by_bounds = 0
        self.worst = 0.0
        self.seeds: list[int] = []

    def add(self, seed: int, problem: CMDP) -> None:
        """Solve and judge one problem."""
        self.problems += 1
        try:
            found = solve(problem)
        except (InputError, ArithmeticError):
            self.refused += 1
            return
        if found.duality_gap is not None:
            self.worst = max(self.worst, found.duality_gap / problem.horizon)
        self.tight += found.slater_gap == 0.0
        if not self.right(problem, found):
            self.wrong += 1
            self.seeds.append(seed)

    def right(self, problem: CMDP, found: Solution) -> bool:
        """Whether HiGHS agrees, or else what rational arithmetic says."""
        tolerance = AGREE * problem.horizon
        by_highs = occupancy_optimum(problem)
        if found.feasible and agrees(by_highs, found, tolerance):
            return True
        self.by_bounds += 1
        if not found.feasible:
            return margin(problem)[1] < 0
        low, high = bracket(problem, found)
        return low - tolerance <= found.value <= high + tolerance and high - low <= tolerance


def agrees(by_highs: Optimum | None, found: Solution, tolerance: float) -> bool:
    """Whether an optimum that satisfies its optimality conditions is ours."""
    if by_highs is None or by_highs.residual > 0.1 * tolerance:
        return False
    return found.value is not None and abs(by_highs.value - found.value) <= tolerance


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=200, help="problems of each family")
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--family", choices=[*FAMILIES], action="append")
    given = parser.parse_args()
    head = ("problems", "wrong", "refused", "no slack", "by bounds", "worst gap / H")
    print(f"{'family':18}" + "".join(f"{each:>15}" for each in head))
    for name in given.family or FAMILIES:
        tally = Tally()
        for seed in range(given.first, given.first + given.count):
            tally.add(seed, FAMILIES[name](np.random.default_rng(seed)))
        counts = (tally.problems, tally.wrong, tally.refused, tally.tight, tally.by_bounds)
        print(f"{name:18}" + "".join(f"{each:15,}" for each in counts) + f"{tally.worst:15.1e}")
        if tally.seeds:
            print(f"  wrong: seeds {tally.seeds[:20]}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
