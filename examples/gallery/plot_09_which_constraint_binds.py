"""
Several promises: which one costs?
==================================

Three constraints on one grid. Each bar is what one more unit of that threshold would cost.
"""

import matplotlib.pyplot as plt

import cmdplab

problem = cmdplab.make("five-by-five-3")
solution = cmdplab.solve(problem)
worth = cmdplab.evaluate(problem, solution.policy)

axes = plt.figure(figsize=(5.5, 3.2), layout="constrained").subplots()
names = [f"constraint {n + 1}" for n in range(problem.constraints)]
axes.bar(names, solution.multiplier, color="#0072b2", width=0.5)
for n, slack in enumerate(-worth.violation):
    axes.text(n, solution.multiplier[n], f"slack {abs(slack):.0e}", ha="center", va="bottom")
axes.set_ylabel("price of one more unit")
axes.margins(y=0.15)
plt.show()
