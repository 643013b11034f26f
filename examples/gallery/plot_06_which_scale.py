"""
Which bonus scale should I use?
===============================

At scale 1 the theorem holds, and the algorithm learns little. Small scales learn fast and have no
guarantee. The figure shows the mean loss of an episode against the scale.
"""

import matplotlib.pyplot as plt
import numpy as np

import cmdplab

problem = cmdplab.make("three-state")
optimum = cmdplab.solve(problem)
scales = np.geomspace(1e-4, 1.0, 9)

axes = plt.figure(figsize=(6, 3.6), layout="constrained").subplots()
for name in ("UOpt-RPGPD", "OptCMDP"):
    lost = []
    for scale in scales:
        row = cmdplab.algorithm(name).with_settings(bonus_scale=scale)
        s = cmdplab.run(problem, row, episodes=5_000, solution=optimum).summary
        lost.append((s.strong_regret + s.strong_violation_regret) / s.episodes)
    axes.loglog(scales, lost, "o-", ms=4, label=name)
axes.set_xlabel("bonus scale (1 is the theory)")
axes.set_ylabel("lost in an episode, on average")
axes.legend(frameon=False)
plt.show()
