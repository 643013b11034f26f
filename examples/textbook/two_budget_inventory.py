"""An inventory with two budgets: discounted sales, limited holding and limited ordering.

A store holds 0..4 units and orders up to its capacity every day; the demand of a day is 0, 1 or 2
units with probabilities 1/4, 1/2, 1/4, and what is not in stock is lost (the inventory model of
Puterman, Markov Decision Processes, 1994, Section 3.2, with numbers of our own). A unit sold earns
8, an order costs 4 and 2 a unit. Two budgets, both discounted by 0.95: at most 20 unit-days of
stock, and at most 7 orders.

There is no published number for it. The reference is the linear program over discounted
occupancies w, solved by HiGHS, which shares nothing with the solver here:

    max sum w r  s.t.  sum_a w(y, a) - 0.95 sum_{x,a} w(x, a) P(y | x, a) = [y = 0],  sum w c <= B

With two binding budgets the optimal policy has at most two actions more than states.
"""

import numpy as np
from scipy.optimize import linprog

import cmdplab

CAPACITY, GAMMA, STOCK, ORDERS = 4, 0.95, 20.0, 7.0
DEMAND = {0: 0.25, 1: 0.5, 2: 0.25}
rows = []
for stock in range(CAPACITY + 1):
    for order in range(CAPACITY + 1 - stock):
        chances: dict[int, float] = {}
        sold = sum(p * min(stock + order, d) for d, p in DEMAND.items())
        for d, p in DEMAND.items():
            left = max(stock + order - d, 0)
            chances[left] = chances.get(left, 0.0) + p
        pay = {"reward": 8.0 * sold - (4.0 + 2.0 * order) * (order > 0)}
        pay |= {"held": float(stock), "orders": float(order > 0)}
        pair = {"state": stock, "action": order}
        rows += [{**pair, "next": y, "probability": p, **pay} for y, p in chances.items()]

budgets = {"held": STOCK, "orders": ORDERS}
problem = cmdplab.from_table(rows, costs=budgets, discount=GAMMA, start="0", name="inventory")
found = cmdplab.solve(problem)

opened = np.argwhere(problem.opened)  # [L, 2], the pairs of the program
state, action = opened.T
flow = np.eye(CAPACITY + 1)[state] - GAMMA * problem.transition[state, action]
reward, *costs = problem.reward[:, state, action] * np.array([[1.0], [-1.0], [-1.0]])
program = linprog(-reward, costs, [STOCK, ORDERS], flow.T, np.eye(CAPACITY + 1)[0], method="highs")
print(f"{'value':26} {found.value:12.8f}   linear program {-program.fun:12.8f}")
for n, name in enumerate(budgets):
    price, exact = found.multiplier[n], -program.ineqlin.marginals[n]
    print(f"{'price of ' + name:26} {price:12.8f}   linear program {exact:12.8f}")
for x, row in enumerate(np.asarray(found.policy)):
    print(f"stock {x}: " + ", ".join(f"order {a} ({p:.3f})" for a, p in enumerate(row) if p > 1e-9))
