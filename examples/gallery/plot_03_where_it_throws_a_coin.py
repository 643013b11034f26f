"""
Where does the best policy randomise?
=====================================

The figure shows the probability of the fast link, by step and buffer level. Almost everywhere it
is 0 or 1. With one constraint, one randomised decision is enough.
"""

import matplotlib.pyplot as plt
import numpy as np

import cmdplab

problem = cmdplab.make("media-streaming")
policy = np.asarray(cmdplab.solve(problem).policy)
visited = cmdplab.evaluate(problem, policy).occupancy.sum(axis=2) > 1e-12
fast = np.where(visited, policy[:, :, 0], np.nan)

axes = plt.figure(figsize=(6, 3.8), layout="constrained").subplots()
picture = axes.imshow(fast.T, origin="lower", cmap="cividis", vmin=0, vmax=1, aspect="auto")
for step, level in np.argwhere((fast > 1e-9) & (fast < 1 - 1e-9)):
    axes.text(step, level, f"{fast[step, level]:.2f}", ha="center", va="center", color="white")
axes.set_xlabel("step")
axes.set_ylabel("packets in the buffer")
axes.figure.colorbar(picture, label="probability of the fast link")
plt.show()
