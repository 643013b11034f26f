"""Gathering gold and gems past enemies: X = 94, A = 4, H = 50, one constraint, in two forms.

Origin: the `resource-gathering` model of the quantitative verification benchmark set. Its kernel
and rewards are kept; horizon and constraints are ours, the model has none.

State: a place on a 5 x 5 grid, whether gold is carried, whether a gem is carried, and whether the
last move was attacked; the 94 states that can be reached from home (3, 1) with nothing are kept,
in the order in which a breadth-first search finds them. Actions: up, down, left, right; moves off
the grid are not allowed. Entering (3, 5) loads gold, entering (5, 4) a gem. A move into (4, 5) or
(3, 4) is attacked with probability 0.1: back home, load lost. Coming home with gold delivers it,
and so with a gem.

- `resource-attacks`: maximise gold delivered with at most 0.3 expected attacks in 50 steps. An
  attack counts in the step after it, as in the model, so that one in the last step does not. Here
  r^1 = 1 - attack and b = 50 - 0.3.
- `resource-gems`: maximise gold delivered with at least 2 expected gems.

Nothing is scaled.

Optimum 4.43872, multiplier 1.462, without the constraint 5.22625 at 1.01356 attacks; 4.50733 with
gems. The most gold in 200 steps is 22.0714415928, as the model checker Storm has it exactly. Our
certified solver finds the same.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import checked_sizes, stationary_costs
from cmdplab.types import Array, Mask

SIDE = 5
HOME, GOLD, GEM = (3, 1), (3, 5), (5, 4)
ENEMIES = ((4, 5), (3, 4))
ATTACK = 0.1
MOVES = ((0, 1), (0, -1), (-1, 0), (1, 0))  # up, down, left, right


class Place(NamedTuple):
    """State of the model."""

    cell: tuple[int, int]
    gold: bool = False
    gem: bool = False
    attacked: bool = False


class Model(NamedTuple):
    """Kernel, deliveries and attacks of the model at every step."""

    kernel: Array  # [X, A, X]
    delivered: Array  # [2, X, A]: gold, gems
    attacked: Array  # [X, A]: 1 in the state after an attack
    mask: Mask  # [X, A]: moves that stay on the grid


def resource_attacks(horizon: int = 50, budget: float = 0.3) -> CMDP:
    """Make `resource-attacks`: gather gold with a budget of attacks."""
    checked_sizes(horizon=horizon)
    kernel, (gold, _), attacked, mask = resource_model()
    return stationary_costs(kernel, gold, attacked, budget, horizon, 0, "resource-attacks", mask)


def resource_gems(horizon: int = 50, gems: float = 2.0) -> CMDP:
    """Make `resource-gems`: gather gold, and at least this expected number of gems."""
    kernel, delivered, _, mask = resource_model()
    return CMDP(kernel, delivered, np.array([gems]), 0, horizon, "resource-gems", mask)


def resource_model() -> Model:
    """Return the arrays of the model over the states that can be reached."""
    states = [Place(HOME)]
    moved: list[list[Place | None]] = []
    for state in states:  # the list grows while it is read
        moved.append([_moved(state, move) for move in MOVES])
        found = [each for each in moved[-1] if each is not None]
        if any(each.cell in ENEMIES for each in found):
            found.append(Place(HOME, attacked=True))
        states += dict.fromkeys(each for each in found if each not in states)
    return _arrays(states, moved)


def _moved(state: Place, move: tuple[int, int]) -> Place | None:
    """Return the place after a move that is not attacked, or None off the grid."""
    cell = state.cell[0] + move[0], state.cell[1] + move[1]
    if not all(1 <= each <= SIDE for each in cell):
        return None
    if cell == HOME:
        return Place(HOME)
    return Place(cell, state.gold or cell == GOLD, state.gem or cell == GEM)


def _arrays(states: list[Place], moved: list[list[Place | None]]) -> Model:
    number = {state: n for n, state in enumerate(states)}
    shape = len(states), len(MOVES)
    kernel, delivered = np.zeros((*shape, len(states))), np.zeros((2, *shape))
    attacked, mask = np.zeros(shape), np.ones(shape, dtype=bool)
    for n, state in enumerate(states):
        attacked[n] = state.attacked
        for a, there in enumerate(moved[n]):
            if there is None:
                mask[n, a], kernel[n, a, n] = False, 1.0
                continue
            danger = ATTACK if there.cell in ENEMIES else 0.0
            kernel[n, a, number[there]] += 1.0 - danger
            if danger:
                kernel[n, a, number[Place(HOME, attacked=True)]] += danger
            if there.cell == HOME:
                delivered[:, n, a] = state.gold, state.gem
    return Model(kernel, delivered, attacked, mask)
