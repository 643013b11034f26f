"""Inventory control: X = 6, A = 6, H = 7, one cost constraint.

Origin: the inventory example released with DOPE (Bura et al., 2022). All parameters are those of
that release.

State: units in stock, 0..5; an episode starts at 0. Action: units ordered, 0..5 - x. The demand d
is 0..5 with probabilities 0.3, 0.2, 0.2, 0.2, 0.05, 0.05, and the next state is
max(0, x + a - d).

Sense: rewards to maximise, costs within a budget.

- Cost: 4 + 2a if anything is ordered, plus x + a for storage, divided by its maximum 19. Budget
  H / 2 = 3.5; here r^1 = 1 - cost and b = 3.5.
- Reward, as released: sum over d <= x + a of 0.08 d P(y | x, a), with y = x + a - d, divided by
  its maximum 0.132. It is not the expected revenue, which would have P(d) in the place of
  P(y | x, a): the two differ at d = x + a, where the release counts every demand that empties the
  stock. The released reward is kept, because the published numbers are about it.

Both scalings are the release's, so its values are the values here. Before scaling, the reward is
0.132 * objective and the cost 19 * (7 - utility).

Orders that would overfill are not allowed in the release. Here every state has 6 actions, and an
order above 5 - x is the same as the order 5 - x in kernel, reward and cost. That changes no
optimum, but a learner has more actions to tell apart than in the release.

Optimum 6.66532, multiplier 0.92121; without the constraint 7, at cost 4.50526. The released
optimum is reproduced by our certified solver. The optimal policy must randomise: at the last step
with one unit in stock it orders nothing with probability 0.367 and two with 0.633.
"""

from __future__ import annotations

import numpy as np

from cmdplab.problem import CMDP, Array

HORIZON = 7
CAPACITY = 5
DEMAND = (0.3, 0.2, 0.2, 0.2, 0.05, 0.05)  # of 0..5 units
PRICE = 0.08
ORDERING, UNIT, STORAGE = 4.0, 2.0, 1.0  # per order, per unit ordered, per unit in stock
BUDGET = HORIZON / 2


def inventory() -> CMDP:
    """The instance released with DOPE."""
    levels = np.arange(CAPACITY + 1)
    orders = np.minimum(levels[None, :], CAPACITY - levels[:, None])  # [X, A]
    stock = levels[:, None] + orders  # [X, A], after the order arrives
    cost = (ORDERING + UNIT * orders) * (orders > 0) + STORAGE * stock
    kernel = np.array([_next_stock(full) for full in range(CAPACITY + 1)])
    reward = np.array([_reward(full, kernel[full]) for full in range(CAPACITY + 1)])
    objective = np.tile((reward / reward.max())[stock], (HORIZON, 1, 1))
    costs = np.tile(cost / cost.max(), (1, HORIZON, 1, 1))
    return CMDP.from_costs(kernel[stock], objective, costs, [BUDGET], 0, "inventory")


def _next_stock(stock: int) -> Array:
    """[X]: the distribution of what demand leaves of a stock."""
    left = np.zeros(CAPACITY + 1)
    for demand, probability in enumerate(DEMAND):
        left[max(0, stock - demand)] += probability
    return left


def _reward(stock: int, left: Array) -> float:
    """The released reward of a stock: a sale counts with the probability of what it leaves."""
    return sum(PRICE * demand * float(left[stock - demand]) for demand in range(stock + 1))
