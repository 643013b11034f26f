"""
Average budget, or a budget in every episode?
=============================================

A machine has three budgets for the cost of an episode: for its mean, for its worst tenth, and for
every episode. The figure shows the best reward under each.
"""

import matplotlib.pyplot as plt
import numpy as np

import cmdplab

kernel = np.zeros((2, 2, 2))  # states: works, broken; actions: careful, fast
kernel[0] = [[0.95, 0.05], [0.7, 0.3]]
kernel[1] = [[1.0, 0.0], [1.0, 0.0]]
reward = np.array([[[0.4, 1.0], [0.0, 0.0]]])
cost = np.array([[0.0, 0.1], [3.0, 3.0]])
problem = cmdplab.CMDP(kernel, reward, [], horizon=10, name="machine")

meanings = {
    "on average at most 6.3": cmdplab.Expected(cost, 6.3),
    "worst tenth at most 9.3": cmdplab.CVaR(cost, 0.9, 9.3),
    "never more than 15": cmdplab.AlmostSure(cost, 15.0),
}
values = [cmdplab.solve_budgets(problem, budget).value for budget in meanings.values()]

axes = plt.figure(figsize=(6, 2.6), layout="constrained").subplots()
axes.barh(list(meanings), values, color="#0072b2", height=0.55)
axes.axvline(cmdplab.solve(problem).value, color="#d55e00", ls="--", label="no budget")
axes.invert_yaxis()
axes.set_xlabel("expected reward")
axes.figure.legend(frameon=False, loc="outside upper right")
plt.show()
