"""
How many episodes are worse than ε?
===================================

The figure shows the count for every ε. A curve below the dotted line has stopped making mistakes
of that size. A curve that touches the line still makes them.
"""

import matplotlib.pyplot as plt
import numpy as np

import cmdplab

problem = cmdplab.make("three-state")
optimum = cmdplab.solve(problem)
episodes = 30_000

axes = plt.figure(figsize=(6, 3.8), layout="constrained").subplots()
for name in ("UOpt-RPGPD", "No-adjustment", "No-regularization"):
    mistakes = cmdplab.run(problem, name, episodes=episodes, solution=optimum).mistakes
    counts = np.maximum(mistakes["either_mistakes"], 0.5)
    axes.loglog(mistakes["epsilon"], counts, label=name)
axes.axhline(episodes, color="0.5", lw=0.8, ls=":")
axes.set_xlim(5, 5e-3)
axes.set_xlabel("ε (stricter to the right)")
axes.set_ylabel("episodes worse than ε")
axes.legend(frameon=False, loc="lower right")
plt.show()
