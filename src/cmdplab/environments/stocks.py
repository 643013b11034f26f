"""Inventory control and job scheduling."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cmdplab.cmdp.labels import Labels
from cmdplab.cmdp.problem import CMDP
from cmdplab.environments.entry import stationary_costs
from cmdplab.types import Array

CAPACITY = 5
DEMAND = (0.3, 0.2, 0.2, 0.2, 0.05, 0.05)  # of 0..5 units
Revenue = Callable[[int], float]  # of a stock, after the order has arrived


def released_revenue(stock: int) -> float:
    """Return the revenue as released: a sale has the probability of the stock that it leaves."""
    left = _next_stock(stock)
    return sum(0.08 * demand * float(left[stock - demand]) for demand in range(stock + 1))


def corrected_revenue(stock: int) -> float:
    """Return the expected revenue of a stock: a sale has the probability of its demand."""
    return sum(0.08 * demand * DEMAND[demand] for demand in range(stock + 1))


def inventory(revenue: Revenue = released_revenue, name: str = "inventory") -> CMDP:
    """Make inventory control: X = 6, A = 6, H = 7, one cost constraint, with a revenue of a stock.

    Origin: the inventory example released with DOPE (Bura et al., 2022). All parameters are those
    of that release.

    State: units in stock, 0..5; an episode starts at 0. Action: units ordered, 0..5 - x. The demand
    d is 0..5 with probabilities 0.3, 0.2, 0.2, 0.2, 0.05, 0.05, and the next state is max(0, x + a
    - d).

    Sense: rewards to maximise, costs within a budget.

    - Cost: 4 + 2a if anything is ordered, plus x + a for storage, divided by its maximum 19. Budget
      H / 2 = 3.5; here r^1 = 1 - cost and b = 3.5.
    - Reward, as released (`inventory`): sum over d <= x + a of 0.08 d P(y | x, a), y = x + a - d.
      It is not the expected revenue, which has P(d) in the place of P(y | x, a): the two differ at
      d = x + a, where the release counts every demand that empties the stock. It is kept, because
      the published numbers are about it. `inventory-corrected` has P(d). Each is divided by its
      maximum, 0.132 as released.

    Both scalings are the release's, so its values are the values here. Before scaling, the reward
    is 0.132 * objective and the cost 19 * (7 - utility).

    Orders that would overfill are not allowed: they are masked.

    Optimum 6.66532, multiplier 0.92121; without the constraint 7, at cost 4.50526. The released
    optimum is reproduced by our certified solver. The optimal policy must randomise: at the last
    step with one unit in stock it orders nothing with probability 0.367 and two with 0.633. With
    the corrected reward the optimum is 6.13552.
    """
    levels = np.arange(CAPACITY + 1)
    orders = levels[None, :]
    allowed = orders <= CAPACITY - levels[:, None]  # [X, A]
    stock = np.minimum(levels[:, None] + orders, CAPACITY)  # [X, A], after the order arrives
    cost = np.where(allowed, (4.0 + 2.0 * orders) * (orders > 0) + stock, 0.0)
    kernel = np.array([_next_stock(full) for full in range(CAPACITY + 1)])
    reward = np.array([revenue(full) for full in range(CAPACITY + 1)])
    objective, cost = (reward / reward.max())[stock], cost / cost.max()
    labels = Labels(tuple(f"stock {n}" for n in levels), tuple(f"order {n}" for n in levels))
    given = (3.5, 7, 0, name, allowed, labels)
    return stationary_costs(kernel[stock], objective, cost, *given)


def corrected_inventory() -> CMDP:
    """Make `inventory-corrected`, which has the expected revenue."""
    return inventory(corrected_revenue, "inventory-corrected")


def _next_stock(stock: int) -> Array:
    """Return the distribution [X] of the next stock after the demand of one step."""
    left = np.zeros(CAPACITY + 1)
    for demand, probability in enumerate(DEMAND):
        left[max(0, stock - demand)] += probability
    return left


JOBS = 9
DONE = (0.1, 0.1, 0.8)  # the probabilities that 0, 1, 2 jobs are done by working
REST, WORK = 0, 1


def job_scheduling() -> CMDP:
    """Make job scheduling with dear and cheap hours: X = 10, A = 2, H = 10, one utility constraint.

    Origin: Ghosh, Zhou & Shroff (2024), Appendix K. The sizes, the probabilities, the rewards and
    the threshold are the paper's; it states no optimum.

    State: jobs left, 0..9; an episode starts with 9. Action 1 works: 2, 1 or 0 jobs are done with
    probabilities 0.8, 0.1 and 0.1; action 0 rests and does none. Working earns 1 - 0.9 = 0.1 in the
    dear steps and 1 - 0.2 = 0.8 in the others; resting earns 1.

    Sense: rewards and utilities, both to be kept high. The utility of the paper is half of the jobs
    done, (x_h - x_{h+1}) / 2, at least 3.5 over the episode. It depends on the next state; here it
    is its expectation given state and action, which leaves every value unchanged. Nothing is
    scaled.

    [unverified] Two points are our reading of the paper. The boundary: never fewer than 0 jobs are
    left, so that with one job left both 2 and 1 finish it (probability 0.9), and with none left
    working only costs. The indexing: the dear steps are the third to the sixth, counted from 1.

    Optimum 156/17 = 9.17647, multiplier 4/17 = 0.23529; without the constraint 10, by resting
    throughout. These numbers are our certified solver's. By hand: a cheap step of work costs 0.2
    and has the utility 0.85 while two jobs are left, so 3.5 / 0.85 such steps are needed, fewer
    than the six cheap ones. Hence the optimum depends on neither of the two points; other values
    do.
    """
    kernel = _jobs_left()
    jobs = np.arange(JOBS + 1)
    reward = np.ones((2, 10, JOBS + 1, 2))
    reward[0, :, :, WORK] = 1.0 - 0.2
    reward[0, 2:6, :, WORK] = 1.0 - 0.9  # the third step to the sixth
    reward[1] = (jobs[:, None] - kernel @ jobs) / 2.0
    return CMDP(kernel, reward, np.array([3.5]), JOBS, name="job-scheduling")


def _jobs_left() -> Array:
    """Return the kernel [X, A, X] of the jobs left, which is the same at every step."""
    kernel = np.zeros((JOBS + 1, 2, JOBS + 1))
    for jobs in range(JOBS + 1):
        kernel[jobs, REST, jobs] = 1.0
        for done, probability in enumerate(DONE):
            kernel[jobs, WORK, max(0, jobs - done)] += probability
    return kernel
