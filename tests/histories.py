"""All histories of a small problem, and the linear program over them: no policy is left out."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from cmdplab.cmdp.problem import CMDP


class Tree:
    """All histories of a problem: a sequence-form program over them, written independently.

    A variable is the probability of reaching a history and taking an action after it.
    """

    def __init__(self, problem: CMDP, costs: list[np.ndarray]) -> None:
        self.flow: list[dict[int, float]] = []  # rows: sum of own actions - probability * parent
        self.source: list[float] = []
        self.reward: list[float] = []
        self.ends: list[tuple[int, list[list[float]]]] = []  # (variable, partial sums of each cost)
        self.visited: list[tuple[int, int, int]] = []
        self._grow(problem, costs, 0, problem.start, None, 1.0, [[] for _ in costs])

    def _grow(self, problem, costs, h, x, parent, probability, sums):
        row = {} if parent is None else {parent: -probability}
        self.flow.append(row)
        self.source.append(1.0 if parent is None else 0.0)
        for a in np.flatnonzero(problem.opened[h, x]):
            var = len(self.reward)
            row[var] = 1.0
            self.reward.append(float(problem.reward[0, h, x, a]))
            self.visited.append((h, x, a))
            now = [
                [*s, (s[-1] if s else 0.0) + c[h, x, a]] for s, c in zip(sums, costs, strict=True)
            ]
            if h + 1 == problem.horizon:
                self.ends.append((var, now))
                continue
            for y in range(problem.states):
                if problem.table[h, x, a, y] > 0.0:
                    self._grow(problem, costs, h + 1, y, var, problem.table[h, x, a, y], now)

    def best(self, upper: list[tuple[np.ndarray, float]], zero: np.ndarray) -> float | None:
        """max reward with rows . q <= limit and q = 0 where `zero`; None if infeasible."""
        n = len(self.reward)
        flow = np.zeros((len(self.flow), n))
        for i, row in enumerate(self.flow):
            for j, value in row.items():
                flow[i, j] = value
        bounds = [(0.0, 0.0 if z else None) for z in zero]
        given = {"A_ub": np.array([u for u, _ in upper]), "b_ub": [b for _, b in upper]}
        found = linprog(
            -np.array(self.reward),
            A_eq=flow,
            b_eq=self.source,
            bounds=bounds,
            **(given if upper else {}),
        )
        return -found.fun if found.status == 0 else None

    def at_ends(self, of) -> np.ndarray:
        """A row over variables: of(partial sums) at the last step, nothing before."""
        row = np.zeros(len(self.reward))
        for var, sums in self.ends:
            row[var] = of(sums)
        return row
