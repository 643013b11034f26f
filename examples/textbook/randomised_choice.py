"""Solve two states with a budget: the optimal policy has to randomise.

In state s1, action a11 earns 5 and stays with probability 1/2. Action a12 earns 10 and leaves.
State s2 earns -1 for ever. Discounted by 0.95 from s1,

    v(a11) = (5 - 0.475 * 20) / (1 - 0.475) = -60/7 = -8.571...,   v(a12) = 10 - 0.95 * 20 = -9,

so a11 is best without a constraint. The budget allows at most B = 1 discounted use of a11. With y
discounted uses of a11, the discounted number of visits to s1 is x = 1 + 0.475 y. If a11 is always
used, y = 1 / 0.525. The value is

    v(y) = -9 + y 0.525 (v(a11) + 9) = -9 + 0.225 y,        0 <= y <= 1 / 0.525,

The best y is the budget: the optimum is -8.775, and the price of a use is 0.225. The policy takes
a11 with probability y / x = 1 / 1.475.
"""

import cmdplab

GAMMA, BUDGET = 0.95, 1.0
rows = [
    {"state": "s1", "action": "a11", "next": "s1", "probability": 0.5, "reward": 5, "uses": 1},
    {"state": "s1", "action": "a11", "next": "s2", "probability": 0.5, "reward": 5, "uses": 1},
    {"state": "s1", "action": "a12", "next": "s2", "probability": 1.0, "reward": 10, "uses": 0},
    {"state": "s2", "action": "a21", "next": "s2", "probability": 1.0, "reward": -1, "uses": 0},
]
free = cmdplab.solve(cmdplab.from_table(rows, discount=GAMMA))
found = cmdplab.solve(cmdplab.from_table(rows, discount=GAMMA, costs={"uses": BUDGET}))
pairs = [
    ("value without a budget", free.value, -60 / 7),
    ("value", found.value, -9 + 0.225 * BUDGET),
    ("price of one use", found.multiplier[0], 0.225),
    ("probability of a11 in s1", float(found.policy[0, 0]), BUDGET / (1 + 0.475 * BUDGET)),
]
for what, ours, exact in pairs:
    print(f"{what:26} {ours:12.8f}   closed form {exact:12.8f}")
