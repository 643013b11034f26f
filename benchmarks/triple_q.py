"""Triple-Q on its own grid world: microseconds per episode.

The grid world is that of the authors' notebook Triple_Q_tabular.ipynb (Wei, Liu and Ying, 2022):
18 x 18 cells, four deterministic moves, H = 25, rewards divided by 100, utility 1 off obstacles,
which must sum to 20. Each policy is evaluated on the true kernel, over the states it can reach.
`printed` plays one action a state and has mass in one state a step, `released` all four and in 110.

Measured on one core of an AMD EPYC, in us per episode, noise included (three runs of this file):
`released` 75 to 103, `printed` 10 to 12. Plain Python took 91,000 to 100,000.

The notebook, pure Python, takes 500 us for step and update. It ends at a reward of 871 and 4.9
steps on obstacles (last 1,000 of 80,000 episodes, one run); `released` on seeds 0 to 3 at 778 to
884 and 4.6 to 5.2.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from cmdplab.algorithms.families.triple_q import TripleQ
from cmdplab.algorithms.task import Task
from cmdplab.algorithms.triple_q import TRIPLE_Q, TRIPLE_Q_RELEASED
from cmdplab.cmdp.problem import CMDP
from cmdplab.engines.families import session

EPISODES = 80_000
SIDE = 18
MOVES = ((-1, 0), (1, 0), (0, -1), (0, 1))  # up, down, left, right


def grid_world(threshold: float = 20.0) -> CMDP:
    """The notebook's map: rows and columns 1 ... 18, the start at (18, 18), the goal in row 1."""
    random = np.random.RandomState(1234)
    obstacles = {
        (row, column)
        for row in range(2, SIDE)
        for column in range(1, SIDE + 1)
        if random.rand() <= 0.4
    }
    goal = (1, int(random.rand() * (SIDE - 1)) + 1)
    farthest = math.dist((SIDE, 1), goal)
    cells = [(row, column) for row in range(1, SIDE + 1) for column in range(1, SIDE + 1)]
    kernel = np.zeros((len(cells), len(MOVES), len(cells)))
    reward = np.zeros((2, len(cells), len(MOVES)))
    for x, (row, column) in enumerate(cells):
        for a, (down, right) in enumerate(MOVES):
            to = (row + down, column + right)
            to = to if to in cells else (row, column)
            kernel[x, a, cells.index(to)] = 1.0
            reward[0, x, a] = 1.0 if to == goal else (farthest - math.dist(to, goal)) / 100.0
            reward[1, x, a] = float(to not in obstacles)
    return CMDP(kernel, reward, [threshold], len(cells) - 1, horizon=25, name="Triple-Q grid")


def median(play: Callable[[int], object], episodes: int, slices: int = 7) -> float:
    """Microseconds per episode, noise included: the median of some slices, after one unmeasured."""
    play(episodes)
    took = []
    for _ in range(slices):
        began = time.perf_counter()
        play(episodes)
        took.append(time.perf_counter() - began)
    return 1e6 * float(np.median(took)) / episodes


def rows() -> list[TripleQ]:
    practical = replace(TRIPLE_Q, margin_scale=1e-12)
    return [replace(row, tuned_for=EPISODES) for row in (TRIPLE_Q_RELEASED, practical)]


def main() -> None:
    problem = grid_world()
    task = Task.of(problem, 5.0)
    for row in rows():
        whole = median(session("cpu", problem, row, task, 0).play, 2_000)
        print(f"{row.preset:10}{whole:10.1f} us/episode")


if __name__ == "__main__":
    main()
