"""
Does it settle, or does it oscillate?
=====================================

Gap against violation, over the second half of the run. An algorithm that settles is a dot at zero.
One that oscillates is a loop.
"""

import matplotlib.pyplot as plt

import cmdplab

problem = cmdplab.make("published")
optimum = cmdplab.solve(problem)

axes = plt.figure(figsize=(5.2, 4.2), layout="constrained").subplots()
for name, colour in (("No-regularization", "#d55e00"), ("UOpt-RPGPD", "#0072b2")):
    curves = cmdplab.run(problem, name, episodes=30_000, solution=optimum).curves
    late = curves["episode"] > 15_000
    axes.plot(curves["violation"][late], curves["gap"][late], color=colour, lw=1.2, label=name)
axes.axhline(0, color="0.7", lw=0.6)
axes.axvline(0, color="0.7", lw=0.6)
axes.set_xlabel("violation")
axes.set_ylabel("gap")
axes.legend(frameon=False)
plt.show()
