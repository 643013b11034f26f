"""Inventory control: X = 6, A = 6, H = 7, one cost constraint.

Origin: the inventory example released with DOPE (Bura et al., 2022). All parameters are those of
that release.

State: units in stock, 0..5; an episode starts at 0. Action: units ordered, 0..5 - x. The demand d
is 0..5 with probabilities 0.3, 0.2, 0.2, 0.2, 0.05, 0.05, and the next state is
max(0, x + a - d).

Sense: rewards to maximise, costs within a budget.

- Cost: 4 + 2a if anything is ordered, plus x + a for storage, divided by its maximum 19. Budget
  H / 2 = 3.5; here r^1 = 1 - cost and b = 3.5.
- Reward, as released (`inventory`): sum over d <= x + a of 0.08 d P(y | x, a), y = x + a - d. It
  is not the expected revenue, which has P(d) in the place of P(y | x, a): the two differ at
  d = x + a, where the release counts every demand that empties the stock. It is kept, because
  the published numbers are about it. `inventory-corrected` has P(d). Each is divided by its
  maximum, 0.132 as released.

Both scalings are the release's, so its values are the values here. Before scaling, the reward is
0.132 * objective and the cost 19 * (7 - utility).

Orders that would overfill are not allowed: they are masked.

Optimum 6.66532, multiplier 0.92121; without the constraint 7, at cost 4.50526. The released
optimum is reproduced by our certified solver. The optimal policy must randomise: at the last step
with one unit in stock it orders nothing with probability 0.367 and two with 0.633. With the
corrected reward the optimum is 6.13552.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import Certified, Scale, fixed, stationary_costs
from cmdplab.types import Array

HORIZON = 7
CAPACITY = 5
DEMAND = (0.3, 0.2, 0.2, 0.2, 0.05, 0.05)  # of 0..5 units
PRICE = 0.08
ORDERING, UNIT, STORAGE = 4.0, 2.0, 1.0  # per order, per unit ordered, per unit in stock
BUDGET = HORIZON / 2
LABELS = Labels(
    tuple(f"stock {n}" for n in range(CAPACITY + 1)),
    tuple(f"order {n}" for n in range(CAPACITY + 1)),
)
Revenue = Callable[[int], float]  # of a stock, after the order has arrived


def released_revenue(stock: int) -> float:
    """Return the revenue [A] as released: a sale has the probability of the stock that it
    leaves.
    """
    left = _next_stock(stock)
    return sum(PRICE * demand * float(left[stock - demand]) for demand in range(stock + 1))


def corrected_revenue(stock: int) -> float:
    """Return the expected revenue [A]: a sale has the probability of its demand."""
    return sum(PRICE * demand * DEMAND[demand] for demand in range(stock + 1))


def inventory(revenue: Revenue = released_revenue, name: str = "inventory") -> CMDP:
    """Make the instance released with DOPE, or the same with another revenue."""
    levels = np.arange(CAPACITY + 1)
    orders = levels[None, :]
    allowed = orders <= CAPACITY - levels[:, None]  # [X, A]
    stock = np.minimum(levels[:, None] + orders, CAPACITY)  # [X, A], after the order arrives
    cost = np.where(allowed, (ORDERING + UNIT * orders) * (orders > 0) + STORAGE * stock, 0.0)
    kernel = np.array([_next_stock(full) for full in range(CAPACITY + 1)])
    reward = np.array([revenue(full) for full in range(CAPACITY + 1)])
    objective, cost = (reward / reward.max())[stock], cost / cost.max()
    given = (BUDGET, HORIZON, 0, name, allowed, LABELS)
    return stationary_costs(kernel[stock], objective, cost, *given)


def _next_stock(stock: int) -> Array:
    """Return [X]: the distribution of the next stock after the demand of one step."""
    left = np.zeros(CAPACITY + 1)
    for demand, probability in enumerate(DEMAND):
        left[max(0, stock - demand)] += probability
    return left


_UNITS = (Scale("reward"), Scale("cost", -1.0, HORIZON))

ENTRIES = {
    "inventory": fixed(
        inventory,
        "orders under random demand, released reward",
        "Bura et al. (2022), code",
        version=1,  # 0 had aliases in the place of a mask
        units=_UNITS,
        certified=Certified(6.66532153, (0.92121212,), 3.5, 7.0),
    ),
    "inventory-corrected": fixed(
        partial(inventory, corrected_revenue, "inventory-corrected"),
        "orders under random demand, expected revenue",
        "Bura et al. (2022), corrected",
        units=_UNITS,
        certified=Certified(6.13551904, (1.440038,), 3.5, 7.0),
    ),
}
