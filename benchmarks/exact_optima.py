"""Optima of small ill-scaled problems against fractions, by enumeration of deterministic policies.

    python benchmarks/exact_optima.py 2000 --criterion discounted

makes so many problems of each criterion and prints what became of them. Rewards have units from
1e-8 to 1e8 (finite horizons: to 1), probabilities go down to 1e-14, and thresholds lie below, at,
just below and just above the largest that a policy attains. The floats of a problem are taken
literally, but without an end each row is divided by its sum. Every deterministic policy is
evaluated in fractions, and the best mixture is found by the simplex method in fractions. Nothing
here uses a solver of the package.
"""

from __future__ import annotations

import argparse
import itertools
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.cmdp.stationary import Average, Discounted, StationaryCMDP
from cmdplab.cmdp.transitions import Sparse
from cmdplab.errors import InputError
from cmdplab.solvers import Solution, solve

CRITERIA = ("finite", "discounted", "average")
SHORT = Fraction(1, 10**9)  # of a signal's own range: what thresholds may be missed by
ULPS = Fraction(64, 2**53)  # of the largest number: what doubles cannot say
Vector = list[Fraction]  # [1 + N], what a policy earns
Problem = CMDP | StationaryCMDP
Array = np.ndarray


# Problems.


def row(rng: np.random.Generator, states: int) -> Array:
    """Probabilities in quarters, at random, or with rare exits; sums are 1 but for a rounding."""
    kind = rng.random()
    if kind < 0.3:
        found = np.bincount(rng.integers(0, states, 4), minlength=states) / 4.0
    elif kind < 0.55:
        found = rng.dirichlet(np.ones(states))
    else:
        found = np.zeros(states)
        for y in range(states):
            found[y] = 10.0 ** -rng.uniform(1.0, 14.0) if rng.random() < 0.5 else 0.0
        stay = int(rng.integers(states))
        found[stay] = 0.0
        found[stay] = 1.0 - found.sum()
    return np.asarray(found)


def signal(rng: np.random.Generator, shape: tuple[int, ...], most: float) -> Array:
    """A reward in units of its own: fine, in quarters, constant, or with a level far above it."""
    kind, unit = rng.random(), 10.0 ** rng.uniform(-8.0, most)
    if kind < 0.1:
        found = np.full(shape, 0.25 * int(rng.integers(1, 5)))
    elif kind < 0.5:
        found = rng.integers(0, 5, shape) / 4.0
    else:
        found = rng.random(shape)
    if kind > 0.9:
        found = 0.5 * (1.0 + 10.0 ** -rng.uniform(1.0, 8.0) * found)
    if most > 0.0 and rng.random() < 0.3:
        found = -found
    return np.asarray(unit * found)


def made(criterion: str, seed: int) -> Problem:
    """A random problem with thresholds where it is decided whether they can be met."""
    rng = np.random.default_rng((CRITERIA.index(criterion), seed))
    X, A, N = (int(i) for i in rng.integers((1, 2, 0), (4, 4, 3)))
    H = int(rng.integers(1, 4))
    if X * A > 6:
        A = 2
    if X * A > 4:
        H = min(H, 2)
    reward = np.array(
        [signal(rng, (X, A), 0.0 if criterion == "finite" else 8.0) for _ in range(1 + N)]
    )
    kernel = np.array([[row(rng, X) for _ in range(A)] for _ in range(X)])
    if criterion == "finite":
        steps = np.array([1.0, 0.5, 1.0])[:H] if rng.random() < 0.5 else np.ones(H)
        free: Problem = CMDP(kernel, reward[:, None] * steps[:, None, None], np.zeros(N), 0, H)
    else:
        start: Any = int(rng.integers(X)) if rng.random() < 0.8 else rng.dirichlet(np.ones(X))
        gamma = float(rng.choice([0.5, 0.9, 0.99, 0.99999]))
        kind = Discounted(gamma) if criterion == "discounted" else Average()
        free = StationaryCMDP(kernel, reward, np.zeros(N), kind, start)
    return replace(free, threshold=thresholds(rng, enumerated(free)))


def thresholds(rng: np.random.Generator, points: list[Vector]) -> Array:
    """[N]: at, below or above the best of one policy, or of a mixture of two."""
    N = len(points[0]) - 1
    utilities = np.array([[float(u) for u in each[1:]] for each in points]).reshape(len(points), N)
    spread = np.ptp(utilities, axis=0)
    at = utilities[int(rng.integers(len(points)))]
    kind = rng.random()
    if kind < 0.35 and N:
        at = utilities[int(np.argmax(utilities[:, 0]))]  # the largest attainable
    elif kind < 0.7:
        share = rng.random()
        at = share * at + (1.0 - share) * utilities[int(rng.integers(len(points)))]
    sign = float(rng.choice([0.0, -1.0, 1.0], p=[0.5, 0.35, 0.15]))
    return np.asarray(at + sign * 10.0 ** -rng.uniform(6.0, 12.0, N) * spread)


# Policies in fractions.


def fractions(numbers: Any) -> Any:
    """Nested lists of the fractions that floats are."""
    if isinstance(numbers, np.ndarray):
        numbers = numbers.tolist()
    return [fractions(each) for each in numbers] if isinstance(numbers, list) else Fraction(numbers)


def table(problem: Problem) -> Any:
    """[X][A][X] or [H][X][A][X]: the probabilities, without an end of sum 1."""
    kernel = problem.transition
    rows = fractions(kernel.dense() if isinstance(kernel, Sparse) else kernel)
    return rows if isinstance(problem, CMDP) else normalised(rows)


def opened(problem: Problem) -> Any:
    """The open actions of every state, or of every step and state."""
    mask = np.asarray(problem.opened)
    if mask.ndim == 2:
        return [np.flatnonzero(each).tolist() for each in mask]
    return [[np.flatnonzero(each).tolist() for each in step] for step in mask]


def enumerated(problem: Problem) -> list[Vector]:
    """The returns of all deterministic policies, each vector once."""
    if isinstance(problem, CMDP):
        found = finite_vectors(problem)
    else:
        found = [worth(problem, policy) for policy in deterministic(problem)]
    return [list(each) for each in sorted({tuple(each) for each in found})]


def deterministic(problem: StationaryCMDP) -> Iterator[list[Vector]]:
    """Every policy [X][A] of one action a state."""
    for actions in itertools.product(*opened(problem)):
        yield [[Fraction(int(a == b)) for b in range(problem.actions)] for a in actions]


def finite_vectors(problem: CMDP) -> list[Vector]:
    """The returns from the start: a choice of each action with all choices of what follows."""
    rows, rewards, may = table(problem), fractions(problem.reward), opened(problem)
    signals = range(1 + problem.constraints)
    ahead = [{tuple(Fraction(0) for _ in signals)} for _ in range(problem.states)]
    for h in reversed(range(problem.horizon)):
        here = []
        for x in range(problem.states):
            found = set()
            for a in may[h][x]:
                sums = {tuple(rewards[n][h][x][a] for n in signals)}
                for y in range(problem.states):
                    if rows[h][x][a][y]:
                        p = rows[h][x][a][y]
                        sums = {
                            tuple(s + p * v for s, v in zip(each, later, strict=True))
                            for each in sums
                            for later in ahead[y]
                        }
                found |= sums
            here.append(found)
        ahead = here
    return [list(each) for each in ahead[problem.start]]


def worth(problem: Problem, policy: list[Any]) -> Vector:
    """[1 + N]: the returns of a policy of fractions, whose rows sum to 1."""
    rows, rewards = table(problem), fractions(problem.reward)
    X, A, signals = range(problem.states), range(problem.actions), range(1 + problem.constraints)
    if isinstance(problem, CMDP):
        value = [[Fraction(0)] * problem.states for _ in signals]
        for h in reversed(range(problem.horizon)):
            value = [
                [
                    sum(
                        (
                            policy[h][x][a] * (rewards[n][h][x][a] + dot(rows[h][x][a], value[n]))
                            for a in A
                        ),
                        Fraction(0),
                    )
                    for x in X
                ]
                for n in signals
            ]
        return [each[problem.start] for each in value]
    start = normalised(fractions(np.asarray(problem.start)))
    chain = [[dot(policy[x], [rows[x][a][y] for a in A]) for y in X] for x in X]
    earns = [[dot(policy[x], rewards[n][x]) for n in signals] for x in X]
    visits = discounted_visits if isinstance(problem.criterion, Discounted) else average_visits
    gamma = Fraction(getattr(problem.criterion, "discount", 1))
    spent = visits(chain, start, gamma)
    return [dot(spent, [each[n] for each in earns]) for n in signals]


def dot(left: Sequence[Fraction], right: Sequence[Fraction]) -> Fraction:
    """sum_i left[i] right[i]."""
    return sum((a * b for a, b in zip(left, right, strict=True)), Fraction(0))


def eliminated(matrix: list[Vector], right: Vector) -> Vector:
    """The solution of a regular system."""
    rows = [[*each, b] for each, b in zip(matrix, right, strict=True)]
    for c in range(len(rows)):
        at = next(r for r in range(c, len(rows)) if rows[r][c])
        rows[c], rows[at] = rows[at], rows[c]
        rows[c] = [each / rows[c][c] for each in rows[c]]
        for r in range(len(rows)):
            if r != c and rows[r][c]:
                rows[r] = [a - rows[r][c] * b for a, b in zip(rows[r], rows[c], strict=True)]
    return [each[-1] for each in rows]


def discounted_visits(chain: list[Vector], start: Vector, gamma: Fraction) -> Vector:
    """d = start + gamma d P."""
    X = range(len(start))
    return eliminated([[int(x == y) - gamma * chain[y][x] for y in X] for x in X], start)


def average_visits(chain: list[Vector], start: Vector, _: Fraction) -> Vector:
    """The shares of time that a chain spends in its states, whatever its classes."""
    X = range(len(start))
    reach = [{y for y in X if chain[x][y]} | {x} for x in X]
    for _step in X:
        reach = [set().union(*(reach[y] for y in each)) for each in reach]
    classes = {frozenset(reach[x]) for x in X if all(x in reach[y] for y in reach[x])}
    closed = set().union(*classes)
    passing = [x for x in X if x not in closed]
    matrix = [[int(x == y) - chain[y][x] for y in passing] for x in passing]
    passed = dict(zip(passing, eliminated(matrix, [start[x] for x in passing]), strict=True))
    found = [Fraction(0)] * len(start)
    for each in classes:
        at = sorted(each)
        entered = sum((start[x] for x in at), Fraction(0))
        entered += sum((passed[y] * chain[y][x] for y in passing for x in at), Fraction(0))
        rows = [[int(x == y) - chain[y][x] for y in at] for x in at[1:]]
        shares = eliminated(
            [[Fraction(1)] * len(at), *rows], [Fraction(1)] + [Fraction(0)] * (len(at) - 1)
        )
        for x, share in zip(at, shares, strict=True):
            found[x] = entered * share
    return found


# The best mixture.


def simplex(columns: list[Vector], cost: list[Any], basis: list[int], right: Vector) -> Vector:
    """Shares of the columns that maximise the cost, pairs compared in order, by Bland's rule."""
    while True:
        inverse = [[*each] for each in inverted([columns[j] for j in basis])]
        shares = [dot(each, right) for each in inverse]
        prices = [
            [
                dot([cost[j][k] for j in basis], [each[m] for each in inverse])
                for m in range(len(right))
            ]
            for k in range(2)
        ]
        entering = -1
        for j, column in enumerate(columns):
            gain = tuple(cost[j][k] - dot(prices[k], column) for k in range(2))
            if j not in basis and gain > (0, 0):
                entering = j
                break
        if entering < 0:
            found = [Fraction(0)] * len(columns)
            for j, share in zip(basis, shares, strict=True):
                found[j] = share
            return found
        direction = [dot(each, columns[entering]) for each in inverse]
        basis[min((shares[r] / d, basis[r], r) for r, d in enumerate(direction) if d > 0)[2]] = (
            entering
        )


def inverted(columns: list[Vector]) -> list[Vector]:
    """The inverse of the matrix with these columns, by rows."""
    size = len(columns)
    matrix = [[columns[c][r] for c in range(size)] for r in range(size)]
    units = [[Fraction(int(r == c)) for r in range(size)] for c in range(size)]
    solved = [eliminated(matrix, each) for each in units]
    return [[solved[c][r] for c in range(size)] for r in range(size)]


def program(
    points: list[Vector], limits: Vector, units: Vector, free: bool
) -> tuple[Vector, Fraction]:
    """(returns, shortfall) of the best mixture; a free shortfall is minus the largest margin.

    Slacks are measured in `units`, [N]. The shortfall comes before the objective.
    """
    N = len(limits)
    columns = [[Fraction(0), *(Fraction(-int(m == n)) for m in range(N))] for n in range(N)]
    columns += [[Fraction(0)] + [Fraction(s)] * N for s in ((1, -1) if free else (1,))]
    cost: list[Any] = [(0, 0)] * N + ([(-1, 0), (1, 0)] if free else [(-1, 0)])
    for each in points:
        over = [(u - b) / k for u, b, k in zip(each[1:], limits, units, strict=True)]
        columns.append([Fraction(1), *over])
        cost.append((0, each[0]))
    first = len(columns) - 1
    slack = columns[first][1:]
    basis = [first, *range(N)]
    if N:
        worst = min(range(N), key=lambda n: slack[n])
        if slack[worst] < 0:
            basis[1 + worst] = N
        elif free:
            basis[1 + worst] = N + 1
    shares = simplex(columns, cost, basis, [Fraction(1)] + [Fraction(0)] * N)
    used = shares[first - len(points) + 1 :]
    returns = [dot(used, [each[k] for each in points]) for k in range(1 + N)]
    short = shares[N] - (shares[N + 1] if free else 0)
    return returns, short


# The judgement.


class Truth:
    """What fractions say of a problem."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        points = enumerated(problem)
        self.limits: Vector = fractions(problem.threshold)
        columns = list(zip(*points, strict=True))
        self.range = [max(each) - min(each) for each in columns]  # of what policies earn
        steps = Fraction(problem.horizon if isinstance(problem, CMDP) else 1)
        if isinstance(problem, StationaryCMDP) and isinstance(problem.criterion, Discounted):
            steps = 1 / (1 - Fraction(problem.criterion.discount))
        self.large = [steps * Fraction(float(np.abs(each).max())) for each in problem.reward]
        for n, b in enumerate(self.limits):
            self.large[n + 1] = max(self.large[n + 1], abs(b))
        # What doubles leave unsure of a sum over all steps grows with their number.
        self.unsure = ULPS * steps * self.large[0]
        self.short = [SHORT * r + ULPS * s for r, s in zip(self.range, self.large, strict=True)]
        self.value: Fraction | None = max(columns[0])
        self.margin = Fraction(1)  # the largest smallest slack, each in units of its own range
        if self.limits:
            units = [
                r or s or Fraction(1) for r, s in zip(self.range[1:], self.large[1:], strict=True)
            ]
            self.margin = -program(points, self.limits, units, True)[1]
            self.lacking = -program(
                points, self.limits, [s or Fraction(1) for s in self.short[1:]], True
            )[1]
            self.slack = -program(points, self.limits, [Fraction(1)] * len(self.limits), True)[1]
            returns, short = program(points, self.limits, units, False)
            self.value = returns[0] if short == 0 else None

    def verdict(self, found: Solution) -> str:
        """Return "right", or a word for what is wrong."""
        if not found.feasible:
            return "right" if self.value is None else "false infeasible"
        if self.limits and self.lacking < -1:
            return "false feasible"
        policy = fractions(np.asarray(found.policy))
        earned = worth(self.problem, normalised(policy))
        missed = [
            b - u > s for b, u, s in zip(self.limits, earned[1:], self.short[1:], strict=True)
        ]
        if any(missed):
            return "misses"
        if abs(Fraction(found.value) - earned[0]) > self.short[0] + self.unsure:
            return "wrong value"
        if self.value is not None:
            if Fraction(found.dual) < self.value:
                return "wrong bound"
            gap = Fraction(found.duality_gap)
            if Fraction(found.value) < self.value - gap - self.unsure:
                return "wrong value"
        if self.limits:
            error = abs(Fraction(found.slater_gap) - max(self.slack, Fraction(0)))
            if error > max(self.short[1:]) and self.margin > SHORT:
                return "wrong Slater gap"
        return "right"


def normalised(policy: list[Any]) -> list[Any]:
    """Rows that sum to exactly 1."""
    if isinstance(policy[0], list):
        return [normalised(each) for each in policy]
    total = sum(policy)
    return [each / total for each in policy]


def judged(problem: Problem, solver: Callable[[Problem], Solution] = solve) -> str:
    """What became of a problem: "right", "refused", or what is wrong."""
    truth = Truth(problem)
    try:
        found = solver(problem)
    except InputError as error:
        if "divides the time" in str(error):
            return "refused, several classes"
        return "refused with slack" if truth.margin > SHORT else "refused without slack"
    except Exception as error:  # whatever it is: a traceback is one
        return f"crash: {type(error).__name__}"
    return truth.verdict(found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "count", type=int, nargs="?", default=200, help="problems of each criterion"
    )
    parser.add_argument("--first", type=int, default=0, help="seed of the first problem")
    parser.add_argument("--criterion", choices=CRITERIA, action="append")
    given = parser.parse_args()
    for criterion in given.criterion or CRITERIA:
        tally: Counter[str] = Counter()
        seeds: dict[str, list[int]] = {}
        for seed in range(given.first, given.first + given.count):
            verdict = judged(made(criterion, seed))
            tally[verdict] += 1
            seeds.setdefault(verdict, []).append(seed)
        print(f"{criterion}: {given.count:,} problems")
        for verdict, count in tally.most_common():
            shown = "" if verdict == "right" else f"  seeds {seeds[verdict][:12]}"
            print(f"  {verdict:26}{count:9,}{shown}")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
