"""
Where does the best policy go?
==============================

A rover moves on Mars. Without a constraint it enters a pit, because the pit pays as much as the
goal. With the constraint it takes the long way. The colour is the expected number of steps in
each cell.
"""

import matplotlib.pyplot as plt
import numpy as np

import cmdplab

problem = cmdplab.make("mars-rover")
free = cmdplab.CMDP(problem.transition, problem.reward[:1], [], problem.start)
policies = {
    "without the constraint": cmdplab.solve(free).policy,
    "with it": cmdplab.solve(problem).policy,
}

figure = plt.figure(figsize=(7.5, 3.6), layout="constrained")
for axes, (title, policy) in zip(figure.subplots(1, 2), policies.items(), strict=True):
    worth = cmdplab.evaluate(problem, policy)
    steps = worth.occupancy.sum(axis=(0, 2)).reshape(8, 8)
    picture = axes.imshow(np.log10(steps + 1e-3), cmap="cividis", vmin=-2, vmax=1)
    axes.set_title(f"{title}: cost {problem.horizon - worth.returns[1]:.2f}", fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])
figure.colorbar(picture, ax=figure.axes, label="steps (log10)")
plt.show()
