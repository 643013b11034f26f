"""
Which of several constraints has a price?
=========================================

A grid has three constraints. Each bar is the price of one more unit of a threshold. All three
bind, and the second has the highest price.
"""

import matplotlib.pyplot as plt

import cmdplab

problem = cmdplab.make("five-by-five-3")
solution = cmdplab.solve(problem)

axes = plt.figure(figsize=(5.5, 3.2), layout="constrained").subplots()
names = [f"constraint {n + 1}" for n in range(problem.constraints)]
axes.bar(names, solution.multiplier, color="#0072b2", width=0.5)
axes.set_ylabel("price of one more unit")
plt.show()
