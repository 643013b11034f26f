"""Solve an inventory over three months, and for ever with budgets on stock and orders.

A store holds at most 3 units and orders every month. The demand is 0, 1 or 2 units with
probabilities 1/4, 1/2, 1/4, and unmet demand is lost. A sold unit earns 8, an order costs 4 and
2 per unit, and a unit in stock costs 1. Backward induction in fractions gives the optimal values
of three months.

The discounted problem for ever (0.95) has two budgets: at most 30 unit-months of stock, and at
most 5 orders. Its reference is the linear program over discounted occupancies w, solved by HiGHS,
which shares nothing with the solver here:

    max sum w r  s.t.  sum_a w(y, a) - 0.95 sum_{x,a} w(x, a) P(y | x, a) = [y = 0],  sum w c <= B

With two binding budgets the optimal policy has at most two actions more than states.
"""

from fractions import Fraction

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

values = [Fraction(0)] * (CAPACITY + 1)
for _ in range(3):
    values = [
        max(
            sum(
                Fraction(p) * (8 * min(x + a, d) + values[max(x + a - d, 0)])
                for d, p in DEMAND.items()
            )
            - (4 + 2 * a) * (a > 0)
            - (x + a)
            for a in range(CAPACITY + 1 - x)
        )
        for x in range(CAPACITY + 1)
    ]
for stock, exact in enumerate(values):
    months = cmdplab.from_table(rows, horizon=3, start=str(stock))
    value = months.labels.signals[0].published(cmdplab.solve(months).value)
    print(
        f"{f'three months, {stock} units':26} {value:12.8f}   fractions      {float(exact):12.8f}"
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
