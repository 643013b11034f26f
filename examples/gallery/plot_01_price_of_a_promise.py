"""
What is the price of a budget?
==============================

The figure shows the best reward against the budget. Each corner is a deterministic policy.
Between two corners the best policy randomises. The slope is the price of one more unit of the
budget.
"""

import matplotlib.pyplot as plt

import cmdplab

problem = cmdplab.make("media-streaming")
line = cmdplab.frontier(problem)  # without `points`: the exact corners
best = cmdplab.solve(problem)

axes = plt.figure(figsize=(6, 3.8), layout="constrained").subplots()
axes.plot(problem.horizon - line.threshold, line.value, "o-", color="#0072b2", ms=3)
axes.plot(problem.horizon - problem.threshold, [best.value], "o", color="#d55e00", ms=8)
axes.annotate(
    f"given budget: price {best.multiplier[0]:.3f}",
    (problem.horizon - problem.threshold[0], best.value),
    xytext=(12, -16),
    textcoords="offset points",
)
axes.set_xlabel("budget: expected steps on the fast link")
axes.set_ylabel("steps with a filled buffer")
plt.show()

# %%
# Prices and ranges in words:
print(cmdplab.sensitivity(problem))
