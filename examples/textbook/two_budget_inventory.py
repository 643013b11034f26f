"""Puterman's inventory with two budgets: printed values first, then limited stock and orders.

Puterman, Markov Decision Processes (1994), Section 3.2.2: a store holds at most 3 units and orders
every month; the demand is 0, 1 or 2 units with probabilities 1/4, 1/2, 1/4, and what is not in
stock is lost. A unit sold earns 8, an order costs 4 and 2 a unit, a unit in stock costs 1. Over
three months (Section 4.6.1) the optimal values from 0, 1, 2 and 3 units are 67/16, 129/16, 194/16
and 227/16.

The budgets are ours, for ever and discounted by 0.95: at most 30 unit-months of stock, and at most
5 orders. There is no printed number for them. The reference is the linear program over discounted
occupancies w, solved by HiGHS, which shares nothing with the solver here:

    max sum w r  s.t.  sum_a w(y, a) - 0.95 sum_{x,a} w(x, a) P(y | x, a) = [y = 0],  sum w c <= B

With two binding budgets the optimal policy has at most two actions more than states.
"""

import numpy as np
from scipy.optimize import linprog

import cmdplab

CAPACITY, GAMMA, STOCK, ORDERS = 3, 0.95, 30.0, 5.0
DEMAND = {0: 0.25, 1: 0.5, 2: 0.25}
rows = []
for stock in range(CAPACITY + 1):
    for order in range(CAPACITY + 1 - stock):
        held, chances = stock + order, dict[int, float]()
        sold = sum(p * min(held, d) for d, p in DEMAND.items())
        for d, p in DEMAND.items():
            left = max(held - d, 0)
            chances[left] = chances.get(left, 0.0) + p
        pay = {"reward": 8.0 * sold - (4.0 + 2.0 * order) * (order > 0) - held}
        pay |= {"held": float(held), "orders": float(order > 0)}
        pair = {"state": stock, "action": order}
        rows += [{**pair, "next": y, "probability": p, **pay} for y, p in chances.items()]

for stock, printed in enumerate((67, 129, 194, 227)):
    months = cmdplab.from_table(rows, horizon=3, start=str(stock))
    value = months.labels.signals[0].published(cmdplab.solve(months).value)
    print(
        f"{f'three months, {stock} units':26} {value:12.8f}   published      {printed / 16:12.8f}"
    )

budgets = {"held": STOCK, "orders": ORDERS}
problem = cmdplab.from_table(rows, costs=budgets, discount=GAMMA, start="0", name="inventory")
found = cmdplab.solve(problem)

opened = np.argwhere(problem.opened)  # [L, 2], the pairs of the program
state, action = opened.T
flow = np.eye(CAPACITY + 1)[state] - GAMMA * problem.transition[state, action]
reward, *costs = problem.reward[:, state, action] * np.array([[1.0], [-1.0], [-1.0]])
program = linprog(-reward, costs, [STOCK, ORDERS], flow.T, np.eye(CAPACITY + 1)[0], method="highs")
print(f"{'value for ever':26} {found.value:12.8f}   linear program {-program.fun:12.8f}")
for n, name in enumerate(budgets):
    price, exact = found.multiplier[n], -program.ineqlin.marginals[n]
    print(f"{'price of ' + name:26} {price:12.8f}   linear program {exact:12.8f}")
for x, row in enumerate(np.asarray(found.policy)):
    print(f"stock {x}: " + ", ".join(f"order {a} ({p:.3f})" for a, p in enumerate(row) if p > 1e-9))
print(cmdplab.sensitivity(problem))
